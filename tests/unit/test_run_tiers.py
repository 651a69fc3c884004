from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from lab.cache import BuildError
from tests import run_tiers
from tests.run_tiers import Outcome, Plan, Result, command_of, exit_code, run, summary
from tests.tiers import TIERS, Run, Tier

PASSED = Outcome("unit", Result.PASSED, took_s=2.6)
FAILED = Outcome("lint", Result.FAILED, "exit code 1", 60.0)
LEFT_OUT = Outcome("e2e", Result.LEFT_OUT, "no containerd")
LEFT_TO_ALL = [Outcome(tier, Result.LEFT_TO_LONGER, "./dev test --all") for tier in ("image", "helm")]
QUICK, GATE, EVERYTHING = Plan(Run.QUICK), Plan(Run.GATE), Plan(Run.ALL)


def command(tier: Tier, plan: Plan) -> list[str]:
    """The command of a tier that is not left out."""
    found = command_of(tier, plan)
    assert isinstance(found, list)
    return found


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


def test_in_the_gate_each_test_of_the_integration_runs_on_one_server() -> None:
    tiers = {tier.cluster: tier for tier in TIERS if tier.folders == ("tests/integration",) and not tier.release}
    marks = {cluster: command(tier, GATE)[-3:-1] for cluster, tier in tiers.items()}
    assert marks == {"simulator": ["-m", "not slow and not core"], "kubernetes": ["-m", "not slow and core"]}
    assert command(tiers["simulator"], QUICK)[-3:-1] == marks["simulator"]
    behind_pytest = [command(tier, EVERYTHING)[3:] for tier in tiers.values()]
    assert all("-m" not in each for each in behind_pytest)


def no_helm() -> None:
    raise BuildError("no module is served")


def test_a_tier_of_the_gate_says_what_could_not_be_built_for_it_and_fails_a_whole_run(folder: Path) -> None:
    (folder / "test_it.py").write_text("def test_it(): pass")
    tier = Tier("helm", folders=(path_of(folder),), since=Run.GATE, needs={"Helm": no_helm})
    gate, everything = run([tier], GATE), run([tier], EVERYTHING)
    assert [outcome.result for outcome in (*gate, *everything)] == [Result.PASSED, Result.FAILED]
    assert summary(gate).endswith(", but without Helm")
    assert everything[0].reason == "Helm: no module is served"


@pytest.fixture(autouse=True)
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This run must not write where the run writes that it is a test of."""
    monkeypatch.setattr(run_tiers, "_REPORT", tmp_path / "report.xml")


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


def path_of(folder: Path) -> str:
    return folder.relative_to(run_tiers.ROOT).as_posix()


def outcome_of(folder: Path, *modules: str) -> Outcome:
    for number, module in enumerate(modules):
        (folder / f"test_{number}.py").write_text(module)
    tier = Tier("new", folders=(path_of(folder),), since=Run.QUICK)
    (outcome,) = run([tier], QUICK)
    return outcome


def test_a_test_that_fails_is_asked_again_alone_and_fails_the_run_if_it_fails_twice(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    outcome = outcome_of(folder, FLAKY, BROKEN)
    assert (outcome.result, outcome.reason) == (
        Result.FAILED,
        f"failed twice: {path_of(folder)}/test_1.py::test_it_always_fails",
    )
    name = f"{path_of(folder)}/test_0.py::test_it_fails_the_first_time"
    assert outcome.passed_alone == (name,)
    shown = capfd.readouterr().out
    assert shown.index("a deadline passed") < shown.index(f"=== again, alone: {name} ===")
    assert exit_code([outcome], complete=False) == 1
