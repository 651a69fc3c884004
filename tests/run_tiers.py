"""Run the tiers of checks and tests, and end with where the time went and one line that says what became of each.

``./dev test`` is this: it runs what Python alone can run, and ``--all`` runs everything. ``--coverage`` traces the
tiers that are measured. Other arguments go to pytest; paths, which begin with ``tests/``, run the tiers that they lie
in, all of them. The exit code is 1 when a tier failed, and under ``CI`` also when one was left out.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from subprocess import STDOUT
from typing import IO

from lab.cache import NO_BUILDS_VARIABLE, BuildError
from lab.image.builders import ImageError
from tests import time_table
from tests.cluster import REQUIRED_VARIABLE
from tests.tiers import SMALL_BUILDS, TIERS, Tier

ROOT = Path(__file__).resolve().parent.parent
_COVERAGE_DIR = ROOT / ".cache" / "coverage"
_REPORT_DIR = ROOT / ".cache" / "test-reports"
_NO_TESTS_COLLECTED = 5  # pytest's exit code
_NONE_SELECTED = "the arguments select none of its tests"
_LEAST_URGENT = 19


class Result(Enum):
    """What became of a tier."""

    PASSED = "passed"
    FAILED = "failed"
    LEFT_OUT = "left out"
    LEFT_TO_ALL = "left to ./dev test --all"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A tier's result, why if it did not pass, and if it ran what it took, and its tests as far as it has any."""

    tier: str
    result: Result
    reason: str = ""
    spent: time_table.Spent | None = None
    cases: Sequence[time_table.Case] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run was asked for.

    Attributes:
        everything: all tiers run, and what they need is built; else the quick ones run with what is there and kubectl.
        coverage: measured tiers are traced.
        arguments: those for pytest.
    """

    everything: bool
    coverage: bool = False
    arguments: tuple[str, ...] = ()

    @classmethod
    def of(cls, arguments: Sequence[str]) -> "Plan":
        """What the arguments of the command line say."""
        rest = [argument for argument in arguments if argument not in ("--all", "--coverage")]
        everything = "--all" in arguments or any(argument.startswith("tests/") for argument in rest)
        return cls(everything, "--coverage" in arguments, tuple(rest))


class Builds:
    """What tiers need, built one after the other beside the tiers that need none of it.

    The thread and its compilers have the lowest priority, so that no deadline of a test passes for their sake.
    """

    def __init__(self, needs: Mapping[str, Callable[[], object]], *, required: bool = True) -> None:
        """
        Args:
            needs: what to build, by what it is called.
            required: a tier cannot do without; else its tests see for themselves.
        """
        self.took_s: dict[str, float] = {}
        self._required = required
        self._pool = ThreadPoolExecutor(1, "builds", self._step_back)
        self._futures: dict[str, Future[str | None]] = {
            what: self._pool.submit(self._build, what, made) for what, made in needs.items()
        }

    def wait_for(self, tier: Tier) -> str | None:
        """Until what is built of a tier's needs is there; what keeps it from running, or None."""
        results = [self._futures[what].result() for what in tier.needs if what in self._futures]
        return next((wrong for wrong in results if wrong is not None), None) if self._required else None

    def close(self) -> None:
        """Begin nothing more, and wait for what was begun."""
        self._pool.shutdown(cancel_futures=True)

    def _build(self, what: str, made: Callable[[], object]) -> str | None:
        started = time.monotonic()
        try:
            made()
        except (BuildError, ImageError) as error:
            return f"{what}: {error}"
        finally:
            self.took_s[what] = time.monotonic() - started
        return None

    @staticmethod
    def _step_back() -> None:
        # Of this thread alone, and of the processes that it starts: Linux has a priority for each thread.
        if sys.platform == "linux":
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LEAST_URGENT)


def split_arguments(arguments: Sequence[str], folder: str) -> list[str] | None:
    """The arguments of the pytest run for one folder, or None if paths among them select nothing in it."""
    paths = [argument for argument in arguments if argument.startswith("tests/")]
    options = [argument for argument in arguments if argument not in paths]
    inside = [path for path in paths if Path(path.split("::")[0]).is_relative_to(folder)]
    if paths and not inside:
        return None
    return [*(inside or [folder]), *options]


