"""The reflector moves bytes and time: into the store, and into words for the operator on call."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec
import pytest

from memcached_operator.kube.errors import (
    AuthenticationUnavailable,
    KubeError,
    MalformedAnswer,
    NotFound,
    StreamStalled,
    Unreachable,
    classify,
    classify_response,
)
from memcached_operator.kube.resources import Resource
from memcached_operator.kube.watch import Cause
from memcached_operator.runtime.reflector import Reflector
from memcached_operator.runtime.store import ObjectKey, Store, key_of

DEADLINE_S = 10.0
THINGS = Resource("example.com", "v1", "things", "Thing")
FORBIDDEN = classify_response(
    403, b'{"kind":"Status","code":403,"reason":"Forbidden","message":"things.example.com is forbidden: no"}'
)
TEXT_404 = classify_response(404, b"404 page not found\n")


@dataclass(frozen=True)
class Thing:
    namespace: str
    name: str
    uid: str
    resource_version: str
    size: int


class _ThingMeta(msgspec.Struct):
    namespace: str
    name: str
    uid: str
    resourceVersion: str


class _ThingObject(msgspec.Struct):
    metadata: _ThingMeta
    size: int = 0


def decode(raw: msgspec.Raw) -> Thing:
    object_ = msgspec.json.decode(raw, type=_ThingObject)
    meta = object_.metadata
    return Thing(meta.namespace, meta.name, meta.uid, meta.resourceVersion, object_.size)


def thing(name: str, version: int, size: object = 1, uid: str = "u1") -> dict[str, object]:
    meta = {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": str(version)}
    return {"metadata": meta, "size": size}


def line(type_: str, object_: object) -> bytes:
    return json.dumps({"type": type_, "object": object_}).encode() + b"\n"


def end_mark(version: int) -> bytes:
    annotations = {"k8s.io/initial-events-end": "true"}
    return line("BOOKMARK", {"metadata": {"resourceVersion": str(version), "annotations": annotations}})


def bookmark(version: int) -> bytes:
    return line("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})


EXPIRED_EVENT = line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})

# What the server does with one request: refuses it, answers a page, or streams chunks, the last of which may be what
# breaks the stream.
Answer = KubeError | bytes | Sequence[bytes | KubeError]


class Body:
    def __init__(self, chunks: Sequence[bytes | KubeError]) -> None:
        self._chunks = list(chunks)
        self.received_bytes = 0

    async def read(self) -> bytes:
        if not self._chunks:
            return b""
        chunk = self._chunks.pop(0)
        if isinstance(chunk, KubeError):
            raise chunk
        self.received_bytes += len(chunk)
        return chunk


class Server:
    """Answers as scripted, then holds the next request open for ever."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.queries: list[dict[str, str]] = []
        self.open_streams = 0
        self.exhausted = asyncio.Event()

    async def request(self, method: str, path: str, *, query: Mapping[str, str] | None, gzip: bool) -> bytes:
        assert (method, gzip) == ("GET", True)
        answer = await self._next(query or {})
        return answer if isinstance(answer, bytes) else b"".join(map(_must_be_bytes, answer))

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str], silence_limit_s: float) -> AsyncIterator[Body]:
        assert path == "/apis/example.com/v1/namespaces/ns/things"
        answer = await self._next(query)
        assert not isinstance(answer, bytes)
        self.open_streams += 1
        try:
            yield Body(answer)
        finally:
            self.open_streams -= 1

    async def _next(self, query: Mapping[str, str]) -> bytes | Sequence[bytes | KubeError]:
        self.queries.append(dict(query))
        if not self.answers:
            self.exhausted.set()
            await asyncio.Event().wait()
        answer = self.answers.pop(0)
        if isinstance(answer, KubeError):
            raise answer
        return answer


def _must_be_bytes(chunk: bytes | KubeError) -> bytes:
    assert isinstance(chunk, bytes)
    return chunk


