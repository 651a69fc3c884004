"""What is found by a pattern, or said of one that is none; a real server is asked in tests/conformance."""

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.schema import expressions, patterns

SELF = frozenset({"self"})


@pytest.mark.parametrize(
    "pattern",
    [r"\p{Letter}", r"[^\p{Uppercase_Letter}]", r"\B", r"\\\C", "a{1,999999999}", "a++"],
)
def test_a_pattern_of_which_go_may_think_otherwise_is_neither_taken_nor_refused(pattern: str) -> None:
    with pytest.raises(patterns.UnknownPattern):
        patterns.compiled(pattern)
    patterns.compiled(r"\Q\B\E\\B")


@pytest.mark.parametrize(
    ("text", "value", "result"),
    [
        (r"self.matches('^\\d$')", "٣", False),
        (r"matches(self, r'^\d$')", "3", True),
        ("self == 'matches(a' && self.matches('^matches[(]')", "matches(a", True),
        ("[self].exists(matches, matches.matches('a'))", "a", True),
        ("self.matches('a') || self.matches(self)", "a(", True),
    ],
)
def test_cel_means_by_a_pattern_what_go_means(text: str, value: str, result: object) -> None:
    assert expressions.compiled(text, SELF).evaluate({"self": value}) == result


def test_a_pattern_that_turns_out_to_be_unknown_is_501() -> None:
    with pytest.raises(ApiError) as refused:
        expressions.compiled("self.matches(self)", SELF).evaluate({"self": r"\B"})
    assert refused.value.code == 501
