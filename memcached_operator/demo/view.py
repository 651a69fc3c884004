"""The demo in a terminal: everything at a glance, redrawn as it happens."""

from __future__ import annotations

import asyncio
import io
import re
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.layout import Layout
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from memcached_operator.demo.script import Step
from memcached_operator.demo.stage import LogLine, Stage
from memcached_operator.demo.world import Json, LookOut, World, event_time, ready, terminating
from memcached_operator.demo.writes import Write

PAUSE_S = 2.0
_REFRESHES_PER_S = 8
_KEPT_LINES = 60
# Of the picture, in characters: what a page shows side by side with text.
_PICTURE_SIZE = (146, 42)
_STYLES = {"True": "green", "False": "red", "Unknown": "yellow"}
_LEVELS = {"warning": "yellow", "error": "red", "critical": "red"}


class View:
    """An audience that sees resources, pods, conditions, events and writes side by side; a context manager."""

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
            pause_s: between two steps, so that what came of the first is seen.
            picture: where to draw an SVG of what is seen after the step `picture_after`.
        """
        self._console = console
        self._stays = stays
        self._pause_s = pause_s
        self._picture = (picture, picture_after)
        self._stage: Stage | None = None
        self._look_out: LookOut | None = None
        self._steps: Sequence[Step] = ()
        self._states: list[Text] = []
        self._writes: deque[Text] = deque(maxlen=_KEPT_LINES)
        self._log: deque[Text] = deque(maxlen=_KEPT_LINES)
        self._events: list[Text] = []
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
            self._console.print(state)
        if self._closing:
            self._console.print(self._closing)

    def opens(self, stage: Stage, look_out: LookOut, steps: Sequence[Step]) -> None:
        """Where it plays."""
        self._stage, self._look_out, self._steps = stage, look_out, steps
        self._states = [Text(f"· {step.deed}", style="dim") for step in steps]

    def begins(self, number: int) -> None:
        """The step under way stands out."""
        step = self._steps[number]
        self._states[number] = Text.assemble((f"▶ {step.deed}", "bold"), (f"\n  {step.outcome}", "italic"))
        if self._live.is_started:  # a step can be over before the next refresh
            self._live.refresh()

    def came_true(self, number: int, took_s: float, seen: str) -> None:
        """Ticked off."""
        step = self._steps[number]
        self._states[number] = Text.assemble(
            ("✓ ", "green"),
            step.deed,
            (f"\n  {step.outcome} ({took_s:.1f} s)", "green"),
            (f"\n  {seen}" if seen else "", "dim"),
        )
        path, after = self._picture
        if path is not None and number == after:
            self._draw(path)

    def failed(self, number: int, why: str) -> None:
        """Struck."""
        self._states[number] = Text.assemble(("✗ ", "red"), self._steps[number].deed, (f"\n  {why}", "red"))

    def heard(self, line: LogLine) -> None:
        """A line of the operator's log."""
        self._log.append(Text(line.text, style=_LEVELS.get(line.level, "")))

    def wrote(self, write: Write) -> None:
        """A write of the operator's."""
        self._writes.append(
            Text.assemble((f"{write.code} ", "green" if write.code < 300 else "yellow"), f"{write.verb} {write.what}")
        )

    async def takes_in(self) -> None:
        """A while for eyes: a step takes half a second."""
        await asyncio.sleep(self._pause_s)

    async def closes(self, came_true: int) -> None:
        """Stay for kubectl, or not."""
        self._closing = f"{came_true} of {len(self._steps)} steps came true"
        if self._stays:
            self._closing += "; Ctrl-C ends it"
            await _until_cancelled()

    def screen(self) -> RenderableType:
        """All of it."""
        if self._stage is None or self._look_out is None:
            return Text("starting an API server …")
        world = self._look_out.world
        layout = Layout()
        layout.split_column(Layout(self._header(self._stage), size=5), Layout(name="body"))
        layout["body"].split_row(Layout(name="left", ratio=7), Layout(name="right", ratio=8))
        layout["left"].split_column(
            Layout(_panel("script", _Script(self._states)), ratio=26),
            Layout(_panel("pods", _pods(world)), ratio=9),
        )
        layout["right"].split_column(
            Layout(
                _panel("memcacheds and deployments", Group(_memcacheds(world), Text(), _deployments(world))), ratio=9
            ),
            Layout(_panel("conditions", _conditions(world)), ratio=9),
            Layout(_panel("events", _lines(_events(world))), ratio=5),
            Layout(_panel("the operator writes", _lines(self._writes)), ratio=6),
            Layout(_panel("the operator's log", _lines(self._log)), ratio=6),
        )
        return layout

    def _header(self, stage: Stage) -> Panel:
        what = Text(f"{stage.what}, at {stage.server}; pods are {stage.pods}", no_wrap=True, overflow="ellipsis")
        return Panel(
            Group(what, _Folded(f"take part: export KUBECONFIG={stage.kubeconfig}", "bold")),
            title="memcached-operator",
            title_align="left",
            subtitle=Text(self._closing, style="bold green") if self._closing else None,
            subtitle_align="left",
            border_style="blue",
        )

    def _draw(self, path: Path) -> None:
        width, height = _PICTURE_SIZE
        console = Console(record=True, width=width, height=height, file=io.StringIO(), force_terminal=True)
        console.print(self.screen(), height=height)
        svg = console.export_svg(title="./dev demo")
        # Fonts from elsewhere are not shown in a page's picture anyway.
        path.write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL))


