"""The demo in a terminal: everything at a glance, redrawn as it happens.

Panels stand side by side where there is room, one below the other in a small terminal. What people copy or read word
for word is never cut: the kubeconfig, names, reasons, addresses. Where there is too little room, fewer lines are shown:
those that are newest, or under way.
"""

from __future__ import annotations

import asyncio
import io
import re
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.layout import Layout
from rich.live import Live
from rich.panel import Panel
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from memcached_operator.demo.cluster_state import (
    ClusterState,
    Json,
    Observer,
    event_time,
    ready,
    terminating,
)
from memcached_operator.demo.clusters import DemoCluster
from memcached_operator.demo.plain import Plain
from memcached_operator.demo.script import STEPS, DemoStep

# Of a terminal, from which on panels stand side by side, the left ones as wide as a pod's line.
_SIDE_BY_SIDE = (120, 40)
_LEFT_WIDTH = 62
# Rows of those panels whose content has a size of its own, with their frames: two Memcacheds, and what becomes of a
# Deployment of 4 that is made again.
_RESOURCES_ROWS, _CONDITIONS_ROWS, _PODS_ROWS = 9, 13, 11
_STATUS_STYLES = {"True": "green", "False": "red", "Unknown": "yellow"}


class _Script:
    """The steps: all about each where there is room, else of those that are over the first line alone."""

    def __init__(self, steps: Sequence[Text], over: int) -> None:
        self._steps = steps
        self._over = over

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        texts, rows = list(self._steps), options.height
        for number in range(self._over):
            if rows is None or len(_lines_of(Group(*texts), console, options)) <= rows:
                break
            texts[number] = texts[number].split("\n")[0]
        yield Group(*texts)


def _column(script: _Script, state: ClusterState) -> Layout:
    """The script and the objects; of the script as much as there is room for."""
    layout, memcacheds, pods = Layout(), _memcacheds(state), _pods(state)
    layout.split_column(
        Layout(script), Layout(memcacheds, size=1 + memcacheds.row_count), Layout(pods, size=1 + pods.row_count)
    )
    return layout


def _newest_first(lines: Sequence[Text]) -> Group:
    return Group(*reversed(lines))


def _counted(writes: Mapping[tuple[str, str], int]) -> Text:
    """Show how often the operator wrote what: resources by their plurals, as they have little room."""
    # Taken at once, as the operator counts on in another thread than the one that draws.
    counts = [f"{number} {verb} {resource}" for (resource, verb), number in tuple(writes.items())]
    return Text(re.sub(r"\.[^/,]*", "", ", ".join(counts)))


def _lines_of(content: RenderableType, console: Console, options: ConsoleOptions) -> list[list[Segment]]:
    """Render all lines that the content takes, however few rows there are."""
    return console.render_lines(content, options.update(height=None))


def _panel(title: str, content: RenderableType) -> Panel:
    return Panel(content, title=title, title_align="left", border_style="dim", padding=0)


def _memcacheds(state: ClusterState) -> Table:
    """Build the table of Memcacheds with the one condition that matters most."""
    table = _table("MEMCACHED", "SIZE", "READY", "CONDITION")
    for name, found in state.memcacheds.items():
        degraded, progressing, all_ready = (
            state.condition(name, each) for each in ("Degraded", "Progressing", "Ready")
        )
        condition = next((each for each in (degraded, progressing) if each.get("status") == "True"), all_ready)
        text = f"{condition['type']}={condition['status']} {condition['reason']}" if condition else ""
        size, ready = found["spec"]["size"], found.get("status", {}).get("readyReplicas", "")
        table.add_row(_name(found), str(size), str(ready), Text(text, style=_style(condition) if condition else ""))
    return table


def _workloads(state: ClusterState) -> Table:
    table = _table("WORKLOAD", "KIND", "READY", "OWNER")
    for kind, objects in (("Deployment", state.deployments), ("StatefulSet", state.stateful_sets)):
        for found in objects.values():
            owned = bool(found["metadata"].get("ownerReferences"))
            count = f"{found.get('status', {}).get('readyReplicas', 0)}/{found['spec']['replicas']}"
            table.add_row(_name(found), kind, count, "its Memcached" if owned else "unknown")
    return table


def _conditions(state: ClusterState) -> Table:
    table = _table("CONDITION", "STATUS", "REASON")
    for found in state.memcacheds.values():
        table.add_row(_name(found))
        for each in found.get("status", {}).get("conditions", []):
            text = f"{each['reason']}: {each['message']}"
            table.add_row(f"  {each['type']}", Text(each["status"], style=_style(each)), text)
    return table


def _style(condition: Json) -> str:
    """Green for what is as it should be."""
    status = condition["status"]
    good = status if condition["type"] in ("Available", "Ready") else {"True": "False"}.get(status, "")
    return _STATUS_STYLES.get(good, "dim")


def _pods(state: ClusterState) -> Table:
    """Build the table of pods, those that end last, as there may be no room for all."""
    table = _table("POD", "STATE", "ADDRESS")
    for found in sorted(state.pods.values(), key=terminating):
        status = found.get("status", {})
        phase = Text("ready", style="green") if ready(found) else Text(status.get("phase", "Pending"), style="yellow")
        if terminating(found):
            phase = Text("ends", style="dim")
        table.add_row(_name(found), phase, status.get("podIP", ""))
    return table


def _events(state: ClusterState) -> list[Text]:
    return [
        Text.assemble(
            (f"{event_time(each)[11:19]} ", "dim"),
            (f"{each['reason']} ", "yellow" if each["type"] == "Warning" else "green"),
            each.get("note", ""),
        )
        for each in state.events
    ]


