"""Files with objects of Kubernetes: YAML or JSON, several documents, lists -> single objects, each with its place.

Complaints about files, and about what is in them, go to standard error.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

import yaml

from memcached_operator.api import names
from memcached_operator.render.rendering import is_memcached
from operator_runtime.process.logs import escape


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
        """`Memcached (cache.example.com/v1alpha1)`, for messages and to distinguish documents."""
        return f"{self.content.get('kind')} ({self.content.get('apiVersion')})"


_TAG: Final = "tag:yaml.org,2002:"
# A leading 0 is octal, as in C.
_INTEGER: Final = re.compile(r"[-+]?(0|[1-9][0-9_]*|0[oO]?[0-7_]+|0x[0-9a-fA-F_]+|0b[01_]+)\Z")
_FLOAT: Final = re.compile(r"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan)\Z", re.IGNORECASE)
# From there on a float is written with an exponent.
_WRITTEN_WHOLE: Final = 1e21


class _Loader(yaml.SafeLoader):
    """YAML as kubectl reads it: its numbers and truth values, a date is a text, and a key stands once."""

    bool_values: ClassVar[dict[str, bool]] = {**yaml.SafeLoader.bool_values, "y": True, "n": False}

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError):  # such as `!!int x`
            problem = f"{node.value!r} is not a !!{node.tag.removeprefix(_TAG)}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None

    def construct_float(self, node: yaml.ScalarNode) -> int | float:
        """JSON does not distinguish them, and kubectl writes 3.0 as 3."""
        value: float = self.construct_yaml_float(node)
        return int(value) if value.is_integer() and abs(value) < _WRITTEN_WHOLE else value

    def construct_text(self, node: yaml.ScalarNode) -> str:
        return str(self.construct_scalar(node))

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Any, Any]:
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        keys = [str(key.value) for key, _ in pairs if key.tag != f"{_TAG}merge"]
        for index, key in enumerate(keys):
            if key in keys[:index]:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} occurs twice", node.start_mark)
        found: dict[Any, Any] = super().construct_mapping(cast("yaml.MappingNode", node), deep)
        return found


# To kubectl a date and "=" are texts, as is `1:30`, which YAML 1.1 takes for ninety.
_TEXTS: Final = tuple(f"{_TAG}{each}" for each in ("int", "float", "timestamp", "value"))
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _TEXTS]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(f"{_TAG}int", _INTEGER, list("-+0123456789"))
_Loader.add_implicit_resolver(f"{_TAG}float", _FLOAT, list("-+.0123456789"))
_Loader.add_implicit_resolver(f"{_TAG}bool", re.compile(r"[yYnN]\Z"), list("yYnN"))
_Loader.add_constructor(f"{_TAG}float", _Loader.construct_float)
_Loader.add_constructor(f"{_TAG}timestamp", _Loader.construct_text)


def documents(text: str, source: str) -> Iterator[Document]:
    """The objects of a file, in its order; empty documents are passed over.

    Raises:
        DocumentError: it is not YAML, or holds something that is no object.
    """
    try:
        contents = [each for each in yaml.load_all(text, _Loader) if each is not None]
        # An object is what JSON can express. It joins halves of a character, and makes texts of keys.
        contents = json.loads(json.dumps(contents, allow_nan=False))
        json.dumps(contents, ensure_ascii=False).encode()  # which refuses a half that is alone
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        raise DocumentError(f"{source}{where}: not valid YAML: {error.problem}; correct it there") from None
    except yaml.YAMLError as error:
        raise DocumentError(f"{source}: not a text in YAML: {' '.join(str(error).split())}") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise DocumentError(f"{source}: contains a value that JSON cannot represent: {error}") from None
    for number, content in enumerate(contents, start=1):
        place = source if len(contents) == 1 else f"{source}, document {number}"
        if not isinstance(content, dict):
            raise DocumentError(f"{place}: is not an object; start it with apiVersion and kind")
        if str(content.get("kind")).endswith("List") and isinstance(content.get("items"), list):
            yield from _items(content, place)
        else:
            yield Document(place, content)


def _items(content: dict[str, Any], place: str) -> Iterator[Document]:
    for number, item in enumerate(content["items"], start=1):
        if not isinstance(item, dict):
            raise DocumentError(f"{place}, item {number}: is not an object; start it with apiVersion and kind")
        yield Document(f"{place}, item {number}", item)


_PROGRAM = "memcached-operator"


class Sources:
    """Reads files, and goes on after one that cannot be read.

    Attributes:
        failed: something was complained of.
    """

    def __init__(self) -> None:
        self.failed = False

    def memcacheds(self, files: Sequence[str], *, need_some: bool = True) -> Iterator[Document]:
        """The Memcacheds in these files, in their order.

        Args:
            files: paths, `-` for standard input.
            need_some: complain where there is none.
        """
        found = False
        failed_before = self.failed
        for file in files:
            try:
                for document in _read(file):
                    if not is_memcached(document.content):
                        report(f"{document.place}: skipped, as it is not a Memcached but a {document.kind}")
                        continue
                    found = True
                    yield document
            except DocumentError as error:
                self.complain(str(error))
        if need_some and not found and self.failed == failed_before:
            self.complain(f"{', '.join(files)}: contains no Memcached ({names.API_VERSION})")

    def complain(self, sentence: str) -> None:
        self.failed = True
        report(sentence)


def report(sentence: str) -> None:
    """Print to standard error, in one line."""
    print(f"{_PROGRAM}: {escape(sentence)}", file=sys.stderr)


def _read(file: str) -> Iterator[Document]:
    name = "standard input" if file == "-" else file
    try:
        if file == "-":
            text = sys.stdin.read()
        else:
            with open(file, encoding="utf-8") as opened:
                text = opened.read()
    except OSError as error:
        raise DocumentError(f"{name}: cannot be read ({error.strerror}); check its path and permissions") from None
    except UnicodeDecodeError:
        raise DocumentError(f"{name}: not UTF-8 text") from None
    return documents(text, name)
