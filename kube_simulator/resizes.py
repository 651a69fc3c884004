"""Resizes that do not come off: what the node makes of a pod's new resources, where a test wants it otherwise.

Without a word from here a resize is carried out at once::

    with simulator.resizes.held("Infeasible", "the node is too small", namespace="shop", pod="cache-0"):
        ...  # the pod has the condition PodResizePending, and keeps what it has; at the end of the block it is resized

Everything here is for the event loop that the simulator runs on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

NODE = "simulator"
"""The name of the one node."""

Held = Literal["Infeasible", "Deferred", "InProgress", "Error"]
"""`Infeasible` (never on this node) and `Deferred` (not now) set nothing aside for the pod: PodResizePending says so.

With `InProgress` and `Error` the node has set it aside and the containers have it not yet: PodResizeInProgress.
"""

_MESSAGES = {
    "Infeasible": "In-place resize of containers with swap is not supported.",
    "Deferred": "Node didn't have enough resource",
    "Error": "cannot decrease memory limits: the new limit is below current usage",
    "InProgress": "",
}


@dataclass(frozen=True, slots=True, eq=False)
class Hold:
    """How far resizes get, and of which pods; what is empty stands for all."""

    how: Held
    message: str
    namespace: str
    pod: str


class Resizes:
    """The holds in force; of several for one pod the first counts."""

    def __init__(self) -> None:
        self.allocatable: dict[str, str] = {}
        """What the node has of `cpu` and `memory`; a resize to more is refused. Of what is missing there is enough."""
        self._holds: list[Hold] = []
        self._listeners: list[Callable[[], None]] = []

    def hold(self, how: Held, message: str = "", *, namespace: str = "", pod: str = "") -> Hold:
        """From now on resizes get as far as this; those that were carried out before stay.

        Args:
            message: of the condition; by default one as a kubelet has it.
        """
        held = Hold(how, message or _MESSAGES[how], namespace, pod)
        self._holds.append(held)
        self._changed()
        return held

    def release(self, hold: Hold) -> None:
        """Carry out what was held. Nothing for one that was released before."""
        if hold in self._holds:
            self._holds.remove(hold)
            self._changed()

    @contextmanager
    def held(self, how: Held, message: str = "", *, namespace: str = "", pod: str = "") -> Iterator[Hold]:
        """As `hold`, until the end of the block."""
        hold = self.hold(how, message, namespace=namespace, pod=pod)
        try:
            yield hold
        finally:
            self.release(hold)

    def of(self, namespace: str, pod: str) -> Hold | None:
        """What holds the resizes of a pod."""
        return next((each for each in self._holds if each.namespace in ("", namespace) and each.pod in ("", pod)), None)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call it whenever a hold is added or released."""
        self._listeners.append(listener)

    def _changed(self) -> None:
        for listener in self._listeners:
            listener()
