"""The live view in terminals of usual sizes: what people copy or read word for word is whole there."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import pytest
from rich.console import Console

from memcached_operator.demo.cluster_state import Observer
from memcached_operator.demo.script import EXAMPLE, STEPS
from memcached_operator.demo.view import View
from tests.unit.memcached_operator.demo.support import AcceptingClient, cluster, pod, running

# As long as that of a user with a large number.
KUBECONFIG = Path("/tmp/memcached-operator-simulator-10000/abcdefgh/kubeconfig")
LONG = "example-memcached, and what it is about, in a line that is quite long, and then some more of it"
CLOSING = "8 of 8 steps succeeded; press Ctrl-C to exit"


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
@pytest.mark.parametrize("closing", ["", CLOSING])
def test_it_fits_and_shows_whole_what_is_copied_or_read(size: tuple[int, int], closing: str) -> None:
    width, height = size
    under_way = STEPS[3]
    state = running(EXAMPLE, 8, address="127.100.200.1")
    ending = pod(EXAMPLE, "old", deletionTimestamp="2026-01-01T00:00:00Z")
    state = dataclasses.replace(state, pods={**state.pods, f"{EXAMPLE}-old": ending})
    console = Console(width=width, height=height, file=io.StringIO(), record=True, force_terminal=True)
    view, observer = View(console, stays=True), Observer(AcceptingClient())
    observer.state = state
    view.opens(cluster(kubeconfig=KUBECONFIG), observer, STEPS)
    for number in range(3):
        view.came_true(number, 1.2, "seen")
    view.begins(3)
    for _ in range(60):
        view.on_log_line("info", LONG)
    view.writes = {("deployments.apps", "patch"): 60, ("memcacheds.cache.example.com/status", "patch"): 7}
    view.closing = closing
    console.print(view, height=height, end="")
    lines = console.export_text().rstrip("\n").splitlines()
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)
    assert f"export KUBECONFIG={KUBECONFIG}" in [line.strip() for line in lines]
    text = "\n".join(lines)
    for whole in ("https://127.0.0.1:6443", closing, f"▶ {under_way.deed[:30]}", f"{EXAMPLE}-3", "127.100.200.1"):
        assert whole in text
    assert "…" not in text
    assert width < 120 or "60 patch deployments, 7 patch memcacheds/status" in text


class CountsOn(str):
    """A verb, and while it is drawn the operator counts its first write of another one."""

    writes: dict[tuple[str, str], int]

    def __format__(self, _: str) -> str:
        self.writes["pods", "create"] = 1
        return str(self)


def test_the_operator_may_write_while_another_thread_draws() -> None:
    console = Console(width=200, height=60, file=io.StringIO(), record=True, force_terminal=True)
    verb = CountsOn("patch")
    verb.writes = {("deployments.apps", verb): 5}
    view = View(console, stays=True)
    view.opens(cluster(kubeconfig=KUBECONFIG), Observer(AcceptingClient()), STEPS)
    view.writes = verb.writes
    console.print(view, height=60)
    assert "5 patch deployments" in console.export_text()
    assert ("pods", "create") in view.writes


class DrawnMeanwhile(View):
    """A view that is drawn after each attribute that it is given, as another thread may do."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if hasattr(self, "_live"):
            self._console.print(self, height=60)


def test_it_can_be_drawn_at_any_time_while_a_cluster_is_opened() -> None:
    console = Console(width=200, height=60, file=io.StringIO(), record=True, force_terminal=True)
    DrawnMeanwhile(console, stays=True).opens(cluster(kubeconfig=KUBECONFIG), Observer(AcceptingClient()), STEPS)
    assert "https://127.0.0.1:6443" in console.export_text()
