"""Snapshots, events, our writes and others' in any order: what a reconcile is shown is never behind its own writes.

The server here is a list of all that ever happened to one object; the reflector and the store are the real ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from hypothesis import given, settings, strategies as st

from operator_runtime.cache.own_writes import OwnWrites
from operator_runtime.cache.reflector import Reflector
from operator_runtime.cache.store import ObjectKey, Store
from tests.unit.things import THINGS, Thing, decode

KEY = ObjectKey("ns", "a")


class Happened(NamedTuple):
    """One write that the server took: what there was before it and after it, None for nothing."""

    version: int
    before: Thing | None
    after: Thing | None


class Answer(NamedTuple):
    """To a write of ours, on its way."""

    thing: Thing
    into_the_store: bool
    created: bool


class Cluster:
    """One object, whose contents differ with each version; a method for each thing that may happen to it.

    Attributes:
        written: the last version that a write of ours was answered with.
        watching: the version that the watch has shown, None while a snapshot is on its way.
        served: what that will show, once the server has looked.
    """

    def __init__(self) -> None:
        self.history: list[Happened] = []
        self.answers: list[Answer] = []
        self.written: Thing | None = None
        self.watching: int | None = None
        self.served: tuple[int, Thing | None] | None = None
        self.uids = 0
        self.store: Store[Thing] = Store()
        self.own = OwnWrites(lambda: 0.0)
        self.own.observe("Thing", self.store)
        self.reflector = Reflector(cast("Any", None), THINGS, decode, self.store)
        self.end_watch()

    @property
    def version(self) -> int:
        return self.history[-1].version if self.history else 1

    @property
    def live(self) -> Thing | None:
        return self.history[-1].after if self.history else None

    def write(self) -> Thing:
        before, version = self.live, self.version + 1
        self.uids += before is None
        uid = f"u{self.uids}" if before is None else before.uid
        after = Thing(uid=uid, resource_version=str(version), size=version)
        self.history.append(Happened(version, before, after))
        return after

    def delete(self) -> None:
        if self.live is not None:
            self.history.append(Happened(self.version + 1, self.live, None))

    # We: only on what we see, which a precondition makes sure of, and not while we wait.

    @property
    def may_write(self) -> bool:
        seen, live = self.store.get(KEY), self.live
        return not self.own.pending(KEY) and not self.answers and (seen and seen.uid) == (live and live.uid)

    def we_write(self, *, into_the_store: bool = False) -> None:
        if self.may_write:
            created = self.live is None
            self.answers.append(Answer(self.write(), into_the_store and not created, created))

    def we_write_into_the_store(self) -> None:
        self.we_write(into_the_store=True)

    def we_write_twice(self) -> None:
        if self.may_write:
            self.we_write()
            self.answers.append(Answer(self.write(), into_the_store=False, created=False))

    def we_delete(self) -> None:
        if self.may_write and self.live is not None:
            uid = self.live.uid
            self.delete()
            self.written = None
            self.own.expect_gone(KEY, "Thing", KEY, uid)

    def take_answer(self) -> None:
        if not self.answers:
            return
        thing, into_the_store, created = self.answers.pop(0)
        self.written = thing
        if not into_the_store:
            self.own.expect(KEY, "Thing", KEY, thing.uid, thing.resource_version, known=not created)
        elif self.store.get(KEY) is not None:
            self.store.put(thing, known_to="us")

    def lose_patience(self) -> None:
        """What has left without a trace would be waited for: after a while the live object is looked at.

        The next reconcile does that, which begins when all writes of the one before it are answered.
        """
        if not self.answers:
            self.own.forget(KEY)
            self.written = None

    # The watch

    def watch(self) -> None:
        """The next event comes, or the server takes a snapshot, or that comes."""
        if self.watching is not None:
            shown = self.watching
            event = next((each for each in self.history if each.version > shown), None)
            if event is None:
                return
            self.watching = event.version
            if event.after is not None:
                self.reflector.put(event.after)
            elif event.before is not None:
                self.reflector.remove(event.before)
        elif self.served is None:
            self.served = self.version, self.live
        else:
            (version, live), self.served = self.served, None
            if live is not None:
                self.reflector.put(live)
            self.reflector.complete(str(version))
            self.watching = version

    def end_watch(self) -> None:
        """Or the snapshot that was asked for fails: another one is asked for."""
        self.watching = self.served = None
        self.reflector.begin()

    def restore_etcd(self) -> None:
        """Versions go back. Answers are lost with the API server, the watch ends, and we see what there is.

        Before that a version may be used for a second time, which nobody can tell.
        """
        del self.history[-2:]
        self.answers.clear()
        self.written = None
        self.own.forget(KEY)
        self.end_watch()
        self.watch()
        self.watch()

    # What is promised

    def check(self) -> None:
        """What we wrote is not taken back, but by somebody who did so later."""
        if self.written is None or self.own.pending(KEY):
            return
        seen, version = self.store.get(KEY), int(self.written.resource_version)
        if seen is None:
            deleted = any(each.after is None and each.version > version for each in self.history)
            assert deleted, f"{self.written} is taken for deleted"
        else:
            assert int(seen.resource_version) >= version, f"{seen} is shown after {self.written}"

    def settle(self) -> None:
        while self.answers or self.watching != self.version:
            self.take_answer()
            self.watch()
            self.check()


# Weighted so that writes are often answered while a snapshot is on its way.
HAPPENS = [
    *[Cluster.watch] * 4,
    *[Cluster.take_answer] * 4,
    *[Cluster.end_watch] * 2,
    *[Cluster.we_write_into_the_store] * 3,
    *[Cluster.we_write, Cluster.we_write_twice, Cluster.we_delete],
    *[Cluster.write, Cluster.delete, Cluster.restore_etcd, Cluster.lose_patience],
]


@given(st.lists(st.sampled_from(HAPPENS), min_size=40, max_size=80))
@settings(max_examples=150)
def test_what_we_wrote_is_never_taken_back_by_a_snapshot_and_in_the_end_all_is_shown(happens: list[Any]) -> None:
    cluster = Cluster()
    for happen in happens:
        happen(cluster)
        cluster.check()
    cluster.settle()
    assert cluster.store.get(KEY) == cluster.live
