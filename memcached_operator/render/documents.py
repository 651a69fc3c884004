"""Files with objects of Kubernetes: YAML or JSON, several documents, lists -> single objects, each with its place."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import yaml

# Numbers are as sigs.k8s.io/yaml and its YAML 1.1 read them. To PyYAML `1e1` is a text, `08` too, and `1:30` is ninety.
# Go's strconv.ParseInt with base 0: a leading 0 is octal, as in C.
_INTEGER: Final = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hexadecimal>[0-9a-fA-F]+)|0[bB](?P<binary>[01]+)|0[oO]?(?P<octal>[0-7]+)"
    r"|(?P<decimal>0|[1-9][0-9]*))"
)
_BASES: Final = {"hexadecimal": 16, "binary": 2, "octal": 8, "decimal": 10}
_DECIMAL: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_FIRST: Final = frozenset("0123456789+-.")
_INT64_MIN: Final = -(2**63)
_UINT64_MAX: Final = 2**64 - 1


def number_of(word: str) -> int | float | None:
    """The number that a word without quotes is; None if it is none."""
    if word[:1] not in _FIRST:
        return None
    digits = word.replace("_", "")
    found = _INTEGER.fullmatch(digits)
    if found is not None:
        base = str(found.lastgroup)
        value = int(found["sign"] + found[base], _BASES[base])
        if _INT64_MIN <= value <= _UINT64_MAX:
            return value
    if _DECIMAL.fullmatch(digits) is None:
        return None
    inexact = float(digits)
    return None if math.isinf(inexact) else inexact


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


class _Loader(yaml.SafeLoader):
    """YAML as kubectl reads it: its numbers and truth values, a date is a text, and a key stands once."""

    bool_values: ClassVar[dict[str, bool]] = {**yaml.SafeLoader.bool_values, "y": True, "n": False}

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode and implicit[0]:
            match number_of(value):
                case int():
                    return _INT
                case float():
                    return _FLOAT
        found: str = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]
        return found

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        text = self.construct_text(node)
        value = number_of(text)
        if value is None and node.tag == _FLOAT and _NO_NUMBER.fullmatch(text):
            return math.nan  # what JSON cannot express, which is reported below
        if value is None or (node.tag == _INT and isinstance(value, float)):
            kind = node.tag.rpartition(":")[2]
            raise yaml.constructor.ConstructorError(None, None, f"{text!r} is not a !!{kind}", node.start_mark)
        # JSON does not distinguish them, and kubectl writes 3.0 as 3.
        return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else value

    def construct_scalar(self, node: Any) -> Any:
        """The text of a scalar. JSON writes a character beyond U+FFFF as two escapes, which YAML reads as two."""
        text = super().construct_scalar(node)
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16") if _SURROGATE.search(text) else text
        except UnicodeDecodeError:
            problem = "half of a surrogate pair, which is no character"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None

    def construct_text(self, node: yaml.ScalarNode) -> str:
        return str(self.construct_scalar(node))

    def construct_truth(self, node: yaml.ScalarNode) -> bool:
        text = self.construct_text(node)
        if text.lower() not in self.bool_values:
            raise yaml.constructor.ConstructorError(None, None, f"{text!r} is not a !!bool", node.start_mark)
        return self.bool_values[text.lower()]

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Any, Any]:
        if not isinstance(node, yaml.MappingNode):  # `!!map x`
            raise yaml.constructor.ConstructorError(None, None, "no mapping", node.start_mark)
        keys = [_key(self.construct_object(key, deep=True), node) for key, _ in node.value if key.tag != f"{_TAG}merge"]
        for index, key in enumerate(keys):
            if key in keys[:index]:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} occurs twice", node.start_mark)
        self.flatten_mapping(node)
        # Not by the base class: 1 and true are the same key to Python.
        return {
            _key(self.construct_object(key, deep=True), node): self.construct_object(value, deep=deep)
            for key, value in node.value
        }


def _key(key: object, node: yaml.Node) -> str:
    """Convert a key to text as kubectl does for JSON: a number and a truth value in their words."""
    if isinstance(key, int):
        return str(key).lower()
    if not isinstance(key, str):
        raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is not a string", node.start_mark)
    return key


_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_TAG = "tag:yaml.org,2002:"
_INT, _FLOAT = f"{_TAG}int", f"{_TAG}float"
# Numbers are recognized by `number_of`, and to kubectl a date and "=" are texts.
_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern) for tag, pattern in resolvers if tag not in (_INT, _FLOAT, f"{_TAG}timestamp", f"{_TAG}value")
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_NO_NUMBER = re.compile(r"([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z")
_Loader.add_implicit_resolver(_FLOAT, _NO_NUMBER, list("-+."))
_Loader.add_implicit_resolver(f"{_TAG}bool", re.compile(r"[yYnN]\Z"), list("yYnN"))
_Loader.add_constructor(_INT, _Loader.construct_number)
_Loader.add_constructor(_FLOAT, _Loader.construct_number)
_Loader.add_constructor(f"{_TAG}bool", _Loader.construct_truth)
_Loader.add_constructor(f"{_TAG}timestamp", _Loader.construct_text)


def documents(text: str, source: str) -> Iterator[Document]:
    """The objects of a file, in its order; empty documents are passed over.

    Raises:
        DocumentError: it is not YAML, or holds something that is no object.
    """
    try:
        contents = [each for each in yaml.load_all(text, _Loader) if each is not None]
        json.dumps(contents, allow_nan=False)  # an object is what JSON can express
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
