from __future__ import annotations

from typing import Any

import pytest

from memcached_operator.render.documents import DocumentError, documents


def read(text: str) -> list[tuple[str, dict[str, Any]]]:
    return [(document.place, document.content) for document in documents(text, "mc.yaml")]


A, B = {"kind": "A"}, {"kind": "B"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("kind: A\nspec: {size: 3}\n", [("mc.yaml", {"kind": "A", "spec": {"size": 3}})]),
        # Several are counted, and empty ones are not.
        ("---\n---\nkind: A\n---\n# nothing\n---\nkind: B\n", [("mc.yaml, document 1", A), ("mc.yaml, document 2", B)]),
        ("kind: List\nitems: [{kind: A}, {kind: B}]", [("mc.yaml, item 1", A), ("mc.yaml, item 2", B)]),
        ("kind: MemcachedList\nitems: [{kind: A}]", [("mc.yaml, item 1", A)]),
        # A key is a text in the words of JSON, an anchor what it stands for.
        ("{1: a, y-z: c}", [("mc.yaml", {"1": "a", "y-z": "c"})]),
        # As JSON writes it, and as it is.
        ('{"a": "\\ud83d\\udca9 ä", "💩": 1}', [("mc.yaml", {"a": "💩 ä", "💩": 1})]),
        ("a: &x {b: 1}\nd: {<<: *x, e: 2}", [("mc.yaml", {"a": {"b": 1}, "d": {"b": 1, "e": 2}})]),
    ],
)
def test_documents_are_read_with_their_places(text: str, found: list[tuple[str, dict[str, Any]]]) -> None:
    assert read(text) == found


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *(
            ("3", 3),
            ("-3", -3),
            ("1_0", 10),
            ("010", 8),
            ("0o10", 8),
            ("0x1F", 31),
            ("0b11", 3),
            (".5", 0.5),
            ("1e-1", 0.1),
        ),
        *(("3a", "3a"), ("1e", "1e"), ("0xg", "0xg"), ("1.2.3", "1.2.3"), ("+-3", "+-3"), ("_1", "_1")),
        *(("3.0", 3), ("1e1", 10), ("-0.0", 0), ("2147483647.0", 2147483647), ("!!float 3", 3), ("!!int '3'", 3)),
        *(("08", 8), ("2.5", 2.5), ("1e21", 1e21), ("1:30", "1:30"), ("'3.0'", "3.0"), ("!!str 3.0", "3.0")),
        *(("=", "="), ("y", True), ("N", False), ("yes", True), ("yesterday", "yesterday"), ("no-cache", "no-cache")),
        ("!!timestamp 2026-11-21", "2026-11-21"),
    ],
)
def test_a_value_is_what_it_is_to_kubectl(written: str, value: object) -> None:
    ((_, content),) = read(f"size: {written}")
    assert content == {"size": value}
    assert type(content["size"]) is type(value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: A\n  spec: 3\n", "mc.yaml, line 2, column 7: not valid YAML"),
        ("spec:\n  size: 1\n  size: 2\n", "mc.yaml, line 2, column 3: not valid YAML: the key 'size' occurs twice"),
        ("1: a\n'1': b\n", "the key '1' occurs twice"),
        ("a: !!int 3.0\n", "mc.yaml, line 1, column 4: not valid YAML: '3.0' is not a !!int"),
        ("a: -.inf\n", "mc.yaml: contains a value that JSON cannot represent"),
        ('a: "\\udca9"\n', "mc.yaml: contains a value that JSON cannot represent"),
        ('{"\\ud83d": 1}', "mc.yaml: contains a value that JSON cannot represent"),
        ("a: !!map 3\n", "mc.yaml, line 1, column 4: not valid YAML: expected a mapping node"),
        ("a: !!bool 3\n", "not valid YAML: '3' is not a !!bool"),
        ("- a\n", "mc.yaml: is not an object"),
        ("kind: A\n---\ntext\n", "mc.yaml, document 2: is not an object"),
        ("kind: List\nitems: [a]\n", "mc.yaml, item 1: is not an object"),
        ("a: !!binary aGk=\n", "mc.yaml: contains a value that JSON cannot represent"),
        ("a: &x [*x]\n", "mc.yaml: contains a value that JSON cannot represent"),
        ("a: \x00\n", "mc.yaml: not a text in YAML"),
        ("a: !!python/name:os.system x\n", "not valid YAML"),
    ],
)
def test_what_is_no_object_is_named_with_its_place(text: str, words: str) -> None:
    with pytest.raises(DocumentError) as raised:
        read(text)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
