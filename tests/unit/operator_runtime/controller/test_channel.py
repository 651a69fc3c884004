"""Events from outside the cluster."""

from __future__ import annotations

import asyncio

import pytest

from operator_runtime.controller.channel import Channel


async def test_what_is_sent_reaches_each_listener_at_once_and_is_not_kept_for_others() -> None:
    channel: Channel[str] = Channel()
    first: list[str] = []
    second: list[str] = []
    channel.send("before")
    channel.listen(first.append)
    channel.listen(second.append)
    channel.send("a")
    assert (first, second) == (["a"], ["a"])


async def test_a_thread_may_send_and_the_event_loop_delivers() -> None:
    channel: Channel[str] = Channel()
    received: asyncio.Queue[asyncio.Task[None] | None] = asyncio.Queue()
    channel.listen(lambda event: received.put_nowait(asyncio.current_task()))
    await asyncio.to_thread(channel.send, "a")
    async with asyncio.timeout(60):
        assert await received.get() is None, "a callback of the loop, not of the thread"


def test_listening_takes_an_event_loop() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        Channel[str]().listen(lambda event: None)
