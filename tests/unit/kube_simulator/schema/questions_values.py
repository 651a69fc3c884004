"""Values that do and do not fit a schema: a field of a custom resource for each kind of schema, and values for it."""

from typing import Any

from tests.unit.kube_simulator.schema.schema_parts import (
    EITHER,
    INTEGER,
    OPEN,
    TEXT,
    Json,
    a_list,
    an_object,
    by_keys,
)

FIELDS: dict[str, tuple[Json, list[Any]]] = {
    "int": (INTEGER, ["3", True, 1.5, 3.0, 2**63, 2**63 - 1, -(2**63) - 1, None, [], {}, 1e20]),
    "int32": ({**INTEGER, "format": "int32"}, ["3", True, 1.5, 3.0, 2**31, -(2**31) - 1, None, [], {}]),
    "int64": ({**INTEGER, "format": "int64"}, ["x", True, 1.5, 2**63, {}, []]),
    "flt": ({"type": "number", "format": "float"}, [1, 1e39, "x", True, []]),
    "dbl": ({"type": "number", "format": "double"}, [1, "x"]),
    "str": (TEXT, [1, 1.5, True, None, [], {}, 2**63]),
    "bool": ({"type": "boolean"}, ["true", 1, None, {}]),
    "obj": (
        an_object({"a": TEXT}, required=["a", "b"]),
        [{}, {"a": 1}, {"a": None}, [], "x", None, {"a": "x", "b": 1}, {"c": 1}],
    ),
    "map": (an_object(additionalProperties=INTEGER), [{"a": "x"}, {"a.b": "x", "c": 1.5}, {"a": None}, []]),
    "arr": (a_list(TEXT), ["x", {}, [1], ["a", None], [["a"]]]),
    "rng": ({**INTEGER, "minimum": 1, "maximum": 10}, [0, 11, 5]),
    "rngx": (
        {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 5, "exclusiveMaximum": True},
        [0, 5, 0.5, 1],
    ),
    "mult": ({**INTEGER, "multipleOf": 5}, [7, 10]),
    "len": ({**TEXT, "minLength": 2, "maxLength": 4}, ["a", "abcde", "äöüß", "ä"]),
    "pat": ({**TEXT, "pattern": "^[a-z]+$"}, ["A", "ab\n", "", "ab"]),
    "pat3": (
        {**TEXT, "pattern": r"^[[:alpha:]][]\w-]*(?i:x)\.\x{41}[[a&&b]\z|^\Q(\E$"},
        ["aX.Ab", "a]-x.A[", "(", "a]x.A&", "aX.A", "a.A[", "(\n"],
    ),
    "enum": ({**TEXT, "enum": ["red", "blue"]}, ["green", 1, None]),
    "enumi": ({**INTEGER, "enum": [1, 2]}, [3, "1", 1.0, 2.0, 2.5]),
    "items": (a_list(INTEGER, minItems=2, maxItems=3), [[1], [1, 2, 3, 4], ["a", "b"]]),
    "props": (
        an_object(additionalProperties=TEXT, minProperties=1, maxProperties=2),
        [{}, {"a": "1", "b": "2", "c": "3"}],
    ),
    "set": (a_list(TEXT, **{"x-kubernetes-list-type": "set"}), [["a", "a"], ["a", "b", "a", "a", "b"], [1, 1]]),
    "maplist": (
        a_list(an_object({"k": TEXT, "v": TEXT}, required=["k"]), **by_keys("k")),
        [[{"k": "a"}, {"k": "a"}, {"k": "a"}], ["x"], [{"v": "x"}, {"v": "y"}], [None]],
    ),
    "maplist2": (
        a_list(an_object({"k": TEXT, "n": INTEGER, "v": TEXT}, required=["k", "n"]), **by_keys("k", "n")),
        [[{"k": "a", "n": 1}, {"k": "a", "n": 1}], [{"k": "a", "n": 1}, {"k": "a", "n": 2}]],
    ),
    "either": (EITHER, [1, "a", 1.5, True, None, [], 2**31, 2.0]),
    "any": (OPEN, [1, None, {"a": None}]),
    "free": (
        an_object({"a": INTEGER, "o": an_object({"z": TEXT})}, **OPEN),
        [{"a": "x"}, {"b": 1, "o": {"z": 1, "y": 2}}, [], {"c": None, "a": None}],
    ),
    "anyof": ({**INTEGER, "anyOf": [{"minimum": 10}, {"maximum": 2}]}, [5, 1]),
    "oneof": (
        an_object({"a": TEXT, "b": TEXT}, oneOf=[{"required": ["a"]}, {"required": ["b"]}]),
        [{}, {"a": "1", "b": "2"}, {"a": "x"}],
    ),
    "allof": ({**INTEGER, "allOf": [{"minimum": 10}, {"maximum": 20}]}, [5, 25, 15]),
    "not": ({**TEXT, "not": {"enum": ["no"]}}, ["no", "yes"]),
    "nest": (
        an_object({"l": a_list(an_object({"q": {**INTEGER, "maximum": 3}}))}),
        [{"l": [{"q": 1}, {"q": 9, "z": 2}], "y": {"a": 1}}],
    ),
    "def": (
        an_object(
            {
                "x": {**INTEGER, "default": 7},
                "l": a_list({**TEXT, "default": "dd"}),
                "m": an_object(additionalProperties={**TEXT, "default": "mm"}),
                "n": {**TEXT, "nullable": True, "default": "nn"},
            },
            default={},
        ),
        [None, {}, {"x": None, "l": [None, "a"], "m": {"k": None}, "n": None}],
    ),
    "addtrue": (an_object(additionalProperties=True), [{"a": {"b": None}}]),
}
FORMATS: dict[str, list[str]] = {
    "uri": ["http://a/b", "a", "/a", "http://", "://", "urn:x", "http://a b", "http://a:x/", "http://[::1]:1/%zz"],
    "ipv4": ["1.2.3.4", "01.2.3.4", "1.2.3", "::1"],
    "ipv6": ["::1", "1.2.3.4", "fe80::1%eth0", "::ffff:1.2.3.4"],
    "cidr": ["1.2.3.4/8", "1.2.3.4", "::/0", "1.2.3.4/33", "01.2.3.4/8"],
    "uuid": ["12345678-1234-1234-1234-123456789abc", "12345678123412341234123456789ABC", "x"],
    "byte": ["YQ==", "YQ=", "!", "", "YWI", "-_8="],
    "date": ["2026-01-02", "2026-1-2", "2026-02-30", "x", "20260102"],
    "duration": ["1h30m", "PT1H", "1.5h", "-1h", "3 days", "", "0", "5", "1h 2x", "12 parsecs", "1d"],
    "date-time": [
        *("2026-01-02T03:04:05Z", "2026-01-02t03:04:05z", "2026-01-02 03:04:05Z", "2026-01-02T03:04:05"),
        *("2026-01-02T03:04:05.123+01:00", "2026-01-02T24:04:05Z", "2026-01-02T03:04:60Z", "x", "2026-02-30T00:00:00Z"),
        *("", "2026-01-02T03:04:05,5Z", "2026-01-02T03:04:05+0100"),
    ],
    "k8s-short-name": ["a-b", "A", "-a", "a" * 64],
    "k8s-long-name": ["a.b", "A", "a..b", "a" * 254],
}
for _format, _values in FORMATS.items():
    FIELDS[f"f-{_format}"] = ({**TEXT, "format": _format}, list(_values))

VALUES = an_object({"spec": an_object({name: schema for name, (schema, _) in FIELDS.items()})})
