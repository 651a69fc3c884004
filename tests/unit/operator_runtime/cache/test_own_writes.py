"""A key waits for its own writes, and for nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from operator_runtime.cache.own_writes import PATIENCE_S, OwnWrites
from operator_runtime.cache.store import ObjectKey, Selection, Store
from operator_runtime.testing.clock import FakeClock
from tests.unit.things import Thing

KEY = ObjectKey("ns", "a")


class Doomed(NamedTuple):
    namespace: str = "ns"
    name: str = "a"
    uid: str = "u1"
    resource_version: str = "10"
    deleting: bool = False
    finalizers: tuple[str, ...] = ()


class Fixture:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.things: Store[Thing] = Store()
        self.others: Store[Thing] = Store()
        self.doomed: Store[Doomed] = Store()
        self.writes = OwnWrites(self.clock)
        self.writes.observe("Thing", self.things)
        self.writes.observe("Other", self.others)
        self.writes.observe("Doomed", self.doomed)


@pytest.fixture
def at() -> Fixture:
    return Fixture()


@pytest.mark.parametrize(
    ("shown", "waits"),
    [
        (Thing(resource_version="19"), True),
        (Thing(resource_version="20"), False),
        (Thing(resource_version="21"), False),
        (Thing(uid="u2", resource_version="30"), False),
        (Thing(name="b", resource_version="30"), True),
        (Thing(namespace="other", resource_version="30"), True),
    ],
)
def test_a_key_waits_until_the_cache_shows_its_write_or_a_later_one(at: Fixture, shown: Thing, waits: bool) -> None:
    at.things.put(Thing())
    at.writes.expect(KEY, "Thing", KEY, "u1", "20")
    assert at.writes.pending(KEY)
    assert at.writes.put_off_s(KEY) == PATIENCE_S
    at.things.put(shown)
    assert at.writes.pending(KEY) is waits


def test_patience_ends_and_then_the_live_object_is_read_once(at: Fixture) -> None:
    at.writes.expect(KEY, "Thing", KEY, "u1", "20")
    at.clock.advance(PATIENCE_S - 1.0)
    assert at.writes.put_off_s(KEY) == 1.0
    at.writes.expect(KEY, "Thing", KEY, "u1", "25")
    at.clock.advance(1.0)
    assert at.writes.put_off_s(KEY) == PATIENCE_S - 1.0
    at.clock.advance(PATIENCE_S)
    assert at.writes.put_off_s(KEY) == 0.0
    assert not at.writes.pending(KEY)


OTHER = ObjectKey("ns", "child")


def child(version: str) -> Thing:
    return Thing(name=OTHER.name, uid="c1", resource_version=version)


def test_two_keys_wait_for_one_object_each_for_its_own_write(at: Fixture) -> None:
    second = ObjectKey("ns", "b")
    at.writes.expect(KEY, "Other", OTHER, "c1", "20")
    at.writes.expect(second, "Other", OTHER, "c1", "25")
    at.others.put(child("20"))
    assert (at.writes.pending(KEY), at.writes.pending(second)) == (False, True)
    at.others.put(child("25"))
    assert not at.writes.pending(second)


def test_a_key_waits_for_all_that_it_wrote(at: Fixture) -> None:
    at.writes.expect(KEY, "Thing", KEY, "u1", "20")
    at.writes.expect(KEY, "Other", OTHER, "c1", "21")
    at.writes.expect(KEY, "Other", OTHER, "c1", "22")
    at.others.put(child("21"))
    assert at.writes.pending(KEY)
    at.things.put(Thing(resource_version="20"))
    assert at.writes.pending(KEY)
    at.others.put(child("22"))
    assert not at.writes.pending(KEY)


def test_what_is_in_no_cache_or_shown_by_the_first_of_several_is_not_awaited(at: Fixture) -> None:
    at.writes.expect(KEY, "Secret", KEY, "s1", "20")
    at.writes.expect_gone(KEY, "Secret", KEY, "s1")
    at.writes.expect(KEY, "Thing", KEY, "u1", "20", known=True)
    assert not at.writes.pending(KEY), "it has left already"
    at.things.put(Thing())
    second: Store[Thing] = Store()
    at.writes.observe("Thing", second)
    at.writes.expect(KEY, "Thing", KEY, "u1", "20", known=True)
    assert at.writes.pending(KEY)
    second.put(Thing(resource_version="20"))
    assert not at.writes.pending(KEY)
    at.writes.expect(KEY, "Thing", KEY, "u1", "20")
    assert not at.writes.pending(KEY)


def test_what_no_cache_will_ever_show_is_not_awaited(at: Fixture) -> None:
    labelled: Store[Thing] = Store(selection=Selection(("ns",), "app=a"))
    at.writes.observe("Labelled", labelled)
    there, elsewhere = ObjectKey("ns", "b"), ObjectKey("other", "b")
    for labels, where, waits in [
        ({"app": "a"}, there, True),
        ({"app": "b"}, there, False),
        (None, there, True),
        (None, elsewhere, False),
    ]:
        at.writes.expect(KEY, "Labelled", where, "c1", "20", labels=labels)
        assert at.writes.pending(KEY) is waits, (labels, where)
        at.writes.forget(KEY)


def test_what_leaves_a_selection_by_a_write_is_awaited_until_it_has_left(at: Fixture) -> None:
    labelled: Store[Thing] = Store(selection=Selection(labels="app=a"))
    at.writes.observe("Labelled", labelled)
    labelled.put(Thing())
    at.writes.expect(KEY, "Labelled", KEY, "u1", "20", labels={"app": "b"}, known=True)
    assert at.writes.pending(KEY)
    labelled.remove(KEY, "u1")
    assert not at.writes.pending(KEY)


BOUND = Doomed(deleting=True, finalizers=("a/b",))
Expect = Callable[[OwnWrites, ObjectKey, str, ObjectKey, str], None]
GONE, RELEASED = OwnWrites.expect_gone, OwnWrites.expect_released


@pytest.mark.parametrize(
    ("expect", "held", "shown", "waits"),
    [
        (GONE, Doomed(), Doomed(resource_version="11"), True),
        (GONE, Doomed(), Doomed(resource_version="11", deleting=True), False),
        (GONE, Doomed(), Doomed(resource_version="11", uid="u2"), False),
        (GONE, Doomed(), None, False),
        (RELEASED, BOUND, Doomed(resource_version="11", deleting=True, finalizers=("a/b", "c/d")), True),
        (RELEASED, BOUND, Doomed(resource_version="11", deleting=True), False),
        (RELEASED, BOUND, Doomed(resource_version="11", uid="u2", finalizers=("a/b",)), False),
        (RELEASED, BOUND, None, False),
    ],
)
def test_a_key_waits_until_what_it_deleted_is_going_and_what_it_released_leaves(
    at: Fixture, expect: Expect, held: Doomed, shown: Doomed | None, waits: bool
) -> None:
    at.doomed.put(held)
    expect(at.writes, KEY, "Doomed", KEY, "u1")
    assert at.writes.pending(KEY)
    if shown is None:
        at.doomed.remove(KEY)
    else:
        at.doomed.put(shown)
    assert at.writes.pending(KEY) is waits


@pytest.mark.parametrize(
    ("expect", "held"),
    [
        (GONE, None),
        (GONE, Doomed(uid="u2")),
        (GONE, Doomed(deleting=True)),
        (RELEASED, None),
        (RELEASED, Doomed(deleting=True)),
        (RELEASED, Doomed(uid="u2", finalizers=("a/b",))),
    ],
)
def test_what_the_cache_knows_already_is_not_awaited(at: Fixture, expect: Expect, held: Doomed | None) -> None:
    if held is not None:
        at.doomed.put(held)
    expect(at.writes, KEY, "Doomed", KEY, "u1")
    assert not at.writes.pending(KEY)


# A snapshot on its way


@pytest.mark.parametrize("deleted", [False, True])
def test_a_write_to_an_object_that_only_a_snapshot_on_its_way_can_show_is_awaited(at: Fixture, deleted: bool) -> None:
    at.things.begin()
    if deleted:
        at.writes.expect_gone(KEY, "Thing", KEY, "u1")
    else:
        at.writes.expect(KEY, "Thing", KEY, "u1", "20", known=True)
    assert at.writes.pending(KEY)
    at.things.replace([Thing(resource_version="15")], set(), version="18")
    assert at.writes.pending(KEY), "it was begun before the write"
    if deleted:
        at.things.remove(KEY)
    else:
        at.things.put(Thing(resource_version="20"))
    assert not at.writes.pending(KEY)


def test_what_no_snapshot_on_its_way_can_show_is_not_awaited(at: Fixture) -> None:
    shops: Store[Thing] = Store(selection=Selection(("shops",)))
    at.writes.observe("Shop", shops)
    shops.begin("shops")
    at.writes.expect(KEY, "Shop", KEY, "u1", "20", known=True)
    at.writes.expect_gone(KEY, "Shop", KEY, "u1")
    at.writes.expect_gone(KEY, "Thing", KEY, "u1")
    assert not at.writes.pending(KEY)