class _Folded:
    """A line that goes on in the next where there is no room, and not before: what a path in it can be copied from."""

    def __init__(self, text: str, style: str) -> None:
        self._text, self._style = text, style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        for start in range(0, len(self._text), width):
            yield Text(self._text[start : start + width], style=self._style, no_wrap=True)


class _Script:
    """The steps: all that is told of each where there is room, else less of those that are over."""

    def __init__(self, states: Sequence[Text]) -> None:
        self._states = states

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        states = list(self._states)
        for number in range(len(states)):
            lines = console.render_lines(Group(*states), options.update(height=None))
            if options.height is None or len(lines) <= options.height:
                break
            states[number] = states[number].split("\n")[0]
            states[number].no_wrap, states[number].overflow = True, "ellipsis"
        yield Group(*states)


async def _until_cancelled() -> None:
    """Wait for Ctrl-C or SIGTERM, which is how a view that stays is left: no reason to end otherwise than well."""
    task = asyncio.current_task()
    assert task is not None
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        task.uncancel()


def _panel(title: str, content: RenderableType) -> Panel:
    return Panel(content, title=title, title_align="left", border_style="dim")


def _lines(lines: Sequence[Text] | deque[Text]) -> RenderableType:
    """The newest first, so that it is seen however small the panel is."""
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"
    return Group(*reversed(lines))


def _memcacheds(world: World) -> Table:
    table = _table("MEMCACHED", "SIZE", "READY", "NODES")
    for found in world.memcacheds.values():
        status = found.get("status", {})
        nodes = len(status.get("nodes", []))
        table.add_row(
            _name(found),
            str(found["spec"]["size"]),
            str(status.get("readyReplicas", "")),
            f"{nodes} named" if nodes else "",
        )
    return table


def _deployments(world: World) -> Table:
    table = _table("DEPLOYMENT", "READY", "OWNER")
    for found in world.deployments.values():
        owners = found["metadata"].get("ownerReferences", [])
        owner = f"{owners[0]['kind']} {owners[0]['name']}" if owners else "nobody we know"
        count = f"{found.get('status', {}).get('readyReplicas', 0)}/{found['spec']['replicas']}"
        table.add_row(_name(found), count, owner)
    return table


def _conditions(world: World) -> Table:
    table = _table("MEMCACHED", "CONDITION", "STATUS", "REASON")
    for name, found in world.memcacheds.items():
        for each in found.get("status", {}).get("conditions", []):
            good = each["status"] if each["type"] == "Available" else {"True": "False"}.get(each["status"], "")
            table.add_row(
                name,
                each["type"],
                Text(each["status"], style=_STYLES.get(good, "dim")),
                f"{each['reason']}: {each['message']}",
            )
    return table


def _pods(world: World) -> Table:
    table = _table("POD", "STATE", "ADDRESS")
    for found in world.pods.values():
        status = found.get("status", {})
        state = Text("ready", style="green") if ready(found) else Text(status.get("phase", "Pending"), style="yellow")
        if terminating(found):
            state = Text("ends", style="dim")
        table.add_row(_name(found), state, status.get("podIP", ""))
    return table


def _events(world: World) -> list[Text]:
    return [
        Text.assemble(
            (f"{event_time(each)[11:19]} ", "dim"),
            (f"{each['reason']} ", "yellow" if each["type"] == "Warning" else "green"),
            each.get("note", ""),
        )
        for each in world.events
    ]


def _table(*columns: str) -> Table:
    """A table that gives its last column what the others leave."""
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="dim", expand=True)
    *narrow, wide = columns
    for column in narrow:
        table.add_column(column, no_wrap=True)
    table.add_column(wide, no_wrap=True, overflow="ellipsis", ratio=1)
    return table


def _name(found: Json) -> Text:
    return Text(found["metadata"]["name"], style="dim" if terminating(found) else "")
