import pytest

from lab.cache import BuildError
from tests.run_tiers import (
    TIERS,
    Outcome,
    Result,
    Tier,
    command_of,
    exit_code,
    prepare,
    run_beside,
    split_arguments,
    summary,
    turns,
)

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


def test_tiers_that_run_beside_the_one_before_share_its_turn() -> None:
    first, second, third = (Tier(name, beside=name == "second") for name in ("first", "second", "third"))
    assert turns([first, second, third]) == [[first, second], [third]]


def test_every_tier_has_one_turn() -> None:
    assert [tier for turn in turns(TIERS) for tier in turn] == list(TIERS)


def test_what_a_tier_needs_is_built_in_order_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    built: list[str] = []
    tier = Tier("new", needs={"one": lambda: built.append("one"), "two": lambda: built.append("two")})
    assert prepare(tier) is None
    assert built == ["one", "two"]
    assert [line.partition(",")[0] for line in capsys.readouterr().out.splitlines()] == ["new: one", "new: two"]


def test_what_cannot_be_built_is_named_and_nothing_is_built_after_it() -> None:
    def fail() -> None:
        raise BuildError("no compiler")

    built: list[str] = []
    assert prepare(Tier("new", needs={"one": fail, "two": lambda: built.append("two")})) == "one: no compiler"
    assert built == []


def test_what_takes_long_to_build_is_built_before_the_tiers_whose_tests_use_it() -> None:
    needs = {tier.name: set(tier.needs) for tier in TIERS}
    compiled = {"Kubernetes", "Helm", "Prometheus", "prometheus-operator"}
    assert needs["integration on kubernetes"] >= compiled
    assert needs["e2e on a real node"] >= compiled | {"CoreDNS", "the operator's image"}


def test_a_tier_without_tests_says_so() -> None:
    assert command_of(Tier("new", folder="docs"), []) == "it has no tests"


def test_a_recipe_is_left_out_where_the_arguments_select_tests() -> None:
    assert command_of(Tier("lint", recipe=("lint",)), ["-k", "queue"]) == "the arguments select tests"
    assert command_of(Tier("lint", recipe=("lint",)), []) == ["just", "lint"]


@pytest.mark.parametrize("measured", [True, False])
def test_only_a_measured_tier_is_traced(measured: bool) -> None:
    command = command_of(Tier("unit", folder="tests/unit", cluster="simulator", measured=measured), ["-x"])
    assert ("--cov" in command, "--no-cov" in command) == (measured, not measured)
    assert command[-3:] == ["--cluster=simulator", "tests/unit", "-x"]


def test_a_turn_of_which_nothing_is_selected_is_left_out_as_a_whole() -> None:
    tiers = [Tier("lint", recipe=("lint",)), Tier("e2e", folder="tests/e2e", beside=True)]
    outcomes = run_beside(tiers, ["tests/unit"])
    assert [(outcome.tier, outcome.result) for outcome in outcomes] == [
        ("lint", Result.LEFT_OUT),
        ("e2e", Result.LEFT_OUT),
    ]


def test_tiers_of_a_turn_run_each_to_its_own_end(capfd: pytest.CaptureFixture[str]) -> None:
    tiers = [
        Tier("first", folder="tests/unit/lab", cluster="simulator"),
        Tier("second", folder="tests/unit/docs", beside=True),
    ]
    outcomes = run_beside(tiers, ["--collect-only", "-q", "-k", "no_test_is_called_so"])
    assert [outcome.result for outcome in outcomes] == [Result.LEFT_OUT, Result.LEFT_OUT]
    shown = capfd.readouterr().out
    assert "=== first and, beside it, second ===" in shown
    assert "=== second ===" in shown