def summary(outcomes: Sequence[Outcome]) -> str:
    """The closing line: every tier, why it did not pass, and which ones only ``--all`` runs."""
    parts = [_in_words(outcome) for outcome in outcomes if outcome.result is not Result.LEFT_TO_ALL]
    left = [outcome.tier for outcome in outcomes if outcome.result is Result.LEFT_TO_ALL]
    if left:
        parts.append(f"{Result.LEFT_TO_ALL.value}: tests marked slow, {', '.join(left)}")
    return "tiers: " + "; ".join(parts)


def _in_words(outcome: Outcome) -> str:
    if outcome.result is not Result.PASSED or outcome.spent is None:
        return f"{outcome.tier} {outcome.result.value} ({outcome.reason})"
    skipped = sum(case.skipped is not None for case in outcome.cases)
    return f"{outcome.tier} passed in {outcome.spent.took_s:.0f} s" + (f" ({skipped} skipped)" if skipped else "")


def exit_code(outcomes: Sequence[Outcome], *, complete: bool) -> int:
    """0 if nothing failed and, where the run must be ``complete``, nothing was left out."""
    good = {Result.PASSED} if complete else {Result.PASSED, Result.LEFT_OUT, Result.LEFT_TO_ALL}
    return int(any(outcome.result not in good for outcome in outcomes))


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
    if not tier.quick and not plan.everything:
        return Outcome(tier.name, Result.LEFT_TO_ALL)
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
    speed = [] if plan.everything else ["-m", "not slow"]
    servers = [f"--cluster={tier.cluster}"] if tier.cluster else []
    coverage = ["--cov", "--cov-report="] if plan.coverage and tier.measured else ["--no-cov"]
    # Of a few tests, most of the time would be that of starting the workers.
    shared = tier.workers > 1 and not plan.arguments
    workers = [f"--numprocesses={tier.workers}", f"--dist={tier.distribution}"] if shared else []
    report = [f"--junit-xml={_report(tier.name)}", "-o", "junit_family=xunit1"]
    return [sys.executable, "-m", "pytest", *coverage, *workers, *report, *speed, *servers, *selected]


def run_beside(
    tiers: Sequence[tuple[Tier, Sequence[str]]], builds: Builds, environment: Mapping[str, str]
) -> list[Outcome]:
    """Run tiers at the same time, each once its needs are built.

    The first one writes where this writes, the output of the others follows it.
    """
    if not tiers:
        return []
    print(f"\n=== {' and, beside it, '.join(tier.name for tier, _ in tiers)} ===", flush=True)
    outcomes = []
    with ThreadPoolExecutor(len(tiers)) as pool, ExitStack() as files:
        outputs = [files.enter_context(tempfile.TemporaryFile("w+")) if place else None for place in range(len(tiers))]
        running = [
            pool.submit(_run_when_built, tier, command, builds, environment, output)
            for (tier, command), output in zip(tiers, outputs, strict=True)
        ]
        for (tier, _), output, future in zip(tiers, outputs, running, strict=True):
            outcomes.append(future.result())
            if output is not None:
                output.seek(0)
                print(f"\n=== {tier.name} ===\n{output.read()}", flush=True)
    return outcomes


def _run_when_built(
    tier: Tier, command: Sequence[str], builds: Builds, environment: Mapping[str, str], output: IO[str] | None
) -> Outcome:
    wrong = builds.wait_for(tier)
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
    return Outcome(tier.name, Result.FAILED, f"exit code {code}", spent, cases)


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
        if plan.everything or what in SMALL_BUILDS
    }
    environment = os.environ | ({REQUIRED_VARIABLE: "1"} if plan.everything else {NO_BUILDS_VARIABLE: "1"})
    found: dict[str, Outcome] = {}
    builds = Builds(needs, required=plan.everything)
    try:
        for turn in turns(tiers):
            ready = [(tier, command) for tier in turn if isinstance(command := commands[tier.name], list)]
            found |= {outcome.tier: outcome for outcome in run_beside(ready, builds, environment)}
    finally:
        builds.close()
    outcomes = [
        left_out if isinstance(left_out := commands[tier.name], Outcome) else found[tier.name] for tier in tiers
    ]
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
