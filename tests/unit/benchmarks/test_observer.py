"""When a goal of the harness's watches counts as reached."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

from benchmarks.observer import Goal, Observer


def test_a_goal_is_reached_by_the_last_object_at_its_time_until_one_falls_back() -> None:
    goal = Goal(count=2, target=3)
    for name, number, now_s, reached_s in (
        ("a", 3, 1.0, None),
        ("a", 3, 2.0, None),
        ("b", None, 3.0, None),
        ("b", 3, 4.0, 4.0),
        ("a", 3, 5.0, 4.0),
        ("a", 2, 6.0, None),
    ):
        goal.see(name, number, now_s)
        assert goal.reached_s == reached_s


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
