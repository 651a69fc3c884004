"""Objects that keep and break rules in CEL, changes of them, and changes of objects older than their schema."""

from tests.unit.kube_simulator.schema.schema_parts import (
    EITHER,
    INTEGER,
    TEXT,
    Json,
    a_list,
    an_object,
    by_keys,
    rule,
    ruled,
)

RULED_FIELDS: Json = {
    "n": ruled(INTEGER, rule("self > 2"), rule("self != 7", "not seven")),
    "s": ruled(
        {**TEXT, "maxLength": 20}, rule("self.startsWith('a')", messageExpression="'must start with a, not ' + self")
    ),
    "l": ruled(
        a_list(ruled(INTEGER, rule("self > 0", "pos", reason="FieldValueForbidden")), maxItems=5),
        rule("self.all(x, x < 10)"),
    ),
    "m": an_object(additionalProperties=ruled({**TEXT, "maxLength": 10}, rule("self != 'x'", "no x")), maxProperties=5),
    "o": ruled(
        an_object({"a": INTEGER, "b": INTEGER, "c": an_object({"d": INTEGER})}),
        rule("self.a < self.b", "a<b", fieldPath=".a", reason="FieldValueRequired"),
        rule("!has(self.c) || self.c.d > 0", "d", fieldPath=".c.d", reason="FieldValueDuplicate"),
    ),
    "imm": ruled({**TEXT, "maxLength": 10}, rule("self == oldSelf", "immutable")),
    "opt": ruled({**TEXT, "maxLength": 10}, rule("oldSelf.hasValue() || self != 'bad'", "opt", optionalOldSelf=True)),
    "ml": a_list(
        an_object({"k": {**TEXT, "maxLength": 5}, "v": ruled(INTEGER, rule("self >= oldSelf", "up"))}, required=["k"]),
        maxItems=5,
        **by_keys("k"),
    ),
    "t": ruled({**TEXT, "format": "date-time"}, rule("self > timestamp('2020-01-01T00:00:00Z')", "late")),
    "d": ruled({**TEXT, "format": "duration"}, rule("self > duration('1h')", "long")),
    "by": ruled({**TEXT, "format": "byte", "maxLength": 10}, rule("self.size() > 1", "bytes")),
    "either": ruled(EITHER, rule("self == 'a' || self == 1", "either")),
    "num": ruled({"type": "number"}, rule("self > 1.5", "num")),
    "dash": ruled(
        an_object({"a-b": INTEGER, "x.y": INTEGER, "c/d": INTEGER, "in": INTEGER}),
        rule("self.a__dash__b > 0 && self.x__dot__y > 0 && self.c__slash__d > 0 && self.__in__ > 0", "dash"),
    ),
    "err": ruled(an_object({"z": INTEGER, "y": INTEGER}), rule("self.z > 0")),
    "div": ruled(INTEGER, rule("10 / self > 1")),
    "multi": ruled(INTEGER, rule("self > 1 &&\n self < 5", "1..5")),
    "lib": ruled({**TEXT, "maxLength": 10}, rule("self.lowerAscii() == 'a'", "lib")),
}
RULES = ruled(
    an_object({"spec": ruled(an_object(RULED_FIELDS), rule("!has(self.n) || self.n != 9", "spec9"))}),
    rule("self.metadata.name != 'bad'", "bad name"),
    rule("!has(self.spec) || !has(self.spec.n) || self.spec.n != 8"),
)
RULED: list[Json] = [
    *({"n": value} for value in (1, 7, 8, 9, "x")),
    *({"s": "b"}, {"l": [0, 3]}, {"l": [1, 11]}, {"m": {"k": "x"}}, {"m": {"a.b": "x"}}),
    *({"o": {"a": 2, "b": 1}}, {"o": {"a": 1}}, {"o": {"a": 1, "b": 2, "c": {"d": 0}}}),
    *({"imm": "x"}, {"opt": "bad"}, {"t": "2019-01-01T00:00:00Z"}, {"d": "30m"}, {"d": "2h"}, {"by": "YQ=="}),
    *({"by": "YWE="}, {"either": 2}, {"either": 1}, {"either": "b"}, {"num": 1}, {"num": 2}),
    *({"dash": {"a-b": 1, "x.y": 1, "c/d": 1, "in": 1}}, {"dash": {"a-b": 0, "x.y": 1, "c/d": 1, "in": 1}}),
    *({"err": {}}, {"err": {"y": 1}}, {"div": 0}, {"div": 10}, {"multi": 9}, {"lib": "A"}, {"lib": "b"}),
    *({"n": 1, "s": 1}, {"n": 1, "l": [1, 2, 3, 4, 5, 6]}, {"n": 1, "d": "x"}),
]
STANDING: Json = {"n": 5, "imm": "a", "opt": "ok", "ml": [{"k": "a", "v": 1}, {"k": "b", "v": 2}], "l": [1]}
CHANGES: list[Json] = [
    *({"spec": {"imm": "b"}}, {"spec": {"imm": None}}, {"spec": {"opt": "bad"}}, {"spec": {"n": 6}}),
    {"spec": {"ml": [{"k": "a", "v": 0}, {"k": "b", "v": 2}]}},
    {"spec": {"ml": [{"k": "b", "v": 3}, {"k": "c", "v": 0}]}},
]

LOOSE = an_object(
    {
        "spec": an_object(
            {
                "a": INTEGER,
                "b": INTEGER,
                "l": a_list(INTEGER, maxItems=5),
                "k": a_list(an_object({"n": TEXT, "v": INTEGER}, required=["n"]), maxItems=5, **by_keys("n")),
                "sub": an_object({"x": INTEGER, "y": INTEGER}),
            }
        )
    }
)
TIGHT = an_object(
    {
        "spec": ruled(
            an_object(
                {
                    "a": {**INTEGER, "minimum": 5},
                    "b": ruled(INTEGER, rule("self > 5", "b5")),
                    "l": a_list({**INTEGER, "minimum": 5}, maxItems=5),
                    "k": a_list(
                        an_object({"n": TEXT, "v": {**INTEGER, "minimum": 5}}, required=["n"]),
                        maxItems=5,
                        **by_keys("n"),
                    ),
                    "sub": ruled(
                        an_object({"x": INTEGER, "y": INTEGER, "z": INTEGER}, required=["z"]), rule("self.x > 5", "x5")
                    ),
                }
            ),
            rule("self.a + self.b > 10", "ab"),
        )
    }
)
OLDER: Json = {"a": 1, "b": 1, "l": [1, 2], "k": [{"n": "p", "v": 1}, {"n": "q", "v": 2}], "sub": {"x": 1, "y": 1}}
RATCHETS: list[Json] = [
    *({"metadata": {"labels": {"a": "b"}}}, {"spec": {"a": 2}}, {"spec": {"b": 2}}, {"spec": {"l": [1, 2, 3]}}),
    *({"spec": {"l": [2, 1]}}, {"spec": {"sub": {"y": 2}}}, {"spec": {"a": 6}}, {"spec": {"a": 6, "b": 6}}),
    {"spec": {"a": 6, "b": 6, "k": [{"n": "q", "v": 2}, {"n": "p", "v": 3}, {"n": "r", "v": 4}]}},
]
