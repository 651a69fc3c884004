"""Run the tiers of checks and tests, and end with where the time went and one line that says what became of each.

``./dev test`` is this: it runs what Python alone can run, ``--gate`` also the core on a real API server, and ``--all``
everything. ``--coverage`` traces the tiers that are measured. Other arguments go to pytest; paths, which begin with
``tests/``, run the tiers that they lie in, all of them. What must be built is built before the first tier. A test that
failed is asked again, alone, when all tiers have ended. The exit code is 1 when a tier failed, and under ``CI`` also
when one was left out.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from subprocess import STDOUT
from typing import IO

from lab.cache import NO_BUILDS_VARIABLE, BuildError
from lab.image.builders import ImageError
from tests import time_table
from tests.cluster import REQUIRED_VARIABLE
from tests.tiers import SMALL_BUILDS, TIERS, Run, Tier

ROOT = Path(__file__).resolve().parent.parent
_COVERAGE_DIR = ROOT / ".cache" / "coverage"
_REPORT_DIR = ROOT / ".cache" / "test-reports"
_NO_TESTS_COLLECTED = 5  # pytest's exit code
_NONE_SELECTED = "the arguments select none of its tests"
_TESTS_FAILED = 1  # pytest's exit code, too: it ran, and some were red
# More red tests than this are no chance, and asked one by one they would take longer than the run.
_MOST_ASKED_AGAIN = 20


class Result(Enum):
    """What became of a tier."""

    PASSED = "passed"
    FAILED = "failed"
    LEFT_OUT = "left out"
    LEFT_TO_LONGER = "left to"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A tier's result, why if it did not pass, and if it ran what it took, and its tests as far as it has any.

    ``reason`` of one that is left to a longer run is that run's command. ``code`` is the exit code of what ran it, and
    ``passed_alone`` names the tests that failed among the others and passed when they were asked again.
    """

    tier: str
    result: Result
    reason: str = ""
    spent: time_table.Spent | None = None
    cases: Sequence[time_table.Case] = ()
    code: int = 0
    passed_alone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run was asked for.

    Attributes:
        run: which tiers run, and what of their needs is built.
        coverage: measured tiers are traced.
        arguments: those for pytest.
    """

    run: Run
    coverage: bool = False
    arguments: tuple[str, ...] = ()

    @classmethod
    def of(cls, arguments: Sequence[str]) -> "Plan":
        """What the arguments of the command line say."""
        rest = [argument for argument in arguments if argument not in ("--gate", "--all", "--coverage")]
        if "--all" in arguments or any(argument.startswith("tests/") for argument in rest):
            run = Run.ALL
        else:
            run = Run.GATE if "--gate" in arguments else Run.QUICK
        return cls(run, "--coverage" in arguments, tuple(rest))


class Builds:
    """What tiers need, built one after the other before the first of them runs: compilers take all processors."""

    def __init__(self, needs: Mapping[str, Callable[[], object]], *, required: bool = True) -> None:
        """
        Args:
            needs: what to build, by what it is called.
            required: a tier cannot do without; else its tests see for themselves.
        """
        self.took_s: dict[str, float] = {}
        self._required = required
        self._wrong = {what: self._build(what, made) for what, made in needs.items()}

    def wrong_for(self, tier: Tier) -> str | None:
        """What keeps a tier from running, or None."""
        results = [self._wrong.get(what) for what in tier.needs]
        return next((wrong for wrong in results if wrong is not None), None) if self._required else None

    def _build(self, what: str, made: Callable[[], object]) -> str | None:
        started = time.monotonic()
        try:
            made()
        except (BuildError, ImageError) as error:
            return f"{what}: {error}"
        finally:
            self.took_s[what] = time.monotonic() - started
        return None


def split_arguments(arguments: Sequence[str], folder: str) -> list[str] | None:
    """The arguments of the pytest run for one folder, or None if paths among them select nothing in it."""
    paths = [argument for argument in arguments if argument.startswith("tests/")]
    options = [argument for argument in arguments if argument not in paths]
    inside = [path for path in paths if Path(path.split("::")[0]).is_relative_to(folder)]
    if paths and not inside:
        return None
    return [*(inside or [folder]), *options]


def summary(outcomes: Sequence[Outcome]) -> str:
    """The closing line: every tier, why it did not pass, and which ones only longer runs have."""
    parts = [_in_words(outcome) for outcome in outcomes if outcome.result is not Result.LEFT_TO_LONGER]
    left: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.result is Result.LEFT_TO_LONGER:
            some = ["tests marked slow"] if outcome.reason == Run.ALL.command else []
            left.setdefault(outcome.reason, some).append(outcome.tier)
    parts += [f"{Result.LEFT_TO_LONGER.value} {command}: {', '.join(tiers)}" for command, tiers in left.items()]
    alone = [test for outcome in outcomes for test in outcome.passed_alone]
    if alone:
        parts.append(f"passed only alone: {', '.join(alone)}")
    return "tiers: " + "; ".join(parts)


def _in_words(outcome: Outcome) -> str:
    if outcome.result is not Result.PASSED or outcome.spent is None:
        return f"{outcome.tier} {outcome.result.value} ({outcome.reason})"
    skipped = sum(case.skipped is not None for case in outcome.cases)
    return f"{outcome.tier} passed in {outcome.spent.took_s:.0f} s" + (f" ({skipped} skipped)" if skipped else "")


def exit_code(outcomes: Sequence[Outcome], *, complete: bool) -> int:
    """0 if nothing failed and, where the run must be ``complete``, nothing that it has was left out."""
    bad = {Result.FAILED, Result.LEFT_OUT} if complete else {Result.FAILED}
    return int(any(outcome.result in bad for outcome in outcomes))


def turns(tiers: Sequence[Tier]) -> list[list[Tier]]:
    """The tiers in order, those together that run at the same time."""
    found: list[list[Tier]] = []
    for tier in tiers:
        if tier.beside and found:
            found[-1].append(tier)
        else:
            found.append([tier])
    return found


def command_of(tier: Tier, plan: Plan) -> list[str] | Outcome:
    """What runs a tier, or that it is left out."""
    if tier.since > plan.run:
        return Outcome(tier.name, Result.LEFT_TO_LONGER, tier.since.command)
    if tier.folder is None:
        if plan.arguments:
            return Outcome(tier.name, Result.LEFT_OUT, "the arguments select tests")
        return ["just", *tier.recipe]
    selected = split_arguments(plan.arguments, tier.folder)
    if selected is None:
        return Outcome(tier.name, Result.LEFT_OUT, _NONE_SELECTED)
    if not any((ROOT / tier.folder).rglob("test_*.py")):
        return Outcome(tier.name, Result.LEFT_OUT, "it has no tests")
    if tier.lacking is not None and (lacks := tier.lacking()) is not None:
        return Outcome(tier.name, Result.LEFT_OUT, lacks)
    expression = " and ".join(filter(None, ("not slow", tier.shorter))) if plan.run < Run.ALL else ""
    marked = ["-m", expression] if expression else []
    coverage = ["--cov", "--cov-report="] if plan.coverage and tier.measured else ["--no-cov"]
    # Of a few tests, most of the time would be that of starting the workers.
    shared = tier.workers > 1 and not plan.arguments
    workers = [f"--numprocesses={tier.workers}", f"--dist={tier.distribution}"] if shared else []
    return [*_pytest(tier, _report(tier.name)), *coverage, *workers, *marked, *selected]


def _pytest(tier: Tier, report: Path) -> list[str]:
    servers = [f"--cluster={tier.cluster}"] if tier.cluster else []
    return [sys.executable, "-m", "pytest", f"--junit-xml={report}", "-o", "junit_family=xunit1", *servers]


def run_beside(
    tiers: Sequence[tuple[Tier, Sequence[str]]], builds: Builds, environment: Mapping[str, str]
) -> list[Outcome]:
    """Run tiers at the same time, those whose needs are there.

    The first one writes where this writes, the output of the others follows it.
    """
    if not tiers:
        return []
    print(f"\n=== {' and, beside it, '.join(tier.name for tier, _ in tiers)} ===", flush=True)
    outcomes = []
    with ThreadPoolExecutor(len(tiers)) as pool, ExitStack() as files:
        outputs = [files.enter_context(tempfile.TemporaryFile("w+")) if place else None for place in range(len(tiers))]
        running = [
            pool.submit(_run_if_built, tier, command, builds, environment, output)
            for (tier, command), output in zip(tiers, outputs, strict=True)
        ]
        for (tier, _), output, future in zip(tiers, outputs, running, strict=True):
            outcomes.append(future.result())
            if output is not None:
                output.seek(0)
                print(f"\n=== {tier.name} ===\n{output.read()}", flush=True)
    return outcomes


def _run_if_built(
    tier: Tier, command: Sequence[str], builds: Builds, environment: Mapping[str, str], output: IO[str] | None
) -> Outcome:
    wrong = builds.wrong_for(tier)
    return _run(tier, command, environment, output) if wrong is None else Outcome(tier.name, Result.FAILED, wrong)


def _run(tier: Tier, command: Sequence[str], environment: Mapping[str, str], output: IO[str] | None) -> Outcome:
    """Run one tier, into a file if one is given."""
    started = time.monotonic()
    own = {**environment, "COVERAGE_FILE": str(_COVERAGE_DIR / f"tier-{_slug(tier.name)}")}
    with subprocess.Popen(
        command, cwd=ROOT, env=own, stdout=output, stderr=None if output is None else STDOUT
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = code = os.waitstatus_to_exitcode(status)
    spent = time_table.Spent(time.monotonic() - started, usage.ru_utime + usage.ru_stime)
    cases = time_table.read(_report(tier.name))
    if code == 0:
        return Outcome(tier.name, Result.PASSED, spent=spent, cases=cases)
    if tier.folder is not None and code == _NO_TESTS_COLLECTED:
        return Outcome(tier.name, Result.LEFT_OUT, _NONE_SELECTED)
    return Outcome(tier.name, Result.FAILED, f"exit code {code}", spent, cases, code)


def ask_again(tier: Tier, outcome: Outcome, environment: Mapping[str, str]) -> Outcome:
    """What becomes of a tier when each test of it that failed has run once more, by itself.

    A test that fails twice is a defect. One that passes alone is named, and its tier passes if there is no other; what
    it said the first time stands in the log. A tier that failed otherwise, or by more tests than chance could make
    fail, is not asked again.
    """
    failed = list(dict.fromkeys(case.name for case in outcome.cases if case.failed is not None))
    by_tests = outcome.result is Result.FAILED and tier.folder is not None and outcome.code == _TESTS_FAILED
    if not by_tests or not 0 < len(failed) <= _MOST_ASKED_AGAIN:
        return outcome
    passed = tuple(test for test in failed if _passes_alone(tier, test, environment))
    if passed == tuple(failed):
        return replace(outcome, result=Result.PASSED, reason="", passed_alone=passed)
    return replace(outcome, reason=f"{len(failed) - len(passed)} failed twice", passed_alone=passed)


def _passes_alone(tier: Tier, test: str, environment: Mapping[str, str]) -> bool:
    print(f"\n=== again, alone: {test} ===", flush=True)
    command = [*_pytest(tier, _report(f"{tier.name} again")), "--no-cov", test]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


def run(tiers: Sequence[Tier], plan: Plan) -> list[Outcome]:
    """Run tiers as planned and show where the time went."""
    for folder in (_COVERAGE_DIR, _REPORT_DIR):
        folder.mkdir(parents=True, exist_ok=True)
        for stale in folder.iterdir():
            stale.unlink()
    commands = {tier.name: command_of(tier, plan) for tier in tiers}
    needs = {
        what: made
        for tier in tiers
        if isinstance(commands[tier.name], list)
        for what, made in tier.needs.items()
        if plan.run is Run.ALL or what in SMALL_BUILDS[plan.run]
    }
    all_built = {REQUIRED_VARIABLE: "1"}
    environment = os.environ | (all_built if plan.run is Run.ALL else {NO_BUILDS_VARIABLE: "1"})
    builds = Builds(needs, required=plan.run > Run.QUICK)
    found: dict[str, Outcome] = {}
    for turn in turns(tiers):
        ready = [(tier, command) for tier in turn if isinstance(command := commands[tier.name], list)]
        found |= {outcome.tier: outcome for outcome in run_beside(ready, builds, environment)}
    outcomes = [
        left_out if isinstance(left_out := commands[tier.name], Outcome) else found[tier.name] for tier in tiers
    ]
    outcomes = [ask_again(tier, outcome, environment) for tier, outcome in zip(tiers, outcomes, strict=True)]
    _report_times(builds, outcomes)
    return outcomes


def _report_times(builds: Builds, outcomes: Sequence[Outcome]) -> None:
    spent = {outcome.tier: outcome.spent for outcome in outcomes if outcome.spent is not None}
    tests = {outcome.tier: outcome.cases for outcome in outcomes}
    print("\n=== where the time went ===", *time_table.lines(builds.took_s, spent, tests), sep="\n", flush=True)


def _report_coverage() -> None:
    files = sorted(str(path) for path in _COVERAGE_DIR.glob("tier-*"))
    if not files:
        return
    print("\n=== coverage, with branches ===", flush=True)
    environment = os.environ | {"COVERAGE_FILE": str(_COVERAGE_DIR / "total")}
    for command in (["combine", "--quiet", *files], ["report"]):
        subprocess.run([sys.executable, "-m", "coverage", *command], cwd=ROOT, env=environment, check=False)


def _report(tier: str) -> Path:
    """Where pytest writes down how long each test of a tier took."""
    return _REPORT_DIR / f"{_slug(tier)}.xml"


def _slug(tier: str) -> str:
    return tier.replace(" ", "-")


def main(arguments: Sequence[str]) -> int:
    """Run the tiers that the arguments ask for and return the exit code."""
    # What a shell starts in the background may ignore Ctrl-C and hand that down, and tests end processes by it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    plan = Plan.of(arguments)
    outcomes = run(TIERS, plan)
    _report_coverage()
    print(f"\n{summary(outcomes)}", flush=True)
    return exit_code(outcomes, complete=bool(os.environ.get("CI")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
