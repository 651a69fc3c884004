"""Run every tier of checks and tests, and end with one line that says what became of each.

``./dev test`` is this. Arguments go to pytest; paths, which begin with ``tests/``, run only the tiers that they lie
in. The exit code is 1 when a tier failed, and under ``CI`` also when one was left out.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from lab import builders, images, node
from lab.build import BuildError, build
from lab.helm import build as build_helm
from lab.kubectl import LabError
from tests.cluster import REQUIRED_VARIABLE
from tests.image import container

ROOT = Path(__file__).resolve().parent.parent
_COVERAGE_DIR = ROOT / ".cache" / "coverage"
_NO_TESTS_COLLECTED = 5  # pytest's exit code


class Result(Enum):
    """What became of a tier."""

    PASSED = "passed"
    FAILED = "failed"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A tier's result, why if it did not pass, and how long it took in seconds."""

    tier: str
    result: Result
    reason: str = ""
    took_s: float = 0.0


def _kubernetes() -> str | None:
    try:
        build()
    except BuildError as error:
        return str(error)
    return None


def _helm() -> str | None:
    try:
        build_helm()
    except BuildError as error:
        return str(error)
    return _kubernetes()


def _no_node() -> str | None:
    try:
        node.check_machine()
    except LabError as error:
        return str(error)
    return None


def _no_image() -> str | None:
    try:
        builders.find(images.APART)
    except builders.ImageError as error:
        return str(error)
    return container.why_not()


def _image() -> str | None:
    try:
        images.operator_image()
    except (BuildError, builders.ImageError) as error:
        return str(error)
    return _kubernetes()


@dataclass(frozen=True, slots=True)
class Tier:
    """A tier is either a recipe of the justfile or a folder of tests.

    ``lacking`` says what keeps the tier from running on this machine, or None. ``prepare`` does the tier's own set-up
    and returns what is wrong, or None. ``cluster`` is which of the servers that its tests know they run on.
    """

    name: str
    recipe: tuple[str, ...] = ()
    folder: str | None = None
    cluster: str | None = None
    prepare: Callable[[], str | None] | None = None
    lacking: Callable[[], str | None] | None = None


TIERS = (
    Tier("lint", recipe=("lint",)),
    Tier("docs", recipe=("docs",)),
    Tier("unit", folder="tests/unit"),
    Tier("demo", recipe=("demo", "--plain")),
    Tier("helm on both", folder="tests/helm", prepare=_helm),
    Tier("conformance on the simulator", folder="tests/conformance", cluster="simulator", prepare=_kubernetes),
    Tier("conformance on kubernetes", folder="tests/conformance", cluster="kubernetes", prepare=_kubernetes),
    Tier("kubectl on both", folder="tests/kubectl", prepare=_kubernetes),
    Tier("integration on the simulator", folder="tests/integration", cluster="simulator", prepare=_kubernetes),
    Tier("integration on kubernetes", folder="tests/integration", cluster="kubernetes", prepare=_helm),
    Tier("faults on the simulator", folder="tests/faults", cluster="simulator", prepare=_kubernetes),
    Tier("faults on kubernetes", folder="tests/faults", cluster="kubernetes", prepare=_kubernetes),
    Tier("image", folder="tests/image", prepare=_image, lacking=_no_image),
    Tier("e2e on a real node", folder="tests/e2e", prepare=_kubernetes, lacking=_no_node),
)


def split_arguments(arguments: Sequence[str], folder: str) -> list[str] | None:
    """The arguments of the pytest run for one folder, or None if paths among them select nothing in it."""
    paths = [argument for argument in arguments if argument.startswith("tests/")]
    options = [argument for argument in arguments if argument not in paths]
    inside = [path for path in paths if Path(path.split("::")[0]).is_relative_to(folder)]
    if paths and not inside:
        return None
    return [*(inside or [folder]), *options]


def summary(outcomes: Sequence[Outcome]) -> str:
    """The closing line: every tier, and why it did not pass."""
    return "tiers: " + "; ".join(
        f"{outcome.tier} {outcome.result.value}"
        + (f" ({outcome.reason})" if outcome.reason else f" in {outcome.took_s:.0f} s")
        for outcome in outcomes
    )


def exit_code(outcomes: Sequence[Outcome], *, complete: bool) -> int:
    """0 if nothing failed and, where the run must be ``complete``, nothing was left out."""
    bad = {Result.FAILED, Result.LEFT_OUT} if complete else {Result.FAILED}
    return int(any(outcome.result in bad for outcome in outcomes))


def _run(tier: Tier, arguments: Sequence[str]) -> Outcome:
    command: list[str]
    if tier.folder is None:
        if arguments:
            return Outcome(tier.name, Result.LEFT_OUT, "the arguments select tests")
        command = ["just", *tier.recipe]
    else:
        selected = split_arguments(arguments, tier.folder)
        if selected is None:
            return Outcome(tier.name, Result.LEFT_OUT, "the arguments select none of its tests")
        if not any((ROOT / tier.folder).rglob("test_*.py")):
            return Outcome(tier.name, Result.LEFT_OUT, "it has no tests")
        servers = [f"--cluster={tier.cluster}"] if tier.cluster else []
        command = [sys.executable, "-m", "pytest", "--cov", "--cov-report=", *servers, *selected]
    if tier.lacking is not None and (lacks := tier.lacking()) is not None:
        return Outcome(tier.name, Result.LEFT_OUT, lacks)
    print(f"\n=== {tier.name} ===", flush=True)
    if tier.prepare is not None and (wrong := tier.prepare()) is not None:
        return Outcome(tier.name, Result.FAILED, wrong)
    started = time.monotonic()
    environment = os.environ | {
        REQUIRED_VARIABLE: "1",
        "COVERAGE_FILE": str(_COVERAGE_DIR / f"tier-{tier.name.replace(' ', '-')}"),
    }
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    took_s = time.monotonic() - started
    if code == 0:
        return Outcome(tier.name, Result.PASSED, took_s=took_s)
    if tier.folder is not None and code == _NO_TESTS_COLLECTED:
        return Outcome(tier.name, Result.LEFT_OUT, "the arguments select none of its tests")
    return Outcome(tier.name, Result.FAILED, f"exit code {code}")


def _report_coverage() -> None:
    files = sorted(str(path) for path in _COVERAGE_DIR.glob("tier-*"))
    if not files:
        return
    print("\n=== coverage, with branches ===", flush=True)
    environment = os.environ | {"COVERAGE_FILE": str(_COVERAGE_DIR / "total")}
    for command in (["combine", "--quiet", *files], ["report"]):
        subprocess.run([sys.executable, "-m", "coverage", *command], cwd=ROOT, env=environment, check=False)


def main(arguments: Sequence[str]) -> int:
    """Run all tiers and return the exit code."""
    _COVERAGE_DIR.mkdir(parents=True, exist_ok=True)
    for stale in _COVERAGE_DIR.iterdir():
        stale.unlink()
    outcomes = [_run(tier, arguments) for tier in TIERS]
    if not arguments:  # of a few tests it would say nothing
        _report_coverage()
    print(f"\n{summary(outcomes)}", flush=True)
    return exit_code(outcomes, complete=bool(os.environ.get("CI")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
