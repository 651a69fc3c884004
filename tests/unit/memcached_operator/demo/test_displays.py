"""What is shown of the demo: as lines, and as a view."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import pytest
from rich.console import Console

from memcached_operator.demo.cluster_state import ClusterState, Observer, Write
from memcached_operator.demo.clusters import LogLine
from memcached_operator.demo.plain import Plain
from memcached_operator.demo.script import STEPS
from memcached_operator.demo.view import View
from operator_runtime.client.api_client import ApiClient
from tests.unit.memcached_operator.demo.support import cluster, running


class NoClient(ApiClient):
    def __init__(self) -> None:
        """Asks nobody."""


def observer(state: ClusterState) -> Observer:
    found = Observer(NoClient())
    found.state = state
    return found


async def test_plain_says_a_line_a_step_and_at_the_end_how_many_came_true() -> None:
    out = io.StringIO()
    display = Plain(out)
    display.opens(cluster(), observer(ClusterState()), STEPS)
    display.begins(0)
    display.wrote(Write("create", "deployments shop", 201))
    display.on_log_line(LogLine("warning", "this is no error"))
    display.on_log_line(LogLine("error", "this is one"))
    display.came_true(0, 1.23, "it was seen")
    display.failed(1, "nothing came")
    await display.closes(1)
    lines = out.getvalue().splitlines()
    assert "demo: to use kubectl beside it: export KUBECONFIG=/k/config" in lines
    error, ok, failed = lines[3:6]
    assert error == "demo: operator: this is one"
    assert ok.startswith(f"demo: ok 1: {STEPS[0].deed}: ")
    assert ok.endswith("(1.2 s; it was seen)")
    assert failed.startswith(f"demo: FAILED 2: {STEPS[1].deed}: ")
    assert failed.endswith("nothing came")
    assert lines[-1] == f"demo: 1 of {len(STEPS)} steps succeeded"
    assert "this is no error" not in out.getvalue()


def view(state: ClusterState, console: Console, picture: Path | None = None) -> View:
    shown = View(console, stays=False, picture=picture, picture_after=1)
    shown.opens(cluster(), observer(state), STEPS)
    return shown


def text_of(shown: View) -> str:
    console = Console(width=160, height=60, file=io.StringIO(), record=True)
    console.print(shown.screen(), height=60)
    return console.export_text()


def test_the_view_shows_resources_pods_conditions_events_writes_and_how_to_take_part() -> None:
    shown = view(running("shop", 2), Console(file=io.StringIO()))
    shown.came_true(0, 1.0, "")
    shown.begins(1)
    shown.wrote(Write("patch", "memcacheds/status shop", 200))
    shown.on_log_line(LogLine("info", "shop: created Deployment"))
    text = text_of(shown)
    for words in (
        *("export KUBECONFIG=/k/config", f"✓ {STEPS[0].deed}", "▶ ", "2 listed", "2/2", "its Memcached", "shop-1"),
        *("MinimumReplicasAvailable: all are ready.", "10:11:12 Created Created Deployment shop"),
        *("200 patch memcacheds/status shop", "shop: created Deployment"),
    ):
        assert words in text, words


def test_the_picture_is_drawn_after_its_step_without_fonts_from_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "demo.svg"
    shown = view(running("shop", 1), Console(file=io.StringIO()), path)
    shown.came_true(0, 1.0, "")
    assert not path.exists()
    shown.came_true(1, 1.0, "")
    svg = path.read_text()
    assert svg.startswith("<svg")
    assert "shop" in svg
    assert "@font-face" not in svg
    assert "url(http" not in svg


async def test_what_came_of_each_step_stays_in_the_terminal_after_the_view_which_gives_eyes_a_while() -> None:
    out = io.StringIO()
    with view(ClusterState(), Console(file=out, width=100)) as shown:
        shown.came_true(0, 1.0, "")
        shown.failed(1, "nothing came")
        await shown.closes(1)
    assert "nothing came" in out.getvalue()
    assert out.getvalue().rstrip().endswith(f"1 of {len(STEPS)} steps succeeded")
    pause = asyncio.create_task(View(Console(file=io.StringIO()), stays=False, pause_s=3600).takes_in())
    await asyncio.sleep(0)
    assert not pause.done()
    pause.cancel()


@pytest.mark.parametrize("stays", [True, False])
async def test_at_the_end_it_says_how_to_leave_where_it_stays(stays: bool) -> None:
    shown = View(Console(file=io.StringIO()), stays=stays)
    shown.opens(cluster(), observer(ClusterState()), STEPS)
    closing = asyncio.create_task(shown.closes(len(STEPS)))
    await asyncio.sleep(0)
    assert closing.done() is not stays
    assert ("press Ctrl-C to exit" in text_of(shown)) is stays
    closing.cancel()
