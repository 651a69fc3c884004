from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from lab.cache import BuildError
from tests import run_tiers
from tests.run_tiers import Builds, Outcome, Plan, Result, command_of, exit_code, run, split_arguments, summary, turns
from tests.tiers import TIERS, Run, Tier
from tests.time_table import Case, Spent

PASSED = Outcome("unit", Result.PASSED, spent=Spent(2.6, 4.0))
FAILED = Outcome("lint", Result.FAILED, "exit code 1", Spent(60.0, 60.0))
LEFT_OUT = Outcome("e2e", Result.LEFT_OUT, "no containerd")
LEFT_TO_GATE = [Outcome("core", Result.LEFT_TO_LONGER, "./dev test --gate")]
LEFT_TO_ALL = [Outcome(tier, Result.LEFT_TO_LONGER, "./dev test --all") for tier in ("image", "helm")]
QUICK, GATE, EVERYTHING = Plan(Run.QUICK), Plan(Run.GATE), Plan(Run.ALL)


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


def test_the_closing_line_names_the_tiers_that_were_left_to_longer_runs() -> None:
    assert summary([PASSED, *LEFT_TO_GATE, *LEFT_TO_ALL]) == (
        "tiers: unit passed in 3 s; left to ./dev test --gate: core; "
        "left to ./dev test --all: tests marked slow, image, helm"
    )


def test_the_closing_line_names_the_tests_that_passed_only_alone() -> None:
    assert summary([replace(PASSED, passed_alone=("tests/unit/test_a.py::test_x",))]) == (
        "tiers: unit passed in 3 s; passed only alone: tests/unit/test_a.py::test_x"
    )


@pytest.mark.parametrize(
    ("outcomes", "complete", "code"),
    [
        ([PASSED], True, 0),
        ([PASSED, FAILED], False, 1),
        ([PASSED, LEFT_OUT], False, 0),
        ([PASSED, LEFT_OUT], True, 1),
        ([PASSED, *LEFT_TO_ALL], False, 0),
        ([PASSED, *LEFT_TO_ALL], True, 0),
        ([FAILED, *LEFT_TO_ALL], True, 1),
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
        ([], QUICK),
        (["-k", "queue"], Plan(Run.QUICK, arguments=("-k", "queue"))),
        (["--gate"], GATE),
        (["--all", "-x"], Plan(Run.ALL, arguments=("-x",))),
        (["--coverage"], Plan(Run.QUICK, coverage=True)),
        (["tests/faults"], Plan(Run.ALL, arguments=("tests/faults",))),
    ],
)
def test_everything_runs_where_all_is_asked_for_or_a_path_is_named(arguments: list[str], plan: Plan) -> None:
    assert Plan.of(arguments) == plan


PYTHON_ALONE = {
    "lint",
    "docs",
    "demo",
    "unit",
    "conformance on the simulator",
    "integration on the simulator",
    "examples on the simulator",
}


@pytest.mark.parametrize(
    ("plan", "run"),
    [(QUICK, PYTHON_ALONE), (GATE, PYTHON_ALONE | {"integration on kubernetes"})],
    ids=["quick", "gate"],
)
def test_a_shorter_run_has_the_tiers_that_it_is_for(plan: Plan, run: set[str]) -> None:
    assert {tier.name for tier in TIERS if isinstance(command_of(tier, plan), list)} == run


def test_in_the_gate_each_test_of_the_integration_runs_on_one_server() -> None:
    tiers = {tier.cluster: tier for tier in TIERS if tier.folder == "tests/integration"}
    marks = {cluster: command(tier, GATE)[-3:-1] for cluster, tier in tiers.items()}
    assert marks == {"simulator": ["-m", "not slow and not core"], "kubernetes": ["-m", "not slow and core"]}
    assert command(tiers["simulator"], QUICK)[-3:-1] == marks["simulator"]
    assert all("core" not in " ".join(command(tier, EVERYTHING)) for tier in tiers.values())


def test_no_more_test_processes_than_processors_run_at_once_and_checks_end_before_them() -> None:
    for turn in turns(TIERS):
        tests = [tier for tier in turn if tier.folder is not None]
        assert sum(tier.workers for tier in tests) <= 2, turn
        assert len(tests) in (0, len(turn)), turn


def test_what_is_needed_is_built_once_and_in_order() -> None:
    built: list[str] = []
    needs: Mapping[str, Callable[[], object]] = {name: partial(built.append, name) for name in ("one", "two")}
    builds = Builds(needs)
    assert builds.wrong_for(Tier("new", needs=needs)) is None
    assert built == list(builds.took_s) == ["one", "two"]


def test_what_cannot_be_built_is_named_and_fails_only_the_tiers_that_need_it() -> None:
    def fail() -> None:
        raise BuildError("no compiler")

    needs: Mapping[str, Callable[[], object]] = {"one": fail, "two": lambda: None}
    builds = Builds(needs)
    assert builds.wrong_for(Tier("new", needs=needs)) == "one: no compiler"
    assert builds.wrong_for(Tier("other", needs={"two": needs["two"]})) is None
    assert Builds(needs, required=False).wrong_for(Tier("new", needs=needs)) is None


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
    found = command_of(tier, Plan(Run.ALL, arguments=tuple(arguments)))
    assert isinstance(found, Outcome)
    assert (found.result, found.reason) == outcome


