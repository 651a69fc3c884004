"""The live view in terminals of usual sizes: what people copy or read word for word is whole there."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from memcached_operator.demo.script import EXAMPLE, STEPS
from memcached_operator.demo.view import Screen, StepText
from tests.unit.memcached_operator.demo.support import cluster, pod, running

# As long as that of a user with a large number.
KUBECONFIG = Path("/tmp/memcached-operator-simulator-10000/abcdefgh/kubeconfig")
CLOSING = "8 of 8 steps succeeded; press Ctrl-C to exit"


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
@pytest.mark.parametrize("closing", ["", CLOSING])
def test_it_fits_and_shows_whole_what_is_copied_or_read(size: tuple[int, int], closing: str) -> None:
    width, height = size
    done, under_way, yet_to_come = STEPS[:3], STEPS[3], STEPS[4:]
    steps = [StepText(Text(f"✓ {step.deed}\n  {step.outcome} (1.2 s)\n  seen"), is_over=True) for step in done]
    steps.append(StepText(Text(f"▶ {under_way.deed}\n  {under_way.outcome}")))
    steps += [StepText(Text(f"· {step.deed}")) for step in yet_to_come]
    request = Text("200 patch deployments example-memcached, and what it is about, in a line that is quite long")
    state = running(EXAMPLE, 8, address="127.100.200.1")
    ending = pod(EXAMPLE, "old", deletionTimestamp="2026-01-01T00:00:00Z")
    state = dataclasses.replace(state, pods={**state.pods, f"{EXAMPLE}-old": ending})
    screen = Screen(cluster(kubeconfig=KUBECONFIG), state, steps, (request,) * 60, (request,) * 60, closing)
    console = Console(width=width, height=height, file=io.StringIO(), record=True, force_terminal=True)
    console.print(screen, height=height, end="")
    lines = console.export_text().rstrip("\n").splitlines()
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)
    assert f"export KUBECONFIG={KUBECONFIG}" in [line.strip() for line in lines]
    text = "\n".join(lines)
    for whole in ("https://127.0.0.1:6443", closing, f"▶ {under_way.deed[:30]}", f"{EXAMPLE}-3", "127.100.200.1"):
        assert whole in text
    assert "…" not in text
