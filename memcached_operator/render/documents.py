"""Files with objects of Kubernetes: YAML or JSON, several documents, lists -> single objects, each with its place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml


class DocumentError(ValueError):
    """A file or a document that is no object of Kubernetes; the message names its place, and the remedy."""


@dataclass(frozen=True, slots=True)
class Document:
    """One object.

    Attributes:
        place: where it stands, for messages: `mc.yaml`, `mc.yaml, document 2`, `mc.yaml, item 1`.
        content: its fields, as JSON has them.
    """

    place: str
    content: dict[str, Any]

    @property
    def kind(self) -> str:
        """`Memcached (cache.example.com/v1alpha1)`, for messages and to be told apart."""
        return f"{self.content.get('kind')} ({self.content.get('apiVersion')})"


class _Loader(yaml.SafeLoader):
    """YAML as Kubernetes reads it: a date is a text, and a key stands once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        for index, key in enumerate(keys):
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is no text", node.start_mark)
            if key in keys[:index]:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} stands twice", node.start_mark)
        return super().construct_mapping(node, deep=deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def documents(text: str, source: str) -> Iterator[Document]:
    """The objects of a file, in its order; empty documents are passed over.

    Args:
        source: the file's name, for messages.

    Raises:
        DocumentError: it is not YAML, or holds something that is no object.
    """
    try:
        contents = [each for each in yaml.load_all(text, _Loader) if each is not None]
        json.dumps(contents, allow_nan=False)  # an object is what JSON can say
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        raise DocumentError(f"{source}{where}: not valid YAML: {error.problem}; correct it there") from None
    except yaml.YAMLError as error:
        raise DocumentError(f"{source}: not a text in YAML: {' '.join(str(error).split())}") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise DocumentError(f"{source}: holds what JSON has nothing for: {error}") from None
    for number, content in enumerate(contents, start=1):
        place = source if len(contents) == 1 else f"{source}, document {number}"
        if not isinstance(content, dict):
            raise DocumentError(f"{place}: is no object; begin it with apiVersion and kind")
        if str(content.get("kind")).endswith("List") and isinstance(content.get("items"), list):
            yield from _items(content, place)
        else:
            yield Document(place, content)


def _items(content: dict[str, Any], place: str) -> Iterator[Document]:
    for number, item in enumerate(content["items"], start=1):
        if not isinstance(item, dict):
            raise DocumentError(f"{place}, item {number}: is no object; begin it with apiVersion and kind")
        yield Document(f"{place}, item {number}", item)
