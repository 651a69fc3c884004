"""The live view in terminals of usual sizes: what people copy or read word for word is whole there."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from memcached_operator.demo.cluster_state import ClusterState
from memcached_operator.demo.screen import Screen
from memcached_operator.demo.script import EXAMPLE, STEPS, TO_PLAY_WITH
from tests.unit.memcached_operator.demo.support import Json, cluster, object_of, pod, running

SMALL, LARGE = (80, 24), (120, 40)
# As long as those of a user with a large number, and of pods whose Deployment was changed.
KUBECONFIG = Path("/tmp/memcached-operator-simulator-10000/abcdefgh/kubeconfig")
REASONS = ("MinimumReplicasAvailable", "ReplicaSetUpdated", "DeploymentNotOwned")
CUT = "…"


def conditions(*told: tuple[str, str]) -> list[Json]:
    types = ("Available", "Progressing", "Degraded", "Ready")
    return [
        {"type": type_, "status": status, "reason": reason, "message": f"{reason}, at length: " + "and " * 40}
        for type_, (status, reason) in zip(types, told, strict=True)
    ]


def rolling_state() -> ClusterState:
    """4 servers become others, and a second Memcached has no Deployment as a stranger has its name."""
    state = running(EXAMPLE, 4)
    ends: Json = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    pods = [
        pod(EXAMPLE, f"84d46f9b75-{number}hw5f", address=f"127.100.200.{number}", **(ends if number >= 4 else {}))
        for number in range(8)
    ]
    rolls = conditions(("True", REASONS[0]), ("True", REASONS[1]), ("False", "AsExpected"), ("False", REASONS[1]))
    example = state.memcacheds[EXAMPLE]
    example = {**example, "status": {**example["status"], "conditions": rolls}}
    is_taken = conditions(*((status, REASONS[2]) for status in ("False", "False", "True", "False")))
    taken = object_of("taken-name", spec={"size": 1}, status={"conditions": is_taken})
    return ClusterState(
        memcacheds={EXAMPLE: example, "taken-name": taken},
        deployments={**state.deployments, "taken-name": object_of("taken-name", spec={"replicas": 1})},
        pods={each["metadata"]["name"]: each for each in pods},
        events=state.events,
    )


def shown(size: tuple[int, int], state: ClusterState, *, closing: str = "", at: int = 3) -> list[str]:
    """Lines of a terminal of that size, at a step of the script."""
    width, height = size
    steps = [
        Text(
            f"✓ {step.deed}\n  {step.outcome} (1.2 s)\n  seen" if number < at
            else f"▶ {step.deed}\n  {step.outcome}" if number == at
            else f"· {step.deed}"
        )
        for number, step in enumerate((*STEPS, TO_PLAY_WITH))
    ]  # fmt: skip
    told = Text("200 patch deployments example-memcached, and what it is about, in a line that is quite long")
    screen = Screen(cluster(kubeconfig=KUBECONFIG), state, steps, (told,) * 30, (told,) * 30, closing)
    console = Console(width=width, height=height, file=io.StringIO(), record=True, force_terminal=True)
    console.print(screen, height=height, end="")
    return console.export_text().rstrip("\n").splitlines()


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=str)
@pytest.mark.parametrize("closing", ["", "8 of 8 steps succeeded; press Ctrl-C to exit"])
def test_it_fits_and_shows_whole_what_is_copied_or_read(size: tuple[int, int], closing: str) -> None:
    lines = shown(size, rolling_state(), closing=closing)
    text = "\n".join(lines)
    assert len(lines) <= size[1]
    assert all(len(line) <= size[0] for line in lines)
    assert CUT not in text
    assert f"export KUBECONFIG={KUBECONFIG}" in [line.strip() for line in lines]
    assert "https://127.0.0.1:6443" in text
    assert closing in text
    for reason in REASONS if size == LARGE else REASONS[1:]:
        assert reason in text
    for number in range(4):
        (line,) = (line for line in lines if f"{EXAMPLE}-84d46f9b75-{number}hw5f" in line)
        assert f"127.100.200.{number} " in f"{line} "
