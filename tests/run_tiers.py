"""Run the tiers of checks and tests, and end with one line that says what became of each.

``./dev test`` is this: it runs what Python alone can run, ``--gate`` also the core on a real API server, and ``--all``
everything. ``--kubernetes RELEASE`` runs the core on another release, and nothing else. Other arguments go to pytest;
paths, which begin with ``tests/``, run the tiers that they lie in, all of them. What must be built is built before the
first tier. A test that failed is asked again, alone, when all tiers have ended. The exit code is 1 when a tier failed,
and under ``CI`` also when one was left out.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from xml.etree import ElementTree

from lab.cache import NO_BUILDS_VARIABLE, BuildError
from lab.image.builders import ImageError
from lab.programs.kubernetes_releases import RELEASES, VARIABLE as RELEASE_VARIABLE
from tests.cluster import REQUIRED_VARIABLE
from tests.tiers import NEEDED_BUILDS, SMALL_BUILDS, TIERS, Run, Tier

ROOT = Path(__file__).resolve().parent.parent
_REPORT = ROOT / ".cache" / "test-report.xml"
_TESTS_FAILED, _NO_TESTS_COLLECTED = 1, 5  # pytest's exit codes
_NONE_SELECTED = "the arguments select none of its tests"
# More red tests than this are no chance, and asked one by one they would take longer than the run.
_MOST_RUN_AGAIN = 20


class Result(Enum):
    """What became of a tier."""

    PASSED = "passed"
    FAILED = "failed"
    LEFT_OUT = "left out"
    LEFT_TO_LONGER = "left to"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A tier's result, why if it did not pass, and if it ran what it took.

    ``reason`` of one that is left to a longer run is that run's command. ``failed`` names the tests of one that failed
    by tests alone, and ``passed_alone`` those of them that passed when they were asked again. ``without`` names what
    could not be built: tests of it that want that were skipped.
    """

    tier: str
    result: Result
    reason: str = ""
    took_s: float = 0.0
    failed: tuple[str, ...] = ()
    passed_alone: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """Which run was asked for, the one release of Kubernetes if it is about one, and the arguments for pytest."""

    run: Run
    arguments: tuple[str, ...] = ()
    release: str = ""

    @classmethod
    def of(cls, arguments: Sequence[str]) -> "Plan":
        """Read the arguments of the command line.

        Raises:
            ValueError: ``--kubernetes`` has no release behind it that there is.
        """
        if "--kubernetes" in arguments:
            at = arguments.index("--kubernetes")
            release = arguments[at + 1] if at + 1 < len(arguments) else ""
            if release not in RELEASES:
                raise ValueError(f"--kubernetes {release}: choose one of {', '.join(RELEASES)}")
            return cls(Run.ALL, (*arguments[:at], *arguments[at + 2 :]), release)
        rest = tuple(argument for argument in arguments if argument not in ("--gate", "--all"))
        if "--all" in arguments or any(argument.startswith("tests/") for argument in rest):
            return cls(Run.ALL, rest)
        return cls(Run.GATE if "--gate" in arguments else Run.QUICK, rest)


def build(needs: Mapping[str, Callable[[], object]]) -> dict[str, str]:
    """Build what tiers need, one after the other, as compilers take all processors; why something could not be."""
    wrong = {}
    for what, made in needs.items():
        try:
            made()
        except (BuildError, ImageError) as error:
            wrong[what] = f"{what}: {error}"
            print(f"not built: {wrong[what]}", file=sys.stderr, flush=True)
    return wrong


def split_arguments(arguments: Sequence[str], folders: Sequence[str]) -> list[str] | None:
    """The arguments of the pytest run for some folders, or None if paths among them select nothing in these."""
    paths = [argument for argument in arguments if argument.startswith("tests/")]
    options = [argument for argument in arguments if argument not in paths]
    inside = [path for path in paths if any(Path(path.split("::")[0]).is_relative_to(folder) for folder in folders)]
    if paths and not inside:
        return None
    return [*(inside or folders), *options]


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
    why = f" ({outcome.reason})" if outcome.reason else f" in {outcome.took_s:.0f} s"
    without = f", but without {' and '.join(outcome.without)}" if outcome.without else ""
    return f"{outcome.tier} {outcome.result.value}{why}{without}"


def exit_code(outcomes: Sequence[Outcome], *, complete: bool) -> int:
    """0 if nothing failed and, where the run must be ``complete``, nothing that it has was left out."""
    bad = {Result.FAILED, Result.LEFT_OUT} if complete else {Result.FAILED}
    return int(any(outcome.result in bad for outcome in outcomes))


def command_of(tier: Tier, plan: Plan) -> list[str] | Outcome:
    """What runs a tier, or that it is left out."""
    if tier.since > plan.run:
        return Outcome(tier.name, Result.LEFT_TO_LONGER, tier.since.command)
    if tier.recipe:
        if plan.arguments:
            return Outcome(tier.name, Result.LEFT_OUT, "the arguments select tests")
        return ["just", *tier.recipe]
    selected = split_arguments(plan.arguments, tier.folders)
    if selected is None:
        return Outcome(tier.name, Result.LEFT_OUT, _NONE_SELECTED)
    if tier.lacking is not None and (lacks := tier.lacking()) is not None:
        return Outcome(tier.name, Result.LEFT_OUT, lacks)
    shorter = plan.run < Run.ALL or tier.release or tier.python
    expression = " and ".join(filter(None, ("not slow", tier.shorter))) if shorter else ""
    marked = ["-m", expression] if expression else []
    # Of a few tests, most of the time would be that of starting the workers.
    shared = tier.workers > 1 and not plan.arguments
    workers = [f"--numprocesses={tier.workers}", f"--dist={tier.distribution}"] if shared else []
    # Sorted by the number of their tests, files of one long test would come last, and one worker wait for the other.
    order = ["--no-loadscope-reorder"] if shared else []
    return [*_pytest(tier), "--durations=10", *workers, *order, *marked, *selected]