class Run:
    """A reflector that has seen all that the server had to say."""

    def __init__(self, *answers: Answer, remedies: dict[type[KubeError], str] | None = None) -> None:
        self.server = Server(*answers)
        self.store: Store[Thing] = Store()
        self.changes: list[tuple[Thing | None, Thing | None]] = []
        self.store.add_handler(lambda before, after: self.changes.append((before, after)))
        self.delays_s: list[float] = []
        self.now = 1000.0
        self.reflector = Reflector(
            self.server,
            THINGS,
            decode,
            self.store,
            namespace="ns",
            label_selector="app=x",
            remedies=remedies,
            clock=self._clock,
            sleep=self._sleep,
            uniform=lambda low, high: high,
        )

    def _clock(self) -> float:
        # A quarter of a second for each look: enough for an order, too little for a stream to count as healthy.
        self.now += 0.25
        return self.now

    async def _sleep(self, seconds: float) -> None:
        self.delays_s.append(seconds)
        self.now += seconds

    async def to_the_end(self) -> Run:
        task = asyncio.create_task(self.reflector.run())
        exhausted = asyncio.create_task(self.server.exhausted.wait())
        await asyncio.wait({task, exhausted}, timeout=DEADLINE_S, return_when=asyncio.FIRST_COMPLETED)
        assert not task.done(), task
        assert exhausted.done()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert self.server.open_streams == 0
        return self

    @property
    def sizes(self) -> dict[str, int]:
        found = [self.store.get(key) for key in self.store.keys()]  # noqa: SIM118 - not a dict
        return {each.name: each.size for each in found if each is not None}


@pytest.fixture(autouse=True)
def _log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "memcached_operator.runtime.reflector")


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records]


# Into the store.


async def test_a_picture_reaches_the_store_at_its_end_mark_and_not_before() -> None:
    half = await Run([line("ADDED", thing("a", 5)), Unreachable("reset")]).to_the_end()
    assert (half.sizes, half.reflector.synced.is_set()) == ({}, False)
    whole = await Run([line("ADDED", thing("a", 5)), end_mark(10)]).to_the_end()
    assert (whole.sizes, whole.reflector.synced.is_set()) == ({"a": 1}, True)
    assert whole.reflector.statistics.relists == 1
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
    assert run.reflector.statistics.restarts == {Cause.CLOSED: 2}


async def test_a_line_may_come_in_any_pieces_and_the_last_without_its_newline() -> None:
    text = line("ADDED", thing("a", 5)) + end_mark(10) + line("ADDED", thing("b", 11))[:-1]
    run = await Run([text[at : at + 7] for at in range(0, len(text), 7)]).to_the_end()
    assert run.sizes == {"a": 1, "b": 1}


async def test_a_truncated_last_line_comes_again_with_the_next_watch() -> None:
    run = await Run([end_mark(10) + line("ADDED", thing("a", 11))[:30]], [line("ADDED", thing("a", 11))]).to_the_end()
    assert run.server.queries[1]["resourceVersion"] == "10"
    assert run.sizes == {"a": 1}


async def test_a_relist_tells_what_changed_while_nobody_watched() -> None:
    run = await Run(
        [
            line("ADDED", thing("same", 1))
            + line("ADDED", thing("gone", 2))
            + line("ADDED", thing("new uid", 3))
            + end_mark(10)
        ],
        [EXPIRED_EVENT],
        [line("ADDED", thing("new uid", 15, uid="u2")) + line("ADDED", thing("same", 1)) + end_mark(20)],
    ).to_the_end()
    changes = [
        (key_of(after or before).name, before and before.uid, after and after.uid)  # type: ignore[arg-type]
        for before, after in run.changes[3:]
    ]
    assert changes == [("new uid", "u1", "u2"), ("gone", "u1", None)]
    assert run.reflector.statistics.relists == 2
    assert run.delays_s == []


async def test_a_change_and_a_deletion_while_the_picture_is_built_count() -> None:
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
    assert run.reflector.statistics.restarts == {Cause.UNSUPPORTED: 1, Cause.CLOSED: 3}


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
    statistics = run.reflector.statistics
    assert statistics.restarts == {Cause.SILENT: 1, Cause.UNREACHABLE: 1}
    assert statistics.last_event_s < statistics.last_byte_s
    assert statistics.relists == 0


