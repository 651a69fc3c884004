from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest

from lab.cache import BuildError
from tests import run_tiers
from tests.run_tiers import Builds, Outcome, Plan, Result, command_of, exit_code, run, split_arguments, summary, turns
from tests.tiers import TIERS, Tier
from tests.time_table import Case, Spent

PASSED = Outcome("unit", Result.PASSED, spent=Spent(2.6, 4.0))
FAILED = Outcome("lint", Result.FAILED, "exit code 1", Spent(60.0, 60.0))
LEFT_OUT = Outcome("e2e", Result.LEFT_OUT, "no containerd")
LEFT_TO_ALL = [Outcome("image", Result.LEFT_TO_ALL), Outcome("helm", Result.LEFT_TO_ALL)]
QUICK, EVERYTHING = Plan(everything=False), Plan(everything=True)


def command(tier: Tier, plan: Plan) -> list[str]:
    """The command of a tier that is not left out."""
    found = command_of(tier, plan)
    assert isinstance(found, list)
    return found


def test_the_closing_line_names_each_tier_and_why_it_did_not_pass() -> None:
    assert summary([FAILED, PASSED, LEFT_OUT]) == (
        "tiers: lint failed (exit code 1); unit passed in 3 s; e2e left out (no containerd)"
    )


def test_the_closing_line_says_how_many_tests_were_skipped() -> None:
    cases = [Case("test_a", 0.1), Case("test_b", 0.0, "no kubectl")]
    outcome = Outcome("unit", Result.PASSED, spent=Spent(2.6, 4.0), cases=cases)
    assert summary([outcome]) == "tiers: unit passed in 3 s (1 skipped)"


def test_the_closing_line_names_the_tiers_that_were_left_to_all() -> None:
    assert summary([PASSED, *LEFT_TO_ALL]) == (
        "tiers: unit passed in 3 s; left to ./dev test --all: tests marked slow, image, helm"
    )


