"""When a goal of the harness's watches counts as reached."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from benchmarks.observer import Goal, Observer, WatchFailed


async def reached(goal: Goal) -> bool:
    waiting = asyncio.ensure_future(goal.wait())
    await asyncio.sleep(0)
    done = waiting.done()
    waiting.cancel()
    return done


async def test_a_goal_is_reached_by_the_last_object_at_its_time() -> None:
    goal = Goal(count=2, target=3)
    goal.see("a", 3, 1.0)
    assert not await reached(goal)
    goal.see("b", 3, 2.0)
    goal.see("a", 3, 5.0)
    assert await goal.wait() == 2.0


def test_an_object_counts_once() -> None:
    goal = Goal(count=2, target=3)
    goal.see("a", 3, 1.0)
    goal.see("a", 3, 2.0)
    assert goal.reached_s is None


def test_another_number_or_none_does_not_count() -> None:
    goal = Goal(count=1, target=3)
    goal.see("a", 2, 1.0)
    goal.see("a", None, 2.0)
    assert goal.reached_s is None


async def test_an_object_that_falls_back_takes_the_goal_with_it_until_it_returns() -> None:
    goal = Goal(count=1, target=3)
    goal.see("a", 3, 1.0)
    goal.see("a", 2, 2.0)
    assert not await reached(goal)
    goal.see("a", 3, 4.0)
    assert await goal.wait() == 4.0


def test_a_goal_for_one_object_sees_no_other() -> None:
    goal = Goal(count=1, target=3, only="b")
    goal.see("a", 3, 1.0)
    assert goal.reached_s is None
    goal.see("b", 3, 2.0)
    assert goal.reached_s == 2.0


def line(kind: str, version: int, name: str = "one", replicas: int = 0) -> bytes:
    item = {"metadata": {"name": name, "resourceVersion": str(version)}, "spec": {"replicas": replicas}}
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


class Server:
    """Answers each watch of Deployments with the next of its bodies, then with silence; other watches with silence."""

    def __init__(self, *bodies: bytes) -> None:
        self.bodies = list(bodies)
        self.asked_from: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.json_response({"metadata": {"resourceVersion": "7"}, "items": []})
        answer = web.StreamResponse()
        await answer.prepare(request)
        if request.path.endswith("/deployments"):
            self.asked_from.append(request.query["resourceVersion"])
            if self.bodies:
                body = self.bodies.pop(0)
                # In two pieces, so that a line comes in halves.
                await answer.write(body[:25])
                await answer.write(body[25:])
                return answer
        await asyncio.Event().wait()
        return answer


@asynccontextmanager
async def observer(server: Server) -> AsyncIterator[Observer]:
    application = web.Application()
    application.router.add_get("/{path:.*}", server.answer)
    async with TestServer(application) as test_server, aiohttp.ClientSession(test_server.make_url("/")) as session:
        yield Observer(session)


async def test_a_watch_that_ends_is_taken_up_again_from_the_last_event() -> None:
    goal = Goal(count=2, target=3)
    server = Server(line("ADDED", 8, "a", 3) + line("ADDED", 9, "b", 2), line("MODIFIED", 11, "b", 3))
    async with observer(server) as eyes, asyncio.timeout(60):
        eyes.replicas = [goal]
        watching = asyncio.create_task(eyes.watch(await eyes.versions()))
        await goal.wait()
        watching.cancel()
        await asyncio.wait([watching])
    assert server.asked_from[:2] == ["7", "9"]


async def test_a_bookmark_moves_the_version_and_a_deletion_takes_the_object_out() -> None:
    goal, gone = Goal(count=1, target=3), Goal(count=1, target=4)
    body = line("ADDED", 8, "a", 3) + line("BOOKMARK", 12) + line("DELETED", 13, "a", 3) + line("ADDED", 14, "b", 4)
    async with observer(Server(body)) as eyes, asyncio.timeout(60):
        eyes.replicas = [goal, gone]
        watching = asyncio.create_task(eyes.watch(await eyes.versions()))
        await gone.wait()
        watching.cancel()
        await asyncio.wait([watching])
    assert goal.reached_s is None
    assert goal.at_target == set()


async def test_an_error_in_the_stream_ends_the_watch_because_events_may_be_lost() -> None:
    error = {"type": "ERROR", "object": {"kind": "Status", "metadata": {}, "code": 410}}
    async with observer(Server(json.dumps(error).encode() + b"\n")) as eyes, asyncio.timeout(60):
        with pytest.raises(ExceptionGroup) as raised:
            await eyes.watch(await eyes.versions())
    assert raised.group_contains(WatchFailed, match="deployments")
