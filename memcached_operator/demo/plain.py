"""The demo as lines of text, for pipes, logs and tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TextIO

from memcached_operator.demo.cluster_state import Observer
from memcached_operator.demo.clusters import DemoCluster
from memcached_operator.demo.script import DemoStep


class Plain:
    """A display of a line for each step, and of how many came true in the last one."""

    stays = False
    """Whether `closes` waits for a signal, so that there must be something to play with until then."""
    writes: Mapping[tuple[str, str], int] = MappingProxyType({})
    """The operator's, by resource and verb."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._steps: Sequence[DemoStep] = ()

    def opens(self, cluster: DemoCluster, observer: Observer, steps: Sequence[DemoStep]) -> None:
        self._steps = steps
        self._print(f"{cluster.what}, at {cluster.server}")
        self._print(f"to use kubectl beside it: export KUBECONFIG={cluster.kubeconfig}")
        self._print(f"pods are {cluster.pods}")

    def begins(self, number: int) -> None:
        """A step, counted from 0, is being run."""

    def came_true(self, number: int, took_s: float, seen: str) -> None:
        step = self._steps[number]
        self._print(f"ok {number + 1}: {step.deed}: {step.outcome} ({took_s:.1f} s{'; ' * bool(seen)}{seen})")

    def failed(self, number: int, why: str) -> None:
        step = self._steps[number]
        self._print(f"FAILED {number + 1}: {step.deed}: {step.outcome}: {why}")

    def on_log_line(self, level: str, text: str) -> None:
        if level in ("error", "critical"):
            self._print(f"operator: {text}")

    async def takes_in(self) -> None:
        """Take in a step that came true, before another; return when it has been seen."""

    async def closes(self, came_true: int) -> None:
        self._print(f"{sum(self.writes.values())} writes by the operator")
        self._print(f"{came_true} of {len(self._steps)} steps succeeded")

    def _print(self, text: str) -> None:
        print(f"demo: {text}", file=self._out, flush=True)
