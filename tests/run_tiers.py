"""Run every tier of checks and tests, and end with one line that says what became of each.

``./dev test`` is this. Arguments go to pytest; paths, which begin with ``tests/``, run only the tiers that they lie
in. The exit code is 1 when a tier failed, and under ``CI`` also when one was left out.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from subprocess import STDOUT
from typing import IO

from benchmarks import operators
from lab.cache import BuildError
from lab.image import builders, example, images
from lab.kubectl import LabError
from lab.node import config, dns, node
from lab.programs import helm, kubernetes, prometheus, prometheus_operator
from tests.cluster import REQUIRED_VARIABLE
from tests.e2e.node_cluster import BUSYBOX, EXAMPLE_BUSYBOX, MEMCACHED
from tests.image import container

ROOT = Path(__file__).resolve().parent.parent
_COVERAGE_DIR = ROOT / ".cache" / "coverage"
_NO_TESTS_COLLECTED = 5  # pytest's exit code
_NONE_SELECTED = "the arguments select none of its tests"


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


# What tiers build before they start, each once on a machine, by how it is called.
_KUBERNETES: Mapping[str, Callable[[], object]] = {"Kubernetes": kubernetes.build}
_HELM: Mapping[str, Callable[[], object]] = {**_KUBERNETES, "Helm": helm.build}
_MONITORING: Mapping[str, Callable[[], object]] = {
    "Prometheus": prometheus.build,
    "prometheus-operator": prometheus_operator.build,
}
_PEERS: Mapping[str, Callable[[], object]] = {"what runs on kopf and controller-runtime": operators.greetings}
_IMAGE: Mapping[str, Callable[[], object]] = {**_KUBERNETES, "the operator's image": images.operator_image}
_NODE: Mapping[str, Callable[[], object]] = {
    **_IMAGE,
    "CoreDNS": dns.image,
    "memcached's image": lambda: images.memcached_image(MEMCACHED),
    "busybox's image": lambda: images.busybox_image(BUSYBOX),
    "the example's image": example.example_image,
    "the image of its shells": lambda: images.busybox_image(EXAMPLE_BUSYBOX),
    "the pause image": lambda: images.pause_image(config.PAUSE_IMAGE),
}


@dataclass(frozen=True, slots=True)
class Tier:
    """A tier is either a recipe of the justfile or a folder of tests.

    ``lacking`` says what keeps the tier from running on this machine, or None. ``needs`` is what must be built before
    it starts, as it may take both cores for minutes: inside, deadlines would pass meanwhile, its own and those of the
    tiers beside. ``cluster`` is which of the servers that its tests know they run on. Those that
    are ``measured`` are traced for the report on coverage, which makes them slower. One that runs ``beside`` the tier
    before it shares the machine with it: tests mostly wait, for processes to start and for servers to answer.
    """

    name: str
    recipe: tuple[str, ...] = ()
    folder: str | None = None
    cluster: str | None = None
    needs: Mapping[str, Callable[[], object]] = field(default_factory=dict)
    lacking: Callable[[], str | None] | None = None
    measured: bool = False
    beside: bool = False


TIERS = (
    Tier("lint", recipe=("lint",)),
    Tier("docs", recipe=("docs",)),
    Tier("unit", folder="tests/unit", measured=True),
    Tier("demo", recipe=("demo", "--plain")),
    Tier("conformance on the simulator", folder="tests/conformance", cluster="simulator", needs=_KUBERNETES),
    Tier("conformance on kubernetes", folder="tests/conformance", cluster="kubernetes", beside=True),
    Tier("kubectl on both", folder="tests/kubectl", needs=_KUBERNETES),
    Tier("helm on both", folder="tests/helm", needs=_HELM, beside=True),
    Tier(
        "integration on the simulator",
        folder="tests/integration",
        cluster="simulator",
        needs={**_KUBERNETES, **_PEERS},
        measured=True,
    ),
    Tier(
        "integration on kubernetes",
        folder="tests/integration",
        cluster="kubernetes",
        needs={**_HELM, **_MONITORING, **_PEERS},
        beside=True,
    ),
    Tier("examples on the simulator", folder="tests/examples", cluster="simulator", needs=_KUBERNETES),
    Tier("examples on kubernetes", folder="tests/examples", cluster="kubernetes", beside=True),
    Tier("faults on the simulator", folder="tests/faults", cluster="simulator", needs=_KUBERNETES),
    Tier("faults on kubernetes", folder="tests/faults", cluster="kubernetes", beside=True),
    Tier("image", folder="tests/image", needs=_IMAGE, lacking=_no_image),
    Tier("e2e on a real node", folder="tests/e2e", needs={**_NODE, **_HELM, **_MONITORING}, lacking=_no_node),
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


def turns(tiers: Sequence[Tier]) -> list[list[Tier]]:
    """The tiers in order, those together that run at the same time."""
    found: list[list[Tier]] = []
    for tier in tiers:
        if tier.beside and found:
            found[-1].append(tier)
        else:
            found.append([tier])
    return found


def command_of(tier: Tier, arguments: Sequence[str]) -> list[str] | str:
    """What runs a tier, or why it is left out."""
    if tier.folder is None:
        return "the arguments select tests" if arguments else ["just", *tier.recipe]
    selected = split_arguments(arguments, tier.folder)
    if selected is None:
        return _NONE_SELECTED
    if not any((ROOT / tier.folder).rglob("test_*.py")):
        return "it has no tests"
    servers = [f"--cluster={tier.cluster}"] if tier.cluster else []
    coverage = ["--cov", "--cov-report="] if tier.measured else ["--no-cov"]
    return [sys.executable, "-m", "pytest", *coverage, *servers, *selected]


def prepare(tier: Tier) -> str | None:
    """Build what a tier needs and is not built yet, and say so; what is wrong, or None."""
    for what, made in tier.needs.items():
        print(f"{tier.name}: {what}, which is built now if it never was", flush=True)
        try:
            made()
        except (BuildError, builders.ImageError) as error:
            return f"{what}: {error}"
    return None


def run_beside(tiers: Sequence[Tier], arguments: Sequence[str]) -> list[Outcome]:
    """Run tiers at the same time. The first one writes where this writes, the output of the others follows it."""
    commands: list[tuple[Tier, list[str]]] = []
    outcomes: dict[str, Outcome] = {}
    for tier in tiers:
        command = command_of(tier, arguments)
        if isinstance(command, str):
            outcomes[tier.name] = Outcome(tier.name, Result.LEFT_OUT, command)
        elif tier.lacking is not None and (lacks := tier.lacking()) is not None:
            outcomes[tier.name] = Outcome(tier.name, Result.LEFT_OUT, lacks)
        elif (wrong := prepare(tier)) is not None:
            outcomes[tier.name] = Outcome(tier.name, Result.FAILED, wrong)
        else:
            commands.append((tier, command))
    if commands:
        print(f"\n=== {' and, beside it, '.join(tier.name for tier, _ in commands)} ===", flush=True)
    with ThreadPoolExecutor(max(len(commands), 1)) as pool, ExitStack() as files:
        outputs = [
            files.enter_context(tempfile.TemporaryFile("w+")) if place else None for place in range(len(commands))
        ]
        running = [
            pool.submit(_run, tier, command, output) for (tier, command), output in zip(commands, outputs, strict=True)
        ]
        for (tier, _), output, future in zip(commands, outputs, running, strict=True):
            outcomes[tier.name] = future.result()
            if output is not None:
                output.seek(0)
                print(f"\n=== {tier.name} ===\n{output.read()}", flush=True)
    return [outcomes[tier.name] for tier in tiers]


def _run(tier: Tier, command: Sequence[str], output: IO[str] | None) -> Outcome:
    """Run one tier, into a file if one is given."""
    started = time.monotonic()
    environment = os.environ | {
        REQUIRED_VARIABLE: "1",
        "COVERAGE_FILE": str(_COVERAGE_DIR / f"tier-{tier.name.replace(' ', '-')}"),
    }
    code = subprocess.run(
        command, cwd=ROOT, env=environment, check=False, stdout=output, stderr=None if output is None else STDOUT
    ).returncode
    took_s = time.monotonic() - started
    if code == 0:
        return Outcome(tier.name, Result.PASSED, took_s=took_s)
    if tier.folder is not None and code == _NO_TESTS_COLLECTED:
        return Outcome(tier.name, Result.LEFT_OUT, _NONE_SELECTED)
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
    outcomes = [outcome for turn in turns(TIERS) for outcome in run_beside(turn, arguments)]
    if not arguments:  # of a few tests it would say nothing
        _report_coverage()
    print(f"\n{summary(outcomes)}", flush=True)
    return exit_code(outcomes, complete=bool(os.environ.get("CI")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
