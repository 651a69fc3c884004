import pytest

from tests.run_tiers import Outcome, Result, exit_code, split_arguments, summary

PASSED = Outcome("unit", Result.PASSED, took_s=2.6)
FAILED = Outcome("lint", Result.FAILED, "exit code 1")
LEFT_OUT = Outcome("e2e", Result.LEFT_OUT, "no containerd")


def test_the_closing_line_names_each_tier_and_why_it_did_not_pass() -> None:
    assert summary([FAILED, PASSED, LEFT_OUT]) == (
        "tiers: lint failed (exit code 1); unit passed in 3 s; e2e left out (no containerd)"
    )


@pytest.mark.parametrize(
    ("outcomes", "complete", "code"),
    [
        ([PASSED], True, 0),
        ([PASSED, FAILED], False, 1),
        ([PASSED, LEFT_OUT], False, 0),
        ([PASSED, LEFT_OUT], True, 1),
    ],
)
def test_a_tier_left_out_fails_a_run_that_must_be_complete(outcomes: list[Outcome], complete: bool, code: int) -> None:
    assert exit_code(outcomes, complete=complete) == code


@pytest.mark.parametrize(
    ("arguments", "selected"),
    [
        ([], ["tests/unit"]),
        (["-k", "queue"], ["tests/unit", "-k", "queue"]),
        (["tests/unit/test_a.py::test_x", "-x"], ["tests/unit/test_a.py::test_x", "-x"]),
        (["tests/e2e"], None),
        (["tests/unit-of-another-kind"], None),
        (["tests/e2e", "tests/unit"], ["tests/unit"]),
    ],
)
def test_paths_among_the_arguments_select_within_their_own_tier(
    arguments: list[str], selected: list[str] | None
) -> None:
    assert split_arguments(arguments, "tests/unit") == selected
