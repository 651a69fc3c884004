"""Finalizers: put on what lives, taken off what was cleaned up after, and a cleanup that fails is seen."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

import msgspec
import pytest

from operator_runtime.cache.store import ObjectKey
from operator_runtime.client.errors import Conflict, Forbidden, KubeError, NotFound, Unreachable
from operator_runtime.controller.client import Client
from operator_runtime.controller.controller import StaleCache
from operator_runtime.diagnostics.failure_log import TerminalError
from operator_runtime.events.event_bodies import Event
from operator_runtime.events.recorder import EventRecorder
from operator_runtime.objects.api_objects import PlainObject
from operator_runtime.objects.conditions import Condition
from operator_runtime.objects.kinds import plain
from operator_runtime.owned import finalizer
from operator_runtime.owned.finalizer import Finalizer, Stage, Waiting
from tests.unit.fake_server import FakeServer

NAME = "shells.example.com/finalizer"
FOREIGN = "others.example.com/hold"
DEPLOYMENTS = plain("apps/v1", "Deployment", "deployments")
KEY = ObjectKey("ns", "a")
PATH = "/apis/apps/v1/namespaces/ns/deployments/a"
GOING = {"deletionTimestamp": "2026-11-21T10:00:00Z"}


class Fixture:
    """A finalizer of Deployments whose cleanup ends by the test's word.

    `outcomes` are what the next cleanups raise or give back; then they are done at once.
    """

    def __init__(self) -> None:
        self.server = FakeServer()
        self.client = Client(self.server, field_manager="shells")
        self.events = EventRecorder(
            self.server, reporting_controller="shells", reporting_instance="test", field_manager="shells"
        )
        self.cleaned: list[str] = []
        self.outcomes: list[BaseException | Waiting] = []
        self.reports: list[Condition] = []
        self.report_error: Exception | None = None
        self.finalizer = Finalizer(NAME, self.client, DEPLOYMENTS, self.cleanup, events=self.events, report=self.report)

    async def cleanup(self, obj: PlainObject) -> Waiting | None:
        self.cleaned.append(obj.name)
        if self.outcomes:
            outcome = self.outcomes.pop(0)
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome
        return None

    async def report(self, obj: PlainObject, condition: Condition) -> None:
        self.reports.append(condition)
        if self.report_error is not None:
            raise self.report_error

    @property
    def reported(self) -> list[Event]:
        return [recorded.event for recorded in self.events._queue]

    def stored(self, *finalizers: str, **metadata: Any) -> PlainObject:
        """The object in the server, with those finalizers."""
        body = {"metadata": {"namespace": "ns", "name": "a", "finalizers": list(finalizers), **metadata}}
        return DEPLOYMENTS.decode(msgspec.json.encode(self.server.store(PATH, body)))


@pytest.fixture
def at() -> Fixture:
    return Fixture()


async def test_an_object_that_lives_gets_the_finalizer_beside_those_of_others(at: Fixture) -> None:
    obj = at.stored(FOREIGN)
    stage, held = await at.finalizer.finalize(obj)
    assert stage is Stage.LIVE
    assert held.finalizers == (FOREIGN, NAME)
    assert at.server.last.body == {"metadata": {"resourceVersion": obj.resource_version, "finalizers": [FOREIGN, NAME]}}
    assert held.resource_version != obj.resource_version  # a status is to be written on this one
    assert at.cleaned == []


async def test_another_version_is_not_written_over(at: Fixture) -> None:
    obj = at.stored()
    at.stored(FOREIGN)
    with pytest.raises(Conflict):
        await at.finalizer.finalize(obj)


@pytest.mark.parametrize(
    ("finalizers", "metadata", "stage"), [([NAME], {}, Stage.LIVE), ([FOREIGN], GOING, Stage.GOING)]
)
async def test_nothing_is_sent_for_an_object_that_has_it_or_is_going_without_it(
    at: Fixture, finalizers: list[str], metadata: dict[str, str], stage: Stage
) -> None:
    obj = at.stored(*finalizers, **metadata)
    assert await at.finalizer.finalize(obj) == (stage, obj)
    assert (at.server.sent, at.cleaned) == ([], [])


async def test_an_object_under_deletion_goes_when_its_cleanup_is_done(
    at: Fixture, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    stage, _ = await at.finalizer.finalize(at.stored(NAME, **GOING))
    assert (stage, at.cleaned) == (Stage.CLEANED, ["a"])
    assert PATH not in at.server.by_path
    assert at.reported == []
    # One controller may have finalizers on two kinds, whose objects have one name.
    assert f"cleaned up after the Deployment, and removed its finalizer {NAME}" in caplog.text


async def test_a_cleanup_that_is_not_done_keeps_the_object_and_says_what_for_once_and_again_when_it_changes(
    at: Fixture, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    obj = at.stored(NAME, **GOING)
    at.outcomes = [Waiting("2 disks."), Waiting("2 disks."), Waiting("1 disk.")]
    for _ in range(3):
        assert await at.finalizer.finalize(obj) == (Stage.WAITING, obj)
    assert at.server.sent == []
    notes = [f"Deployment a cannot go yet, as its finalizer {NAME} waits: {rest}" for rest in ("2 disks.", "1 disk.")]
    assert [(event.type, event.reason, event.note) for event in at.reported] == [
        ("Normal", "CleanupPending", note) for note in notes
    ]
    assert [line.rpartition(": ")[2] for line in caplog.messages] == ["2 disks.", "1 disk."]
    assert at.reports[0] == Condition("Finalized", "False", "CleanupPending", "2 disks.")
    assert (await at.finalizer.finalize(obj)).stage is Stage.CLEANED
    assert at.cleaned == ["a"] * 4


@pytest.mark.parametrize(
    ("error", "again", "why"),
    [
        (RuntimeError("no disk"), "after a while", "RuntimeError: no disk"),
        (Forbidden(403, "Forbidden", "not yours"), "after a while", "403 Forbidden: not yours"),
        (TerminalError("set spec.owner"), "when the object changes", "set spec.owner"),
    ],
)
async def test_a_cleanup_that_fails_is_told_and_raised(at: Fixture, error: Exception, again: str, why: str) -> None:
    at.outcomes = [error]
    with pytest.raises(type(error)) as raised:
        await at.finalizer.finalize(at.stored(NAME, **GOING))
    assert raised.value is error
    note = f"Deployment a cannot go, as the cleanup of its finalizer {NAME} failed; it is tried again {again}: {why}"
    (event,) = at.reported
    assert (event.type, event.reason, event.action, event.note) == ("Warning", "CleanupFailed", "Cleanup", note)
    assert (event.regarding.kind, event.regarding.name) == ("Deployment", "a")
    assert at.reports == [Condition("Finalized", "False", "CleanupFailed", note)]
    assert at.server.by_path[PATH]["metadata"]["finalizers"] == [NAME]


async def test_a_cleanup_that_finds_the_caches_behind_has_not_failed(at: Fixture) -> None:
    at.outcomes = [StaleCache("it changed meanwhile")]
    with pytest.raises(StaleCache):
        await at.finalizer.finalize(at.stored(NAME, **GOING))
    assert (at.reported, at.reports) == ([], [])


async def test_a_report_that_fails_does_not_hide_why_the_cleanup_failed(at: Fixture) -> None:
    at.outcomes = [RuntimeError("no disk")]
    at.report_error = Conflict(409)
    with pytest.raises(RuntimeError, match="no disk"):
        await at.finalizer.finalize(at.stored(NAME, **GOING))
    assert len(at.reported) == 1


async def test_a_cleanup_that_was_cancelled_is_reported_when_the_next_attempt_begins(at: Fixture) -> None:
    obj = at.stored(NAME, **GOING)
    at.outcomes = [asyncio.CancelledError(), asyncio.CancelledError()]
    for reported in (0, 1):
        with pytest.raises(asyncio.CancelledError):
            await at.finalizer.finalize(obj)
        assert [each.reason for each in at.reports] == ["CleanupFailed"] * reported
    assert "it was cancelled, as it took longer than a reconcile may" in at.reports[0].message
    assert (await at.finalizer.finalize(obj)).stage is Stage.CLEANED
    assert not at.finalizer._unfinished


@pytest.mark.parametrize("outcome", [Waiting("the backup runs"), asyncio.CancelledError()])
async def test_what_was_tried_longest_ago_is_forgotten_where_there_is_too_much(
    at: Fixture, outcome: BaseException | Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finalizer, "MOST_UNFINISHED", 4)

    async def attempt(uid: str) -> None:
        at.outcomes.append(outcome)
        with contextlib.suppress(asyncio.CancelledError):
            await at.finalizer.finalize(at.stored(NAME, uid=uid, **GOING))

    await attempt("still-there")
    for number in range(4):
        await attempt(f"gone-{number}")
        if number == 1:
            await attempt("still-there")
    uids = list(at.finalizer._unfinished)
    assert uids == ["gone-1", "still-there", "gone-2", "gone-3"]


async def test_failures_and_waits_are_told_without_a_report(at: Fixture) -> None:
    quiet = Finalizer(NAME, at.client, DEPLOYMENTS, at.cleanup, events=at.events)
    obj = at.stored(NAME, **GOING)
    at.outcomes = [RuntimeError("no disk"), Waiting("Later.")]
    with pytest.raises(RuntimeError):
        await quiet.finalize(obj)
    assert (await quiet.finalize(obj)).stage is Stage.WAITING
    assert [event.reason for event in at.reported] == ["CleanupFailed", "CleanupPending"]
    assert at.reports == []


@pytest.mark.parametrize(
    ("then", "metadata", "left"),
    [
        ([NAME, FOREIGN], {}, [FOREIGN]),
        ([FOREIGN, NAME, "more/of-it"], {}, [FOREIGN, "more/of-it"]),
        ([FOREIGN], {}, [FOREIGN]),
        ([NAME], {"uid": "of-a-successor"}, [NAME]),
    ],
    ids=["another came", "others stay", "ours was taken off", "it has a successor"],
)
async def test_what_happens_to_the_object_during_its_cleanup_is_left_and_has_it_cleaned_once(
    at: Fixture, then: list[str], metadata: dict[str, str], left: list[str]
) -> None:
    obj = at.stored(NAME, **GOING)
    at.stored(*then, **{"uid": obj.uid, **GOING, **metadata})
    assert (await at.finalizer.finalize(obj)).stage is Stage.CLEANED
    assert at.server.by_path[PATH]["metadata"]["finalizers"] == left
    assert at.cleaned == ["a"]


@pytest.mark.parametrize("refusals", [{"PATCH": [NotFound(404)]}, {"PATCH": [Conflict(409)], "GET": [NotFound(404)]}])
async def test_what_seems_to_be_gone_is_read_again(at: Fixture, refusals: dict[str, list[KubeError]]) -> None:
    # An API server that boots does not know the kind yet, and no event would tell that the object is still there.
    obj = at.stored(NAME, **GOING)
    at.server.refusals = refusals
    with pytest.raises(StaleCache):
        await at.finalizer.finalize(obj)
    assert (await at.finalizer.finalize(obj)).stage is Stage.CLEANED
    assert PATH not in at.server.by_path


@pytest.mark.parametrize(("error", "tries"), [(Conflict(409), 5), (Unreachable("refused"), 1)])
async def test_an_object_that_cannot_be_released_is_left_to_the_backoff(
    at: Fixture, error: KubeError, tries: int
) -> None:
    obj = at.stored(NAME, **GOING)
    at.server.refusals = {"PATCH": [error] * 100}
    with pytest.raises(type(error)):
        await at.finalizer.finalize(obj)
    assert at.server.methods.count("PATCH") == tries


CUSTOM = plain("shells.example.com/v1", "Shell", "shells")


@pytest.mark.parametrize("name", ["a.b/c", f"a/{'x' * 63}", "a/B.c_d"])
def test_a_qualified_name_is_taken_and_for_custom_resources_a_domain_alone(at: Fixture, name: str) -> None:
    assert Finalizer(name, at.client, DEPLOYMENTS, at.cleanup, events=at.events).name == name
    assert Finalizer("finalizer.example.com", at.client, CUSTOM, at.cleanup, events=at.events).name


@pytest.mark.parametrize(
    "name", ["", "finalizer.example.com", "a.b/", "/c", "A.b/c", "a.b/c/d", f"a/{'x' * 64}", f"{'a' * 254}/c", "a./c"]
)
def test_a_name_that_the_server_would_not_take_is_refused(at: Fixture, name: str) -> None:
    with pytest.raises(ValueError, match=r"the finalizer's name is '.*': write DOMAIN/NAME, such as"):
        Finalizer(name, at.client, DEPLOYMENTS, at.cleanup, events=at.events)


async def test_a_cleanup_that_is_none_or_gives_back_something_else_is_named_and_the_object_stays(at: Fixture) -> None:
    async def careless(obj: PlainObject) -> object:
        return True

    wrong: Any = lambda obj: None  # noqa: E731
    with pytest.raises(TypeError, match="is not a coroutine function: write `async def`"):
        Finalizer(NAME, at.client, DEPLOYMENTS, wrong, events=at.events)
    finalizer = Finalizer(NAME, at.client, DEPLOYMENTS, careless, events=at.events, report=at.report)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^the cleanup .*careless \(.*\) gave back True: give None when all is do"):
        await finalizer.finalize(at.stored(NAME, **GOING))
    assert PATH in at.server.by_path
    assert [event.reason for event in at.reported] == ["CleanupFailed"]
    assert [report.reason for report in at.reports] == ["CleanupFailed"]