def test_a_recipe_is_run_by_just() -> None:
    assert command(Tier("lint", recipe=("lint",)), EVERYTHING) == ["just", "lint"]


@pytest.mark.parametrize("measured", [True, False])
@pytest.mark.parametrize("coverage", [True, False])
def test_a_measured_tier_is_traced_where_coverage_is_asked_for(measured: bool, coverage: bool) -> None:
    tier = Tier("unit", folder="tests/unit", cluster="simulator", measured=measured)
    found = command(tier, Plan(Run.ALL, coverage=coverage, arguments=("-x",)))
    traced = measured and coverage
    assert ("--cov" in found, "--no-cov" in found) == (traced, not traced)
    assert "--cluster=simulator" in found
    assert found[-2:] == ["tests/unit", "-x"]


def test_the_whole_of_a_tier_is_shared_among_its_workers_and_a_few_tests_are_not() -> None:
    tier = Tier("unit", folder="tests/unit", workers=3)
    assert "--numprocesses=3" in command(tier, EVERYTHING)
    assert "--numprocesses=3" not in command(tier, Plan(Run.ALL, arguments=("-k", "queue")))


def test_slow_tests_are_left_to_all() -> None:
    tier = Tier("unit", folder="tests/unit", since=Run.QUICK)
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
    outcomes = run(tiers, Plan(Run.ALL, arguments=("tests/unit",)))
    assert [outcome.result for outcome in outcomes] == [Result.LEFT_OUT, Result.LEFT_OUT]


@pytest.mark.usefixtures("reports")
def test_a_quick_run_builds_kubectl_and_no_more() -> None:
    built: list[str] = []
    needs: Mapping[str, Callable[[], object]] = {name: partial(built.append, name) for name in ("kubectl", "Helm")}
    tier = Tier("quick", folder="tests/unit/lab/node", since=Run.QUICK, needs=needs)
    assert [outcome.result for outcome in run([tier], Plan(Run.QUICK, arguments=("-k", "no_test_is_called_so")))] == [
        Result.LEFT_OUT
    ]
    assert built == ["kubectl"]


@pytest.mark.usefixtures("reports")
def test_tiers_of_a_turn_run_each_to_its_own_end(capfd: pytest.CaptureFixture[str]) -> None:
    tiers = [
        Tier("first", folder="tests/unit/lab/node", cluster="simulator"),
        Tier("second", folder="tests/unit/lab/packaging", beside=True),
    ]
    outcomes = run(tiers, Plan(Run.ALL, arguments=("--collect-only", "-q", "-k", "no_test_is_called_so")))
    assert [outcome.result for outcome in outcomes] == [Result.LEFT_OUT, Result.LEFT_OUT]
    shown = capfd.readouterr().out
    assert "=== first and, beside it, second ===" in shown
    assert "=== second ===" in shown
    assert "=== where the time went ===" in shown


FLAKY = """
from pathlib import Path

def test_it_always_passes(): pass

def test_it_fails_the_first_time():
    seen = Path(__file__).with_name("seen")
    first = not seen.exists()
    seen.touch()
    assert not first, "a deadline passed"
"""
BROKEN = """
def test_it_always_fails(): assert not "a defect"
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where a test can write tests that pytest finds as those of a tier."""
    with TemporaryDirectory(dir=run_tiers.ROOT / ".cache", prefix="tier-") as path:
        yield Path(path)


def outcome_of(folder: Path, *modules: str) -> Outcome:
    for number, module in enumerate(modules):
        (folder / f"test_{number}.py").write_text(module)
    tier = Tier("new", folder=folder.relative_to(run_tiers.ROOT).as_posix(), since=Run.QUICK)
    (outcome,) = run([tier], QUICK)
    return outcome


@pytest.mark.usefixtures("reports")
def test_a_test_that_passes_when_it_is_asked_again_alone_is_named_and_fails_nothing(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = outcome_of(folder, FLAKY)
    name = f"{folder.relative_to(run_tiers.ROOT).as_posix()}/test_0.py::test_it_fails_the_first_time"
    assert (outcome.result, outcome.passed_alone) == (Result.PASSED, (name,))
    assert exit_code([outcome], complete=True) == 0
    shown = capfd.readouterr().out
    assert shown.index("a deadline passed") < shown.index(f"=== again, alone: {name} ===")


@pytest.mark.usefixtures("reports")
def test_a_test_that_fails_twice_fails_the_run_whatever_another_one_does(folder: Path) -> None:
    outcome = outcome_of(folder, FLAKY, BROKEN)
    assert (outcome.result, outcome.reason) == (Result.FAILED, "1 failed twice")
    assert [test.rpartition("::")[2] for test in outcome.passed_alone] == ["test_it_fails_the_first_time"]
    assert exit_code([outcome], complete=False) == 1


@pytest.mark.usefixtures("reports")
@pytest.mark.parametrize(
    "modules",
    [["import nothing_of_this_name"], [f"def test_{number}(): assert False\n" for number in range(21)]],
    ids=["a module that cannot be imported", "more than chance"],
)
def test_a_tier_that_failed_by_more_than_some_tests_is_not_asked_again(
    folder: Path, modules: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert outcome_of(folder, *modules).result is Result.FAILED
    assert "again, alone" not in capfd.readouterr().out