def _pytest(tier: Tier) -> list[str]:
    servers = [f"--cluster={tier.cluster}"] if tier.cluster else []
    python = str(tier.python.program) if tier.python else sys.executable
    return [python, "-m", "pytest", f"--junit-xml={_REPORT}", "-o", "junit_family=xunit1", *servers]


def _run(tier: Tier, command: Sequence[str], environment: Mapping[str, str]) -> Outcome:
    print(f"\n=== {tier.name} ===", flush=True)
    environment = _environment_of(tier, environment)
    _REPORT.unlink(missing_ok=True)
    started = time.monotonic()
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    took_s = time.monotonic() - started
    if code == 0:
        return Outcome(tier.name, Result.PASSED, took_s=took_s)
    if tier.folders and code == _NO_TESTS_COLLECTED:
        return Outcome(tier.name, Result.LEFT_OUT, _NONE_SELECTED)
    failed = failed_tests(_REPORT) if tier.folders and code == _TESTS_FAILED else ()
    return Outcome(tier.name, Result.FAILED, f"exit code {code}", took_s, failed)


def _environment_of(tier: Tier, environment: Mapping[str, str]) -> Mapping[str, str]:
    return {**environment, RELEASE_VARIABLE: tier.release} if tier.release else environment


def failed_tests(report: Path) -> tuple[str, ...]:
    """The tests that failed by a report in JUnit's format, of the family xunit1, by the names that pytest takes."""
    cases = ElementTree.parse(report).iter("testcase") if report.is_file() else ()
    failed = (case for case in cases if case.find("failure") is not None or case.find("error") is not None)
    return tuple(dict.fromkeys(_name(case) for case in failed))


def _name(case: ElementTree.Element) -> str:
    file, classname, name = (case.get(key, "") for key in ("file", "classname", "name"))
    # The class of a test, if it has one, is all that `classname` says beyond the module.
    inside = classname.removeprefix(file.removesuffix(".py").replace("/", ".")).strip(".")
    return "::".join([file, *([inside] if inside else []), name])


def run_again(tier: Tier, outcome: Outcome, environment: Mapping[str, str]) -> Outcome:
    """What becomes of a tier when each test of it that failed has run once more, by itself.

    A test that fails twice is a defect. One that passes alone is named, and its tier passes if there is no other; what
    it said the first time stands in the log. A tier that failed otherwise, or by more tests than chance could make
    fail, is not asked again.
    """
    if not 0 < len(outcome.failed) <= _MOST_RUN_AGAIN:
        return outcome
    passed = tuple(test for test in outcome.failed if _passes_alone(tier, test, environment))
    if passed == outcome.failed:
        return replace(outcome, result=Result.PASSED, reason="", passed_alone=passed)
    twice = ", ".join(test for test in outcome.failed if test not in passed)
    return replace(outcome, reason=f"failed twice: {twice}", passed_alone=passed)


def _passes_alone(tier: Tier, test: str, environment: Mapping[str, str]) -> bool:
    print(f"\n=== again, alone: {test} ===", flush=True)
    command, environment = [*_pytest(tier), test], _environment_of(tier, environment)
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


def run(tiers: Sequence[Tier], plan: Plan) -> list[Outcome]:
    """Run tiers as planned."""
    if plan.release:
        tiers = [tier for tier in tiers if tier.release == plan.release]
    commands = [(tier, command_of(tier, plan)) for tier in tiers]
    wrong = build(
        {
            what: made
            for tier, command in commands
            if isinstance(command, list)
            for what, made in tier.needs.items()
            if plan.run is Run.ALL or what in SMALL_BUILDS[plan.run]
        }
    )
    environment = os.environ | ({REQUIRED_VARIABLE: "1"} if plan.run is Run.ALL else {NO_BUILDS_VARIABLE: "1"})
    outcomes = []
    for tier, command in commands:
        if isinstance(command, Outcome):
            outcomes.append(command)
            continue
        lacks = tuple(what for what in tier.needs if what in wrong)
        needed = [wrong[what] for what in lacks if plan.run is Run.ALL or what in NEEDED_BUILDS[plan.run]]
        if needed:
            outcomes.append(Outcome(tier.name, Result.FAILED, needed[0]))
        else:
            # Its tests see for themselves what there is, and skip the rest.
            outcomes.append(replace(_run(tier, command, environment), without=lacks))
    return [run_again(tier, outcome, environment) for tier, outcome in zip(tiers, outcomes, strict=True)]


def main(arguments: Sequence[str]) -> int:
    """Run the tiers that the arguments ask for and return the exit code."""
    # What a shell starts in the background may ignore Ctrl-C and hand that down, and tests end processes by it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        plan = Plan.of(arguments)
    except ValueError as error:
        print(f"./dev test {error}", file=sys.stderr)
        return 2
    outcomes = run(TIERS, plan)
    print(f"\n{summary(outcomes)}", flush=True)
    return exit_code(outcomes, complete=bool(os.environ.get("CI")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