# Objects that cannot be read.


async def test_an_unreadable_object_is_named_once_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    run = await Run(
        [
            line("ADDED", thing("bad", 5, size="big")) + line("ADDED", thing("good", 6)) + end_mark(10),
            line("MODIFIED", thing("bad", 11, size="bigger")),
        ]
    ).to_the_end()
    assert run.sizes == {"good": 1}
    ((level, message),) = said(caplog)
    assert level == "WARNING"
    assert message.startswith("cannot read Thing ns/bad, it is left alone until it changes: Expected `int`, got `str`")
    assert run.reflector.resource_version == "11"
    assert run.reflector.statistics.unreadable == 2


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
    assert len(said(caplog)) == 2
    # What was last read stays: it is there, and nothing is known against it.
    assert run.sizes == {"a": 1}


async def test_what_left_while_nobody_watched_is_no_longer_counted_as_unreadable(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad = line("ADDED", thing("a", 5, size="big"))
    run = await Run(
        [bad + end_mark(10)], [EXPIRED_EVENT], [end_mark(20)], [line("ADDED", thing("a", 21, size="big"))]
    ).to_the_end()
    assert [message[:24] for _, message in said(caplog)] == ["cannot read Thing ns/a, "] * 2
    assert run.sizes == {}


async def test_a_relist_keeps_what_is_there_but_unreadable_and_drops_it_when_it_goes() -> None:
    picture = [line("ADDED", thing("a", 5)) + end_mark(10)]
    kept = await Run(picture, [EXPIRED_EVENT], [line("ADDED", thing("a", 15, size="big")) + end_mark(20)]).to_the_end()
    assert kept.sizes == {"a": 1}
    gone = line("DELETED", thing("a", 16, size="big"))
    dropped = await Run(
        picture, [EXPIRED_EVENT], [line("ADDED", thing("a", 15, size="big")) + gone + end_mark(20)]
    ).to_the_end()
    assert dropped.sizes == {}
    watched = await Run([*picture, gone]).to_the_end()
    assert watched.sizes == {}


async def test_an_object_that_left_readably_while_the_picture_is_built_is_not_kept() -> None:
    run = await Run(
        [line("ADDED", thing("a", 5)) + end_mark(10)],
        [EXPIRED_EVENT],
        [line("ADDED", thing("a", 15, size="big")) + line("DELETED", thing("a", 16)) + end_mark(20)],
    ).to_the_end()
    assert run.store.get(ObjectKey("ns", "a")) is None


async def test_names_of_unreadable_objects_are_bounded_but_counted(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memcached_operator.runtime.reflector._UNREADABLE_NAMES", 3)
    bad = [line("ADDED", thing(f"t{number}", 11 + number, size="big")) for number in range(9)]
    run = await Run([end_mark(10), *bad]).to_the_end()
    assert len(said(caplog)) == 3
    assert run.reflector.statistics.unreadable == 9


# Words for the operator on call.


async def test_a_missing_crd_is_said_once_with_the_remedy_and_so_is_its_return(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = await Run(*[TEXT_404] * 6, [end_mark(10)], remedies={NotFound: "Install the CRD."}).to_the_end()
    assert said(caplog) == [
        (
            "ERROR",
            "cannot watch things.example.com in namespace ns: 404 NotFound: 404 page not found. Install the CRD. "
            "The operator keeps trying and goes on by itself.",
        ),
        ("INFO", "watching things.example.com in namespace ns again"),
    ]
    assert run.delays_s[:6] == [0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert run.reflector.synced.is_set()


async def test_a_missing_right_is_said_once_with_the_remedy(caplog: pytest.LogCaptureFixture) -> None:
    await Run(*[FORBIDDEN] * 6).to_the_end()
    assert said(caplog) == [
        (
            "ERROR",
            "cannot watch things.example.com in namespace ns: 403 Forbidden: things.example.com is forbidden: no. "
            "Grant get, list and watch on things.example.com to the operator's account. "
            "The operator keeps trying and goes on by itself.",
        )
    ]


async def test_a_booting_api_server_is_nothing_to_speak_of(caplog: pytest.LogCaptureFixture) -> None:
    await Run(
        [end_mark(10), Unreachable("reset")],
        FORBIDDEN,
        classify(503, "", "", 5.0),
        classify(429, "", "storage is (re)initializing", 1.0),
        [EXPIRED_EVENT],
        [end_mark(20)],
    ).to_the_end()
    assert said(caplog) == []


async def test_an_outage_is_said_once_and_its_relist_not_at_all(caplog: pytest.LogCaptureFixture) -> None:
    await Run(
        [end_mark(10), Unreachable("reset")], *[Unreachable("refused")] * 5, FORBIDDEN, [EXPIRED_EVENT], [end_mark(20)]
    ).to_the_end()
    assert [(level, message[:60]) for level, message in said(caplog)] == [
        ("ERROR", "cannot watch things.example.com in namespace ns: refused. Ch"),
        ("INFO", "watching things.example.com in namespace ns again"),
    ]


async def test_causes_that_take_turns_are_said_once_each(caplog: pytest.LogCaptureFixture) -> None:
    refused = Unreachable("refused")
    await Run(FORBIDDEN, refused, FORBIDDEN, refused, FORBIDDEN, refused).to_the_end()
    assert [message.split(": ")[1][:13] for _, message in said(caplog)] == ["403 Forbidden", "refused. Chec"]


async def test_the_next_outage_is_said_again(caplog: pytest.LogCaptureFixture) -> None:
    refused = Unreachable("refused")
    await Run([end_mark(10)], refused, refused, [bookmark(11)], refused, refused, [bookmark(12)]).to_the_end()
    assert [level for level, _ in said(caplog)] == ["ERROR", "INFO", "ERROR", "INFO"]


async def test_single_failures_between_healthy_streams_are_never_said(caplog: pytest.LogCaptureFixture) -> None:
    failure_and_health: list[Answer] = [Unreachable("reset"), [bookmark(11)]]
    await Run([end_mark(10)], *failure_and_health * 5).to_the_end()
    assert said(caplog) == []


@pytest.mark.parametrize(
    "answer",
    [[EXPIRED_EVENT], [b"<html>Please log in</html>"], [line("ERROR", {"kind": "Status", "code": 403})]],
    ids=["410", "a proxy's page", "403"],
)
async def test_bytes_that_are_no_event_are_no_recovery(caplog: pytest.LogCaptureFixture, answer: Answer) -> None:
    await Run(*[answer] * 6).to_the_end()
    assert [level for level, _ in said(caplog)] == ["ERROR"]


async def test_half_a_picture_is_no_recovery(caplog: pytest.LogCaptureFixture) -> None:
    half: Answer = [line("ADDED", thing("a", 1)), Unreachable("reset")]
    await Run(*[half] * 6).to_the_end()
    assert [level for level, _ in said(caplog)] == ["ERROR"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (AuthenticationUnavailable("no token: log in again"), "no token: log in again. The operator keeps trying"),
        (classify(401), "401 Unauthorized: no message. Give the operator a credential"),
        (classify(403, "", 'User "system:anonymous" cannot list'), "The request carried no credential"),
        (classify(500, "", "etcd is down."), "500 ServerError: etcd is down. See the API server's log."),
        (MalformedAnswer("a line is too long"), "a line is too long. Check what stands between"),
        (Unreachable("refused"), "refused. Check that the API server is up"),
        ([], "the answers end without an event. Check what stands between"),
    ],
)
async def test_each_trouble_has_words_and_a_remedy(
    caplog: pytest.LogCaptureFixture, answer: Answer, words: str
) -> None:
    await Run(answer, answer).to_the_end()
    ((_, message),) = said(caplog)
    assert words in message


def test_the_scope_is_named() -> None:
    server = Server()
    everywhere = Reflector(server, THINGS, decode, Store[Thing]())
    assert everywhere.description == "things.example.com in all namespaces"
