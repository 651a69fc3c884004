"""The client for reconcilers: what it sends, what it gives back, and what its controller then waits for."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from operator_runtime.cache.own_writes import OwnWrites
from operator_runtime.cache.store import ObjectKey, Store
from operator_runtime.client.api_client import APPLY_PATCH, MERGE_PATCH
from operator_runtime.client.errors import (
    AnswerTooLong,
    Conflict,
    Expired,
    Forbidden,
    MalformedAnswer,
    NotFound,
    UnreadableObject,
)
from operator_runtime.controller.client import Client
from operator_runtime.controller.controller import ReconcileContext, current_reconcile
from operator_runtime.objects.api_objects import Object, PlainObject
from operator_runtime.objects.kinds import plain, typed
from tests.unit import fake_server
from tests.unit.fake_server import FakeServer


class Spec(msgspec.Struct, frozen=True):
    size: int = 1


class Status(msgspec.Struct, frozen=True):
    ready: int = 0
    pods: tuple[str, ...] = ()
    note: str | None = None


SHELLS = typed("example.com/v1", "Shell", "shells", spec=Spec, status=Status)
PLAIN_SHELLS = plain("example.com/v1", "Shell", "shells")
FARMS = plain("example.com/v1", "Farm", "farms", namespaced=False)
KEY = ObjectKey("ns", "a")
OWNER = ObjectKey("ns", "owner")
COLLECTION = "/apis/example.com/v1/namespaces/ns/shells"
PATH = f"{COLLECTION}/a"
MANAGER = {"fieldManager": "shells"}


def shell(size: int = 1, name: str = "a", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "ns", "name": name, **metadata}, "spec": {"size": size}}


class Fixture:
    """A client, its server, and the caches of a controller whose own writes are noted."""

    def __init__(self) -> None:
        self.server = FakeServer()
        self.store: Store[Object[Spec, Status]] = Store()
        self.own = OwnWrites(lambda: 100.0)
        self.own.observe(SHELLS.resource.qualified_name, self.store)
        self.client = Client(self.server, field_manager="shells", own_writes_of={"shells": self.own}.get)

    def cached(self) -> Object[Spec, Status]:
        """The stored object, as the watch has brought it."""
        obj = SHELLS.decode(msgspec.json.encode(self.server.by_path[PATH]))
        self.store.put(obj)
        return obj


@pytest.fixture
def at() -> Fixture:
    return Fixture()


@contextmanager
def reconciling(key: object = OWNER, controller: str = "shells") -> Iterator[None]:
    token = current_reconcile.set(ReconcileContext(controller, key, 1))
    try:
        yield
    finally:
        current_reconcile.reset(token)


async def test_an_object_is_read_live_and_typed(at: Fixture) -> None:
    at.server.store(PATH, shell(3))
    assert (await at.client.get(SHELLS, KEY)).spec.size == 3
    with pytest.raises(NotFound):
        await at.client.get(SHELLS, ObjectKey("ns", "b"))


async def test_what_a_cluster_serves_of_a_kind_can_be_asked_before_it_is_tried(at: Fixture) -> None:
    pods = plain("v1", "Pod", "pods")
    assert await at.client.serves(pods, "resize")
    at.server.core = ("pods", "pods/status")
    assert not await at.client.serves(pods, "resize")


async def test_an_object_of_a_cluster_scoped_kind_has_no_namespace_in_its_path(at: Fixture) -> None:
    at.server.store("/apis/example.com/v1/farms/f", {"metadata": {"name": "f"}})
    assert (await at.client.get(FARMS, ObjectKey("", "f"))).key == ObjectKey("", "f")
    await at.client.patch(FARMS, ObjectKey("", "f"), {"spec": {"x": 1}})
    await at.client.delete(FARMS, ObjectKey("", "f"))
    assert {each.path for each in at.server.sent} == {"/apis/example.com/v1/farms/f"}


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        (shell(uid="u", resourceVersion="1") | {"spec": {"size": "x"}}, UnreadableObject, r"Shell ns/a: spec\.size"),
        ({"error": "log in first"}, MalformedAnswer, r"not an object of the API: .*log in first"),
    ],
)
async def test_an_answer_that_cannot_be_read_names_the_object_unless_it_is_none(
    at: Fixture, body: dict[str, Any], error: type[Exception], message: str
) -> None:
    at.server.by_path[PATH] = body
    with pytest.raises(error, match=message):
        await at.client.get(SHELLS, KEY)


async def test_a_list_is_read_page_by_page(at: Fixture) -> None:
    await at.client.list(SHELLS, "ns", "app=x", fields="metadata.name=a")
    assert at.server.sent.pop().query["fieldSelector"] == "metadata.name=a"
    at.server.pages = 2
    for name in "abcde":
        at.server.store(f"{COLLECTION}/{name}", shell(name=name))
    found = await at.client.list(SHELLS, "ns", "app=x")
    assert [each.name for each in found] == list("abcde")
    assert [each.query for each in at.server.sent] == [
        {"labelSelector": "app=x", "limit": "500"} | more for more in ({}, {"continue": "2"}, {"continue": "4"})
    ]


async def test_a_list_of_all_namespaces_names_none_and_pages_that_do_not_come_are_the_callers(at: Fixture) -> None:
    assert await at.client.list(SHELLS) == []
    assert at.server.last.path == "/apis/example.com/v1/shells"
    for error in (Expired(410), AnswerTooLong("it is")):
        at.server.refusals["GET"] = [error]
        with pytest.raises(type(error)):
            await at.client.list(SHELLS, "ns")


async def test_an_object_is_created_once(at: Fixture) -> None:
    made = await at.client.create(SHELLS, shell(2))
    assert (made.spec.size, made.uid) == (2, "uid-101")
    assert (at.server.last.method, at.server.last.path) == ("POST", COLLECTION)
    assert at.server.last.query == {**MANAGER, "fieldValidation": "Strict"}
    assert (at.server.last.body["apiVersion"], at.server.last.body["kind"]) == ("example.com/v1", "Shell")
    with pytest.raises(Conflict):
        await at.client.create(SHELLS, shell(2))


async def test_a_patch_and_an_apply_send_what_they_are_given_and_an_apply_takes_fields_from_others_unless_told(
    at: Fixture,
) -> None:
    await at.client.apply(SHELLS, shell(2))
    assert (at.server.last.method, at.server.last.path) == ("PATCH", PATH)
    assert (at.server.last.content_type, at.server.last.query) == (APPLY_PATCH, {**MANAGER, "force": "true"})
    await at.client.apply(SHELLS, shell(2), force=False)
    assert at.server.last.query == MANAGER
    assert (await at.client.patch(SHELLS, KEY, {"spec": {"size": 4}})).spec.size == 4
    assert (at.server.last.content_type, at.server.last.query) == (MERGE_PATCH, MANAGER)
    assert at.server.last.body == {"spec": {"size": 4}}


WRONG: Any = "ns/a"
GENERATED = {"metadata": {"namespace": "ns", "generateName": "a-"}}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda client: client.create(SHELLS, {"metadata": {"name": "a"}}), ValueError, "metadata.namespace is miss"),
        (lambda client: client.apply(SHELLS, shell() | {"kind": "Pod"}), ValueError, "the body's kind is 'Pod'"),
        (lambda client: client.apply(SHELLS, GENERATED), ValueError, "an apply needs the whole name"),
        (lambda client: client.patch(SHELLS, KEY, shell(name="b")), ValueError, "metadata.name is 'b'"),
        (lambda client: client.patch(SHELLS, KEY, {}, subresource="scale"), ValueError, "patch spec.replicas instead"),
        (lambda client: client.list(SHELLS, ""), ValueError, "namespace is '' for a list of shells: name a namespace"),
        (lambda client: client.list(FARMS, "ns"), ValueError, "namespace is 'ns' for a list of farms"),
        (lambda client: client.get(SHELLS, WRONG), TypeError, "give ObjectKey"),
        (lambda client: client.delete(SHELLS, WRONG), TypeError, "give ObjectKey"),
        (lambda client: client.patch(SHELLS, WRONG, {}), TypeError, "give ObjectKey"),
    ],
)
async def test_nothing_is_sent_of_what_makes_no_sense(
    at: Fixture, call: Callable[[Client], Awaitable[object]], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        await call(at.client)
    assert at.server.sent == []


async def test_a_status_is_written_where_it_differs_and_on_that_version(at: Fixture) -> None:
    at.server.store(PATH, shell() | {"status": {"ready": 1, "note": "old", "foreign": 7}})
    obj = await at.client.get(SHELLS, KEY)
    written = await at.client.patch_status(SHELLS, obj, Status(ready=1, pods=("p",)))
    assert at.server.last.path == f"{PATH}/status"
    assert at.server.last.body == {"metadata": {"resourceVersion": "101"}, "status": {"pods": ["p"], "note": None}}
    assert written.status == Status(ready=1, pods=("p",))
    assert at.server.by_path[PATH]["status"]["foreign"] == 7
    with pytest.raises(Conflict):
        await at.client.patch_status(SHELLS, obj, Status(ready=2))


async def test_nothing_is_sent_for_a_status_that_is_so_already(at: Fixture) -> None:
    at.server.store(PATH, shell() | {"status": {"ready": 1}})
    obj = await at.client.get(SHELLS, KEY)
    assert await at.client.patch_status(SHELLS, obj, Status(ready=1)) is obj
    monitor = await at.client.get(PLAIN_SHELLS, KEY)
    assert await at.client.patch_status(PLAIN_SHELLS, monitor, {"ready": 1}) is monitor
    assert at.server.methods == ["GET", "GET"]


async def test_a_plain_status_is_written_whole(at: Fixture) -> None:
    at.server.store(PATH, shell())
    obj = await at.client.get(PLAIN_SHELLS, KEY)
    first: PlainObject = await at.client.patch_status(PLAIN_SHELLS, obj, {"ready": 1, "at": {"x": 1}})
    assert first.body["status"] == {"ready": 1, "at": {"x": 1}}
    await at.client.patch_status(PLAIN_SHELLS, first, {"at": {"x": 1}})
    assert at.server.last.body["status"] == {"ready": None}


async def test_a_kind_without_a_status_is_told_from_an_object_that_is_gone(at: Fixture) -> None:
    at.server.store(PATH, shell())
    obj = await at.client.get(SHELLS, KEY)
    at.server.refusals["PATCH"] = [NotFound(404, "NotFound", "not found")]
    with pytest.raises(NotFound, match=r"Shell has no status subresource: .* shells\.example\."):
        await at.client.patch_status(SHELLS, obj, Status(ready=2))
    del at.server.by_path[PATH]
    with pytest.raises(NotFound, match="a not found"):
        await at.client.patch_status(SHELLS, obj, Status(ready=2))


async def test_what_is_written_to_an_object_is_of_that_one_and_no_successor(at: Fixture) -> None:
    at.server.store(PATH, shell())
    obj = await at.client.get(SHELLS, KEY)
    await at.client.patch(SHELLS, obj, {"spec": {"size": 2}, "metadata": {"labels": {"tier": "test"}}})
    assert at.server.last.body["metadata"] == {"uid": obj.uid, "labels": {"tier": "test"}}
    await at.client.patch(SHELLS, KEY, {"spec": {"size": 3}})
    assert "metadata" not in at.server.last.body
    await at.client.delete(SHELLS, obj)
    assert at.server.last.body == {"preconditions": {"uid": obj.uid}}
    at.server.store(PATH, shell())
    await at.client.delete(SHELLS, obj)
    assert PATH in at.server.by_path
    await at.client.delete(SHELLS, KEY)
    assert PATH not in at.server.by_path
    at.server.store(PATH, shell())
    obj = await at.client.get(SHELLS, KEY)
    await at.client.delete(SHELLS, obj, propagation="Foreground")
    assert (at.server.last.method, at.server.last.path) == ("DELETE", PATH)
    assert at.server.last.body == {"preconditions": {"uid": obj.uid}, "propagationPolicy": "Foreground"}
    assert at.server.by_path[PATH]["metadata"]["finalizers"] == ["foregroundDeletion"]


async def test_an_object_that_is_gone_need_not_be_deleted(at: Fixture) -> None:
    await at.client.delete(SHELLS, KEY)
    at.server.store(PATH, shell())
    predecessor = await at.client.get(SHELLS, KEY)
    for _ in range(2):
        await at.client.delete(SHELLS, predecessor)
    at.server.store(PATH, shell())
    await at.client.delete(SHELLS, predecessor)
    assert PATH in at.server.by_path
    at.server.refusals["DELETE"] = [Conflict(409)]
    at.server.refusals["GET"] = [NotFound(404)]
    await at.client.delete(SHELLS, predecessor)


async def test_a_deletion_that_is_refused_is_not_taken_for_done(at: Fixture) -> None:
    at.server.store(PATH, shell())
    obj = await at.client.get(SHELLS, KEY)
    for error, which in ((Forbidden(403), KEY), (Conflict(409), KEY), (Conflict(409), obj)):
        at.server.refusals["DELETE"] = [error]
        with pytest.raises(type(error)):
            await at.client.delete(SHELLS, which)


async def test_each_write_is_awaited_and_no_read(at: Fixture) -> None:
    with reconciling():
        for write in (
            at.client.create(SHELLS, shell()),
            at.client.patch(SHELLS, KEY, {"spec": {"size": 7}}),
            at.client.apply(SHELLS, shell(8)),
        ):
            await write
            assert at.own.pending(OWNER)
            at.cached()
            assert not at.own.pending(OWNER)
        await at.client.get(SHELLS, KEY)
        await at.client.list(SHELLS, "ns")
        assert not at.own.pending(OWNER)
        await at.client.patch_status(SHELLS, at.cached(), Status(ready=3))
        assert at.own.pending(OWNER)
        at.cached()
        await at.client.delete(SHELLS, KEY)
        assert at.own.pending(OWNER)
    at.store.remove(KEY)
    assert not at.own.pending(OWNER)


async def test_nothing_is_awaited_of_a_write_that_changed_nothing_or_of_what_was_gone(at: Fixture) -> None:
    at.server.store(PATH, shell(2))
    with reconciling():
        await at.client.patch(SHELLS, KEY, {"spec": {"size": 3}})
        assert not at.own.pending(OWNER), "no cache holds it"
        at.cached()
        await at.client.patch(SHELLS, KEY, {"spec": {"size": 3}})
        del at.server.by_path[PATH]
        await at.client.delete(SHELLS, KEY)
    assert not at.own.pending(OWNER)


async def test_who_takes_the_last_finalizer_off_waits_until_the_object_has_left(at: Fixture) -> None:
    going: dict[str, Any] = {"deletionTimestamp": "2026-11-21T10:00:00Z", "finalizers": ["a.b/c"]}
    at.server.store(PATH, shell(**going))
    at.cached()
    with reconciling():
        await at.client.patch(SHELLS, KEY, {"metadata": {"finalizers": None}})
    assert PATH not in at.server.by_path
    assert at.own.pending(OWNER)
    at.store.remove(KEY)
    assert not at.own.pending(OWNER)


@pytest.mark.parametrize(("key", "controller"), [(OWNER, "another"), ("no object", "shells")])
async def test_a_controller_that_waits_for_nothing_is_left_alone(at: Fixture, key: object, controller: str) -> None:
    with reconciling(key, controller):
        await at.client.create(SHELLS, shell())
    await at.client.create(SHELLS, shell(name="b"))
    assert not at.own.pending(OWNER)
    assert at.server.methods == ["POST", "POST"]


@pytest.mark.parametrize("behind", [False, True])
async def test_a_cache_that_takes_an_answer_says_whether_the_writer_knew_what_it_held(
    at: Fixture, behind: bool
) -> None:
    client = Client(at.server, field_manager="shells", stores_of=lambda _: [at.store])
    at.server.store(PATH, shell(1))
    at.cached()
    known_to: list[str] = []
    at.store.add_handler(lambda *_: known_to.append(at.store.known_to))
    if behind:  # what somebody else changed meanwhile is shown by this answer, and by nothing after it
        at.server.store(PATH, shell(2, uid=at.server.by_path[PATH]["metadata"]["uid"]))
    live = await client.get(SHELLS, KEY)
    with reconciling(KEY):
        await client.patch_status(SHELLS, live, Status(ready=1))
    assert known_to == ["" if behind else "shells"]
    assert at.store.get(KEY) == await client.get(SHELLS, KEY)


async def test_an_answer_of_which_the_server_has_merged_something_is_new_to_the_writer(
    at: Fixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(fake_server._SCHEMAS, "shells", fake_server._SCHEMAS["pods"])
    client = Client(at.server, field_manager="shells", stores_of=lambda _: [at.store])
    at.server.store(PATH, shell(1))
    at.cached()
    known_to: list[str] = []
    at.store.add_handler(lambda *_: known_to.append(at.store.known_to))
    live = await client.get(SHELLS, KEY)
    guarded = {"metadata": {"resourceVersion": live.resource_version, "labels": {"a": "b"}}}
    with reconciling(KEY):
        await client.patch(SHELLS, live, guarded, strategic=True)
    assert known_to == [""]
