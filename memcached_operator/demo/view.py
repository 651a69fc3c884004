"""The demo in a terminal: everything at a glance, redrawn as it happens."""

from __future__ import annotations

import asyncio
import io
import re
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from memcached_operator.demo.cluster_state import ObservedWrite, Observer
from memcached_operator.demo.clusters import DemoCluster, LogLine
from memcached_operator.demo.plain import Plain
from memcached_operator.demo.screen import Screen, StepText
from memcached_operator.demo.script import DemoStep

PAUSE_S = 2.0
_REFRESHES_PER_S = 8
_KEPT_LINES = 60
# Of the picture, in characters: what a page shows side by side with text.
_PICTURE_SIZE = (146, 42)
_LEVELS = {"warning": "yellow", "error": "red", "critical": "red"}


class View(Plain):
    """A live display of resources, pods, conditions, events and writes side by side; a context manager."""

    def __init__(
        self,
        console: Console,
        *,
        stays: bool,
        pause_s: float = PAUSE_S,
        picture: Path | None = None,
        picture_after: int = 0,
    ) -> None:
        """
        Args:
            stays: whether it is there after the last step, until Ctrl-C.
            picture: where to draw an SVG of what is seen after the step `picture_after`.
        """
        self._console = console
        self.stays = stays
        self._pause_s = pause_s
        self._picture = (picture, picture_after)
        self._cluster: DemoCluster | None = None
        self._observer: Observer | None = None
        self._steps: Sequence[DemoStep] = ()
        self._states: list[StepText] = []
        self._written: deque[Text] = deque(maxlen=_KEPT_LINES)
        self._log: deque[Text] = deque(maxlen=_KEPT_LINES)
        self._closing = ""
        self._live = Live(
            console=console, get_renderable=self.screen, screen=console.is_terminal, refresh_per_second=_REFRESHES_PER_S
        )

    def __enter__(self) -> View:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()
        for state in self._states:  # what stays in the terminal when the screen is gone
            self._console.print(state.text)
        if self._closing:
            self._console.print(self._closing)

    def opens(self, cluster: DemoCluster, observer: Observer, steps: Sequence[DemoStep]) -> None:
        self._cluster, self._observer, self._steps = cluster, observer, steps
        self._states = [StepText(Text(f"· {step.deed}", style="dim")) for step in steps]

    def begins(self, number: int) -> None:
        step = self._steps[number]
        self._states[number] = StepText(Text.assemble((f"▶ {step.deed}", "bold"), (f"\n  {step.outcome}", "italic")))
        if self._live.is_started:  # a step can be over before the next refresh
            self._live.refresh()

    def came_true(self, number: int, took_s: float, seen: str) -> None:
        step = self._steps[number]
        text = Text.assemble(
            ("✓ ", "green"),
            step.deed,
            (f"\n  {step.outcome} ({took_s:.1f} s)", "green"),
            (f"\n  {seen}" if seen else "", "dim"),
        )
        self._states[number] = StepText(text, is_over=True)
        path, after = self._picture
        if path is not None and number == after:
            self._draw(path)

    def failed(self, number: int, why: str) -> None:
        text = Text.assemble(("✗ ", "red"), self._steps[number].deed, (f"\n  {why}", "red"))
        self._states[number] = StepText(text)

    def on_log_line(self, line: LogLine) -> None:
        self._log.append(Text(line.text, style=_LEVELS.get(line.level, "")))

    def wrote(self, write: ObservedWrite) -> None:
        self._written.append(
            Text.assemble((f"{write.code} ", "green" if write.code < 300 else "yellow"), f"{write.verb} {write.what}")
        )

    async def takes_in(self) -> None:
        await asyncio.sleep(self._pause_s)

    async def closes(self, came_true: int) -> None:
        count = f"{came_true} of {len(self._steps)} steps succeeded"
        self._closing = f"{count}; press Ctrl-C to exit"
        if self.stays:
            await _until_cancelled()
        self._closing = count

    def screen(self) -> RenderableType:
        if self._cluster is None or self._observer is None:
            return Text("starting an API server …")
        return Screen(
            self._cluster, self._observer.state, self._states, tuple(self._written), tuple(self._log), self._closing
        )

    def _draw(self, path: Path) -> None:
        width, height = _PICTURE_SIZE
        console = Console(record=True, width=width, height=height, file=io.StringIO(), force_terminal=True)
        console.print(self.screen(), height=height)
        svg = console.export_svg(title="./dev demo")
        # Fonts from elsewhere are not shown in a page's picture anyway.
        path.write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL))


async def _until_cancelled() -> None:
    """Wait for Ctrl-C or SIGTERM, which is how a view that stays is left: no reason to end otherwise than well."""
    task = asyncio.current_task()
    assert task is not None
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        task.uncancel()