def _table(*columns: str) -> Table:
    """A table that breaks a name rather than to cut it, and breaks nothing else."""
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="dim")
    first, *others = columns
    table.add_column(first, overflow="fold")
    for column in others:
        table.add_column(column, no_wrap=True, overflow="crop")
    return table


def _name(found: Json) -> Text:
    return Text(found["metadata"]["name"], style="dim" if terminating(found) else "")


PAUSE_S = 2.0
_REFRESHES_PER_S = 8
_KEPT_LINES = 60
# Of the picture, in characters: what a page shows side by side with text.
_PICTURE_SIZE = (146, 42)
_LEVELS = {"warning": "yellow", "error": "red", "critical": "red"}


class View(Plain):
    """A live display of resources, pods, conditions, events and writes side by side; a context manager.

    Attributes:
        closing: how it ended, or empty.
    """

    def __init__(self, console: Console, *, stays: bool, picture: Path | None = None) -> None:
        """
        Args:
            stays: whether it is there after the last step, until Ctrl-C.
            picture: where to draw an SVG of what is seen when all of the script has come true.
        """
        self.stays = stays
        self.closing = ""
        self._console = console
        self._picture = picture
        self._cluster: DemoCluster | None = None
        self._observer: Observer
        self._steps: Sequence[DemoStep] = ()
        self._over = 0
        self._states: list[Text] = []
        self._log: deque[Text] = deque(maxlen=_KEPT_LINES)
        self._live = Live(
            console=console,
            get_renderable=lambda: self,
            screen=console.is_terminal,
            refresh_per_second=_REFRESHES_PER_S,
        )

    def __enter__(self) -> View:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()
        for state in self._states:  # what stays in the terminal when the screen is gone
            self._console.print(state)
        if self.closing:
            self._console.print(self.closing)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._cluster is None:
            yield Text("starting an API server …")
            return
        width, height = options.max_width, options.height or console.height
        header, script, state = self._header(self._cluster), _Script(self._states, self._over), self._observer.state
        wide = width >= _SIDE_BY_SIDE[0] and height >= _SIDE_BY_SIDE[1]
        body, layout = self._panels(script, state) if wide else _column(script, state), Layout()
        layout.split_column(Layout(header, size=len(_lines_of(header, console, options))), body)
        yield from console.render(layout, options.update(height=height))

    def _header(self, cluster: DemoCluster) -> RenderableType:
        server = f"{cluster.what}, at {cluster.server}"
        pods = f"pods are {cluster.pods}; from another terminal:"
        # Nothing next to it, so that a click or two take it whole.
        take_part = Text(f"export KUBECONFIG={cluster.kubeconfig}", style="bold", overflow="fold")
        closing = [Text(self.closing, style="bold green")] if self.closing else []
        return Group(Text(server), Text(pods), take_part, *closing)

    def _panels(self, script: _Script, state: ClusterState) -> Layout:
        layout, left, right = Layout(), Layout(size=_LEFT_WIDTH), Layout()
        layout.split_row(left, right)
        left.split_column(Layout(_panel("script", script)), Layout(_panel("pods", _pods(state)), size=_PODS_ROWS))
        resources = Group(_memcacheds(state), Text(), _workloads(state))
        right.split_column(
            Layout(_panel("memcacheds and workloads", resources), size=_RESOURCES_ROWS),
            Layout(_panel("conditions", _conditions(state)), size=_CONDITIONS_ROWS),
            Layout(_panel("events", _newest_first(_events(state))), ratio=3),
            Layout(_panel("writes by the operator", _counted(self.writes)), ratio=2),
            Layout(_panel("the operator's log", _newest_first(self._log)), ratio=3),
        )
        return layout

    def opens(self, cluster: DemoCluster, observer: Observer, steps: Sequence[DemoStep]) -> None:
        self._observer, self._steps = observer, steps
        self._states = [Text(f"· {step.deed}", style="dim") for step in steps]
        self._cluster = cluster  # the last, as another thread draws it from then on

    def begins(self, number: int) -> None:
        step = self._steps[number]
        self._states[number] = Text.assemble((f"▶ {step.deed}", "bold"), (f"\n  {step.outcome}", "italic"))
        if self._live.is_started:  # a step can be over before the next refresh
            self._live.refresh()

    def came_true(self, number: int, took_s: float, seen: str) -> None:
        step = self._steps[number]
        self._states[number] = Text.assemble(
            ("✓ ", "green"),
            step.deed,
            (f"\n  {step.outcome} ({took_s:.1f} s)", "green"),
            (f"\n  {seen}" if seen else "", "dim"),
        )
        self._over = number + 1
        if self._picture is not None and step is STEPS[-1]:
            self._draw(self._picture)

    def failed(self, number: int, why: str) -> None:
        self._states[number] = Text.assemble(("✗ ", "red"), self._steps[number].deed, (f"\n  {why}", "red"))

    def on_log_line(self, level: str, text: str) -> None:
        self._log.append(Text(text, style=_LEVELS.get(level, "")))

    async def takes_in(self) -> None:
        await asyncio.sleep(PAUSE_S)

    async def closes(self, came_true: int) -> None:
        count = f"{came_true} of {len(self._steps)} steps succeeded"
        self.closing = f"{count}; press Ctrl-C to exit"
        if self.stays:
            await _until_cancelled()
        self.closing = count

    def _draw(self, path: Path) -> None:
        width, height = _PICTURE_SIZE
        console = Console(record=True, width=width, height=height, file=io.StringIO(), force_terminal=True)
        console.print(self, height=height)
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
