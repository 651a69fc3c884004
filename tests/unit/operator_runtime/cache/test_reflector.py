"""The reflector moves bytes and time into the store."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from operator_runtime.client.errors import StreamStalled, Unreachable, classify
from operator_runtime.client.watch_ends import Cause
from tests.unit.operator_runtime.cache.reflector_support import (
    DEADLINE_S,
    EXPIRED_EVENT,
    FORBIDDEN,
    Answer,
    Run,
    end_mark,
    line,
    logged,
)
from tests.unit.things import Thing, thing


@pytest.fixture(autouse=True)
def _log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "operator_runtime.cache.reflector")


# Into the store.


async def test_a_snapshot_reaches_the_store_at_its_end_mark_and_not_before() -> None:
    half = await Run([line("ADDED", thing("a", 5)), Unreachable("reset")]).to_the_end()
    assert (half.sizes, half.reflector.synced.is_set()) == ({}, False)
    whole = await Run([line("ADDED", thing("a", 5)), end_mark(10)]).to_the_end()
    assert (whole.sizes, whole.reflector.synced.is_set()) == ({"a": 1}, True)
    assert whole.reflector.relists == 1
    assert whole.reflector.resource_version == "10"


async def test_events_are_applied_as_they_come_and_the_watch_resumes_where_it_ended() -> None:
    run = await Run(
        [
            line("ADDED", thing("a", 5)) + line("ADDED", thing("b", 6)) + end_mark(10),
            line("MODIFIED", thing("a", 11, size=2)) + line("DELETED", thing("b", 12)),
        ],
        [line("ADDED", thing("c", 13))],
    ).to_the_end()
    assert run.sizes == {"a": 2, "c": 1}
    assert [query.get("resourceVersion") for query in run.server.queries] == [None, "12", "13"]
    assert run.delays_s == []
    assert run.reflector.restarts == {Cause.CLOSED: 2}


async def test_a_change_and_a_deletion_while_the_snapshot_is_built_count() -> None:
    run = await Run(
        [
            line("ADDED", thing("a", 5)) + line("ADDED", thing("b", 6)),
            line("MODIFIED", thing("a", 7, size=2)) + line("DELETED", thing("b", 8)) + end_mark(10),
        ]
    ).to_the_end()
    assert run.sizes == {"a": 2}
    assert len(run.changes) == 1


async def test_pages_are_put_together_where_there_are_no_streaming_lists() -> None:
    def page(*things: object, more: str = "") -> bytes:
        return json.dumps({"metadata": {"resourceVersion": "10", "continue": more}, "items": things}).encode()

    run = await Run(
        classify(422), page(thing("a", 5), more="token"), page(thing("b", 6)), [line("ADDED", thing("c", 11))]
    ).to_the_end()
    assert run.sizes == {"a": 1, "b": 1, "c": 1}
    assert [query.get("continue") for query in run.server.queries[1:3]] == [None, "token"]
    assert run.server.queries[3]["resourceVersion"] == "10"
    assert run.delays_s == []
    assert run.reflector.restarts == {Cause.UNSUPPORTED: 1, Cause.CLOSED: 3}


async def test_a_large_chunk_leaves_the_loop_a_turn() -> None:
    run = Run([b"".join(line("ADDED", thing(f"t{number}", number + 1)) for number in range(2000)) + end_mark(3000)])
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while not run.server.exhausted.is_set():
            ticks += 1
            await asyncio.sleep(0)

    ticker = asyncio.create_task(tick())
    await run.to_the_end()
    await asyncio.wait_for(ticker, DEADLINE_S)
    assert ticks >= 4
    assert len(run.store) == 2000


async def test_the_statistics_tell_bytes_from_events_and_count_by_cause() -> None:
    run = await Run([end_mark(10)[:20], StreamStalled("no byte for 70 s")], Unreachable("refused")).to_the_end()
    stream = run.reflector
    assert stream.restarts == {Cause.SILENT: 1, Cause.UNREACHABLE: 1}
    assert stream.last_event_s < stream.last_byte_s
    assert stream.relists == 0


async def test_an_answer_that_begins_is_a_sign_of_life_and_a_refusal_is_none() -> None:
    run = Run([end_mark(10)], FORBIDDEN, [StreamStalled("no byte for 70 s")])
    assert (run.reflector.silent_s, run.reflector.eventless_s) == (0.0, 0.0), "it has not begun"
    await run.to_the_end()
    stream = run.reflector
    assert stream.last_byte_s > stream.last_event_s
    assert run.reflector.eventless_s > run.reflector.silent_s > 0.0
    refused = await Run([end_mark(10)], FORBIDDEN).to_the_end()
    assert refused.reflector.silent_s == refused.reflector.eventless_s


async def test_the_cached_objects_are_those_of_the_scope() -> None:
    run = Run([line("ADDED", thing("mine", 1)) + end_mark(2)])
    run.store.put(Thing(namespace="elsewhere", name="foreign", uid="f", resource_version="1"))
    await run.to_the_end()
    assert run.reflector.cached_objects == 1
    run.reflector.namespace = None
    assert run.reflector.cached_objects == 2


# Objects that cannot be read.


async def test_an_unreadable_object_is_named_once_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    run = await Run(
        [
            line("ADDED", thing("bad", 5, size="big")) + line("ADDED", thing("good", 6)) + end_mark(10),
            line("MODIFIED", thing("bad", 11, size="bigger")),
        ]
    ).to_the_end()
    assert run.sizes == {"good": 1}
    ((level, message),) = logged(caplog)
    assert level == "WARNING"
    assert message.startswith("cannot read Thing ns/bad, it is skipped until it changes: Expected `int`, got `str`")
    assert run.reflector.resource_version == "11"
    assert run.reflector.unreadable_objects == 2


async def test_an_object_that_became_readable_is_named_again_when_it_breaks_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = await Run(
        [
            end_mark(10),
            line("ADDED", thing("a", 11, size="big")),
            line("MODIFIED", thing("a", 12)),
            line("MODIFIED", thing("a", 13, size="big")),
        ]
    ).to_the_end()
    assert len(logged(caplog)) == 2
    # What was last read stays: it is there, and nothing is known against it.
    assert run.sizes == {"a": 1}


async def test_what_left_while_nobody_watched_is_no_longer_counted_as_unreadable(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad = line("ADDED", thing("a", 5, size="big"))
    run = await Run(
        [bad + end_mark(10)], [EXPIRED_EVENT], [end_mark(20)], [line("ADDED", thing("a", 21, size="big"))]
    ).to_the_end()
    assert [message[:24] for _, message in logged(caplog)] == ["cannot read Thing ns/a, "] * 2
    assert run.sizes == {}


BROKEN = thing("a", 15, size="big")
SNAPSHOT = [line("ADDED", thing("a", 5)) + end_mark(10)]
GONE = line("DELETED", thing("a", 16, size="big"))


async def test_a_relist_keeps_what_is_there_but_unreadable() -> None:
    kept = await Run(SNAPSHOT, [EXPIRED_EVENT], [line("ADDED", BROKEN) + end_mark(20)]).to_the_end()
    assert kept.sizes == {"a": 1}


@pytest.mark.parametrize(
    "answers",
    [
        [[*SNAPSHOT, GONE]],
        [SNAPSHOT, [EXPIRED_EVENT], [line("ADDED", BROKEN) + GONE + end_mark(20)]],
        [SNAPSHOT, [EXPIRED_EVENT], [line("ADDED", BROKEN) + line("DELETED", thing("a", 16)) + end_mark(20)]],
    ],
    ids=["from the watch", "within a snapshot", "readably"],
)
async def test_an_unreadable_object_goes_when_it_leaves(answers: list[Answer]) -> None:
    assert (await Run(*answers).to_the_end()).sizes == {}


async def test_names_of_unreadable_objects_are_bounded_but_counted(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("operator_runtime.cache.reflector._UNREADABLE_NAMES", 3)
    bad = [line("ADDED", thing(f"t{number}", 11 + number, size="big")) for number in range(9)]
    run = await Run([end_mark(10), *bad]).to_the_end()
    assert len(logged(caplog)) == 3
    assert run.reflector.unreadable_objects == 9
