"""What a schema refuses: the reason and the field of each cause."""

from __future__ import annotations

import pytest

from kube_simulator.schema import custom
from kube_simulator.schema.structural import validate
from tests.unit.kube_simulator.schema_parts import INTEGER, TEXT, Json, a_list, an_object, by_keys

FIELDS: Json = {
    "n": {**INTEGER, "format": "int32", "minimum": 1, "maximum": 9, "exclusiveMaximum": True, "multipleOf": 2},
    "s": {**TEXT, "minLength": 1, "maxLength": 3, "pattern": "^[a-z]*$"},
    "e": {**TEXT, "enum": ["a", "b"]},
    "f": {**TEXT, "format": "date-time"},
    "either": {"x-kubernetes-int-or-string": True},
    "null": {**TEXT, "nullable": True},
    "l": a_list(INTEGER, minItems=1, maxItems=2),
    "set": a_list(TEXT, **{"x-kubernetes-list-type": "set"}),
    "map": a_list(an_object({"k": TEXT}, required=["k"]), **by_keys("k")),
    "o": an_object({"a": INTEGER}, required=["a"]),
    "m": an_object(additionalProperties=INTEGER, maxProperties=1),
    "any": {"anyOf": [{"minimum": 5}, {"maximum": 1}], **INTEGER},
    "one": {"oneOf": [{"minimum": 5}, {"minimum": 7}], **INTEGER},
    "not": {"not": {"minimum": 5}, **INTEGER},
}
NODE = custom.node_of(an_object({"spec": an_object(FIELDS)}))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("n", 2), ("n", 4.0), ("s", "abc"), ("e", "a"), ("f", "2026-01-01T00:00:00Z"), ("either", 1)),
        *(
            ("either", "a"),
            ("null", None),
            ("l", [1]),
            ("set", ["a", "b"]),
        ),
        *(("map", [{"k": "a"}, {"k": "b"}]), ("o", {"a": 1}), ("m", {"x": 1}), ("any", 0), ("one", 6), ("not", 1)),
    ],
)
def test_what_fits_is_taken(field: str, value: object) -> None:
    assert validate(NODE, {"spec": {field: value}}) == []


@pytest.mark.parametrize(
    ("field", "value", "reason", "at"),
    [
        ("n", "1", "TypeInvalid", "spec.n"),
        ("n", True, "TypeInvalid", "spec.n"),
        ("n", 1.5, "TypeInvalid", "spec.n"),
        ("n", 0, "Invalid", "spec.n"),
        ("n", 9, "Invalid", "spec.n"),
        ("n", 3, "Invalid", "spec.n"),
        ("s", "", "Invalid", "spec.s"),
        ("s", "abcd", "TooLong", "spec.s"),
        ("s", "A", "Invalid", "spec.s"),
        ("s", None, "TypeInvalid", "spec.s"),
        ("e", "c", "NotSupported", "spec.e"),
        ("f", "yesterday", "TypeInvalid", "spec.f"),
        ("either", 1.5, "TypeInvalid", "spec.either"),
        ("l", [], "Invalid", "spec.l"),
        ("l", [1, 2, 3], "TooMany", "spec.l"),
        ("l", ["a"], "TypeInvalid", "spec.l[0]"),
        ("set", ["a", "a"], "Duplicate", "spec.set[1]"),
        ("map", [{"k": "a"}, {"k": "a"}], "Duplicate", "spec.map[1]"),
        ("o", {}, "Required", "spec.o.a"),
        ("m", {"x": "a"}, "TypeInvalid", "spec.m.x"),
        ("m", {"x": 1, "y": 1}, "TooMany", "spec.m"),
        ("any", 3, "Invalid", "<nil>"),
        ("one", 8, "Invalid", "<nil>"),
        ("not", 6, "Invalid", "<nil>"),
    ],
)
def test_what_does_not_fit_is_refused(field: str, value: object, reason: str, at: str) -> None:
    found = {(cause.reason, cause.field) for cause in validate(NODE, {"spec": {field: value}})}
    assert (f"FieldValue{reason}", at) in found
