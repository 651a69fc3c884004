"""A key waits for its own writes, and for nothing else."""

from __future__ import annotations

import pytest

from memcached_operator.runtime.cache.own_writes import PATIENCE_S, OwnWrites
from memcached_operator.runtime.cache.store import ObjectKey, Store
from memcached_operator.testing.clock import FakeClock
from tests.unit.things import Thing

KEY = ObjectKey("ns", "a")


class Fixture:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.things: Store[Thing] = Store()
        self.others: Store[Thing] = Store()
        self.writes = OwnWrites(self.clock)
        self.writes.observe("Thing", self.things)
        self.writes.observe("Other", self.others)


@pytest.fixture
def at() -> Fixture:
    return Fixture()


def test_nothing_written_is_nothing_to_wait_for(at: Fixture) -> None:
    at.things.put(Thing())
    assert not at.writes.pending(KEY)
    assert at.writes.wait_s(KEY) == 0.0
    assert not at.writes.overdue(KEY)


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
    at.writes.expect(KEY, "Thing", "u1", "20")
    assert at.writes.pending(KEY)
    assert at.writes.wait_s(KEY) == PATIENCE_S
    at.things.put(shown)
    assert at.writes.pending(KEY) is waits


def test_what_the_cache_has_shown_before_the_answer_came_is_not_awaited(at: Fixture) -> None:
    at.things.put(Thing(resource_version="20"))
    at.writes.expect(KEY, "Thing", "u1", "20")
    assert not at.writes.pending(KEY)


def test_the_object_that_leaves_ends_the_wait(at: Fixture) -> None:
    at.things.put(Thing())
    at.writes.expect(KEY, "Thing", "u1", "20")
    at.things.remove(KEY)
    assert not at.writes.pending(KEY)


def test_a_predecessor_that_changes_and_leaves_does_not_end_the_wait(at: Fixture) -> None:
    at.things.put(Thing(uid="u0"))
    at.writes.expect(KEY, "Thing", "u1", "20")
    at.things.put(Thing(uid="u0", resource_version="11"))
    at.things.remove(KEY)
    assert at.writes.pending(KEY)
    at.things.put(Thing(resource_version="20"))
    assert not at.writes.pending(KEY)


def test_versions_that_do_not_compare_must_be_equal(at: Fixture) -> None:
    at.things.put(Thing(resource_version="v1"))
    at.writes.expect(KEY, "Thing", "u1", "v3")
    at.things.put(Thing(resource_version="v2"))
    assert at.writes.pending(KEY)
    at.things.put(Thing(resource_version="v3"))
    assert not at.writes.pending(KEY)


def test_kinds_are_awaited_each_by_its_own_store(at: Fixture) -> None:
    at.writes.expect(KEY, "Thing", "u1", "20")
    at.writes.expect(KEY, "Other", "o1", "30")
    at.things.put(Thing(resource_version="35"))
    assert at.writes.pending(KEY)
    at.others.put(Thing(uid="o1", resource_version="30"))
    assert not at.writes.pending(KEY)


def test_a_picture_that_shows_the_write_ends_the_wait(at: Fixture) -> None:
    at.writes.expect(KEY, "Thing", "u1", "20")
    at.things.replace([Thing(resource_version="22")], set())
    assert not at.writes.pending(KEY)


def test_patience_ends_and_then_the_live_object_is_looked_at_once(at: Fixture) -> None:
    at.writes.expect(KEY, "Thing", "u1", "20")
    at.clock.advance(PATIENCE_S - 1.0)
    assert at.writes.wait_s(KEY) == 1.0
    assert not at.writes.overdue(KEY)
    at.writes.expect(KEY, "Thing", "u1", "25")
    at.clock.advance(1.0)
    assert at.writes.wait_s(KEY) == PATIENCE_S - 1.0
    at.clock.advance(PATIENCE_S)
    assert at.writes.wait_s(KEY) == 0.0
    assert at.writes.overdue(KEY)
    assert not at.writes.overdue(KEY)
    assert not at.writes.pending(KEY)


def test_a_key_whose_object_is_gone_is_forgotten(at: Fixture) -> None:
    at.writes.expect(KEY, "Thing", "u1", "20")
    at.writes.forget(KEY)
    at.writes.forget(KEY)
    assert not at.writes.pending(KEY)
