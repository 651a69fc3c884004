"""What is found by a pattern, or said of one that is none; a real server is asked in tests/conformance."""

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.schema import expressions, patterns

SELF = frozenset({"self"})


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("^(?i)(a|b)?$", "B", ["B"]),
        ("x{,3}", "xx{,3}", ["x{,3}"]),
        ("[[:^alpha:]]", "aé1", ["é", "1"]),
        (r"[]a\]]+", "]a]", ["]a]"]),
        (r"\Qa+\E$", "a+", ["a+"]),
        ("(?s).$", "a\n", ["\n"]),
        ("a*", "baac", ["", "aa", ""]),
        ("", "é-", ["", "", ""]),
        ("(?m)^.", "a\nb", ["a", "b"]),
    ],
)
def test_what_is_found_is_what_go_finds(pattern: str, text: str, found: list[str]) -> None:
    assert patterns.find_all(patterns.compiled(pattern), text) == found


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("a++", "invalid nested repetition operator: `++`"),
        (r"\Q(?<=\E[(?<!](?<=a>b", "invalid named capture: `(?<=a>`"),
        ("(?<", "invalid or unsupported Perl syntax: `(?<`"),
        (r"a\Cb", r"invalid escape sequence: `\C`"),
        (r"\z\Z\C", r"invalid escape sequence: `\Z`"),
        ("a\\", "trailing backslash at end of expression: ``"),
    ],
)
def test_what_is_no_pattern_is_told_in_go_s_words(pattern: str, words: str) -> None:
    with pytest.raises(patterns.InvalidPattern) as refused:
        patterns.compiled(pattern)
    assert str(refused.value) == f"error parsing regexp: {words}"


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"\p{Letter}", r"[^\p{Uppercase_Letter}]", r"\B", "(?P<é>a)", "a{1,999999999}"),
        *("(" * 501 + ")" * 501, r"\pL{900}" * 30),
    ],
)
def test_a_pattern_of_which_go_may_think_otherwise_is_neither_taken_nor_refused(pattern: str) -> None:
    with pytest.raises(patterns.UnknownPattern):
        patterns.compiled(pattern)


@pytest.mark.parametrize("pattern", [r"\QB\B\E", r"\\B", r"\Q\C\E", r"\\C", "[(?<é>]", r"\Qa{1,999999999}\E"])
def test_what_only_looks_like_it_is_taken(pattern: str) -> None:
    patterns.compiled(pattern)


@pytest.mark.parametrize(
    ("text", "value", "result"),
    [
        (r"self.matches('^\\d$')", "٣", False),
        (r"matches(self, r'^\d$')", "3", True),
        ("self == 'matches(a' && self.matches('^matches[(]')", "matches(a", True),
        ("[self].exists(matches, matches.matches('a'))", "a", True),
        (r"self.findAll('\\pL', 1)", "-äb", ["ä"]),
        ("self.matches('a') || self.matches(self)", "a(", True),
    ],
)
def test_cel_means_by_a_pattern_what_go_means(text: str, value: str, result: object) -> None:
    assert expressions.compiled(text, SELF).evaluate({"self": value}) == result


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("self.matches(self)", "error parsing regexp: missing closing ): `(`"),
        ("self.find(self) == ''", "Illegal regex: error parsing regexp: missing closing ): `(`"),
        ("self.matches(dyn(1))", "no such overload"),
    ],
)
def test_a_pattern_that_turns_out_to_be_none_fails_the_evaluation(text: str, words: str) -> None:
    with pytest.raises(expressions.EvaluationError) as failed:
        expressions.compiled(text, SELF).evaluate({"self": "("})
    assert str(failed.value) == words


def test_a_pattern_in_the_text_is_looked_at_when_it_is_compiled() -> None:
    with pytest.raises(expressions.CompileError) as refused:
        expressions.compiled("true &&\n self.matches( 'a++' )", SELF)
    marked = "invalid matches argument\n |  self.matches( 'a++' )\n | ...............^"
    assert str(refused.value) == f"ERROR: <input>:2:16: {marked}"
    with pytest.raises(expressions.CompileError, match="invalid nested repetition operator"):
        expressions.compiled("self.findAll('a++') == []", SELF)
    with pytest.raises(expressions.CompileError, match="the simulator does not know"):
        expressions.compiled(r"self.find(r'\B') == ''", SELF)


def test_a_pattern_that_turns_out_to_be_unknown_is_501() -> None:
    with pytest.raises(ApiError) as refused:
        expressions.compiled("self.matches(self)", SELF).evaluate({"self": r"\B"})
    assert refused.value.code == 501


def test_a_syntax_error_shows_the_expression_as_it_was_written() -> None:
    with pytest.raises(expressions.CompileError) as refused:
        expressions.compiled("self.matches('a'", SELF)
    assert "re2find" not in str(refused.value)
    assert "\n | self.matches('a'\n" in str(refused.value)