@pytest.mark.parametrize(
    ("outcomes", "complete", "code"),
    [
        ([PASSED], True, 0),
        ([PASSED, FAILED], False, 1),
        ([PASSED, LEFT_OUT], False, 0),
        ([PASSED, LEFT_OUT], True, 1),
        ([PASSED, *LEFT_TO_ALL], False, 0),
        ([PASSED, *LEFT_TO_ALL], True, 1),
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


def test_every_tier_has_one_turn_and_a_name_of_its_own() -> None:
    assert [tier for turn in turns(TIERS) for tier in turn] == list(TIERS)
    assert len({tier.name for tier in TIERS}) == len(TIERS)


@pytest.mark.parametrize(
    ("arguments", "plan"),
    [
        ([], Plan(everything=False)),
        (["-k", "queue"], Plan(everything=False, arguments=("-k", "queue"))),
        (["--all", "-x"], Plan(everything=True, arguments=("-x",))),
        (["--coverage"], Plan(everything=False, coverage=True)),
        (["tests/faults"], Plan(everything=True, arguments=("tests/faults",))),
    ],
)
def test_everything_runs_where_all_is_asked_for_or_a_path_is_named(arguments: list[str], plan: Plan) -> None:
    assert Plan.of(arguments) == plan


def test_without_all_the_tiers_run_that_need_no_more_than_python() -> None:
    assert {tier.name for tier in TIERS if isinstance(command_of(tier, QUICK), list)} == {
        "lint",
        "docs",
        "demo",
        "unit",
        "conformance on the simulator",
        "integration on the simulator",
        "examples on the simulator",
    }


def test_what_is_needed_is_built_once_in_order_and_a_tier_waits_for_its_own() -> None:
    built: list[str] = []
    needs: Mapping[str, Callable[[], object]] = {name: partial(built.append, name) for name in ("one", "two")}
    builds = Builds(needs)
    assert builds.wait_for(Tier("new", needs=needs)) is None
    assert builds.wait_for(Tier("newer", needs=needs)) is None
    builds.close()
    assert built == list(builds.took_s) == ["one", "two"]


def test_what_cannot_be_built_is_named_and_fails_only_the_tiers_that_need_it() -> None:
    def fail() -> None:
        raise BuildError("no compiler")

    needs: Mapping[str, Callable[[], object]] = {"one": fail, "two": lambda: None}
    builds = Builds(needs)
    assert builds.wait_for(Tier("new", needs=needs)) == "one: no compiler"
    assert builds.wait_for(Tier("other", needs={"two": needs["two"]})) is None
    builds.close()
    not_required = Builds(needs, required=False)
    assert not_required.wait_for(Tier("new", needs=needs)) is None
    not_required.close()


def test_what_takes_long_to_build_is_built_before_the_tiers_whose_tests_use_it() -> None:
    needs = {tier.name: set(tier.needs) for tier in TIERS}
    compiled = {"Kubernetes", "Helm", "Prometheus", "prometheus-operator"}
    assert needs["integration on kubernetes"] >= compiled
    assert needs["e2e on a real node"] >= compiled | {"CoreDNS", "the operator's image"}


@pytest.mark.parametrize(
    ("tier", "arguments", "outcome"),
    [
        (Tier("new", folder="docs"), [], (Result.LEFT_OUT, "it has no tests")),
        (Tier("new", folder="tests/unit", lacking=lambda: "no runc"), [], (Result.LEFT_OUT, "no runc")),
        (Tier("lint", recipe=("lint",)), ["-k", "queue"], (Result.LEFT_OUT, "the arguments select tests")),
    ],
)
def test_a_tier_that_cannot_run_says_why(tier: Tier, arguments: list[str], outcome: tuple[Result, str]) -> None:
    found = command_of(tier, Plan(everything=True, arguments=tuple(arguments)))
    assert isinstance(found, Outcome)
    assert (found.result, found.reason) == outcome


def test_a_recipe_is_run_by_just() -> None:
    assert command(Tier("lint", recipe=("lint",)), EVERYTHING) == ["just", "lint"]


@pytest.mark.parametrize("measured", [True, False])
@pytest.mark.parametrize("coverage", [True, False])
def test_a_measured_tier_is_traced_where_coverage_is_asked_for(measured: bool, coverage: bool) -> None:
    tier = Tier("unit", folder="tests/unit", cluster="simulator", measured=measured)
    found = command(tier, Plan(everything=True, coverage=coverage, arguments=("-x",)))
    traced = measured and coverage
    assert ("--cov" in found, "--no-cov" in found) == (traced, not traced)
    assert found[-3:] == ["--cluster=simulator", "tests/unit", "-x"]


def test_the_whole_of_a_tier_is_shared_among_its_workers_and_a_few_tests_are_not() -> None:
    tier = Tier("unit", folder="tests/unit", workers=3)
    assert "--numprocesses=3" in command(tier, EVERYTHING)
    assert "--numprocesses=3" not in command(tier, Plan(everything=True, arguments=("-k", "queue")))


def test_slow_tests_are_left_to_all() -> None:
    tier = Tier("unit", folder="tests/unit", quick=True)
    assert command(tier, QUICK)[-3:] == ["-m", "not slow", "tests/unit"]
    assert "not slow" not in command(tier, EVERYTHING)


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This run must not remove those of the run that it is a test of."""
    for name in ("_COVERAGE_DIR", "_REPORT_DIR"):
        monkeypatch.setattr(run_tiers, name, tmp_path / name)


@pytest.mark.usefixtures("reports")
def test_a_run_of_which_nothing_is_selected_builds_nothing() -> None:
    def build() -> None:
        pytest.fail("for nobody")

    tiers = [Tier("lint", recipe=("lint",)), Tier("e2e", folder="tests/e2e", beside=True, needs={"it": build})]
    outcomes = run(tiers, Plan(everything=True, arguments=("tests/unit",)))
    assert [outcome.result for outcome in outcomes] == [Result.LEFT_OUT, Result.LEFT_OUT]


@pytest.mark.usefixtures("reports")
def test_a_quick_run_builds_kubectl_and_no_more() -> None:
    built: list[str] = []
    needs: Mapping[str, Callable[[], object]] = {name: partial(built.append, name) for name in ("kubectl", "Helm")}
    tier = Tier("quick", folder="tests/unit/lab/node", quick=True, needs=needs)
    assert [
        outcome.result for outcome in run([tier], Plan(everything=False, arguments=("-k", "no_test_is_called_so")))
    ] == [Result.LEFT_OUT]
    assert built == ["kubectl"]


@pytest.mark.usefixtures("reports")
def test_tiers_of_a_turn_run_each_to_its_own_end(capfd: pytest.CaptureFixture[str]) -> None:
    tiers = [
        Tier("first", folder="tests/unit/lab/node", cluster="simulator"),
        Tier("second", folder="tests/unit/lab/packaging", beside=True),
    ]
    outcomes = run(tiers, Plan(everything=True, arguments=("--collect-only", "-q", "-k", "no_test_is_called_so")))
    assert [outcome.result for outcome in outcomes] == [Result.LEFT_OUT, Result.LEFT_OUT]
    shown = capfd.readouterr().out
    assert "=== first and, beside it, second ===" in shown
    assert "=== second ===" in shown
    assert "=== where the time went ===" in shown
