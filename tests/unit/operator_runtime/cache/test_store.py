"""The cache: versions, indexes and handlers, against a naive model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from operator_runtime.cache.store import ObjectKey, Store, key_of, version_reached
from tests.unit.things import Thing


def owner_of(thing: Thing) -> ObjectKey | None:
    return ObjectKey(thing.namespace, thing.owner) if thing.owner else None


def new_store() -> Store[Thing]:
    store: Store[Thing] = Store()
    store.add_index("owner", owner_of)
    return store


@pytest.fixture
def store() -> Store[Thing]:
    return new_store()


A = ObjectKey("ns", "a")


# Versions.


@pytest.mark.parametrize(
    ("seen", "desired", "reached"),
    [
        ("10", "10", True),
        ("11", "10", True),
        ("9", "10", False),
        ("100", "99", True),
        ("99", "100", False),
        ("99999999999999999999999999", "99999999999999999999999998", True),
        ("", "", True),
        ("", "10", False),
        ("10", "", False),
        ("010", "9", False),
        ("0", "9", False),
        ("10", "0", False),
        ("v11", "v10", False),
        ("v10", "v10", True),
        ("²", "1", False),
    ],
)
def test_versions_compare_as_decimal_numbers_and_by_equality_where_they_are_none(
    seen: str, desired: str, reached: bool
) -> None:
    assert version_reached(seen, desired) is reached


# Handlers.


def test_each_change_is_told_once_with_what_was_before(store: Store[Thing]) -> None:
    reported: list[tuple[Thing | None, Thing | None, Thing | None]] = []
    store.add_handler(lambda before, after: reported.append((before, after, store.get(A))))
    first, second = Thing(), Thing(resource_version="11")
    store.put(first)
    store.put(first)
    store.put(second)
    store.remove(A)
    store.remove(A)
    assert reported == [(None, first, first), (first, second, second), (second, None, None)]


def test_handlers_are_told_who_knows_of_a_change_and_its_echo_is_none(store: Store[Thing]) -> None:
    reported: list[tuple[Thing | None, str]] = []
    store.put(Thing())
    store.add_handler(lambda before, after: reported.append((after, store.known_to)))
    assert store.put(Thing(resource_version="11", owner="x"), known_to="shells")
    assert store.by_index("owner", ObjectKey("ns", "x")) == [Thing(resource_version="11", owner="x")]
    assert not store.put(Thing(resource_version="11", owner="x"))
    store.put(Thing(resource_version="12"))
    assert reported == [(Thing(resource_version="11", owner="x"), "shells"), (Thing(resource_version="12"), "")]


def test_an_index_that_nobody_added_is_told_with_those_that_there_are(store: Store[Thing]) -> None:
    with pytest.raises(ValueError, match="there is no index 'wner': add it by add_index; there are 'owner'"):
        store.by_index("wner", A)


# Snapshots.


# The object before, what is put once the snapshot was begun, that in it, its version: what is held.
SNAPSHOTS_BESIDE_PUTS = {
    "the answer to a write that the snapshot is too old for": ("10", "15", "10", "12", "15"),
    "to an object that it is too old for": ("", "15", "", "12", "15"),
    "a write that it shows": ("10", "15", "15", "15", "15"),
    "a later change": ("10", "15", "17", "18", "17"),
    "a later deletion": ("10", "15", "", "18", ""),
    "an answer that came too late": ("10", "9", "10", "12", "10"),
    "an etcd that was restored": ("500", "", "20", "30", "20"),
    "one that lost the object": ("500", "", "", "30", ""),
    "a version that does not compare": ("10", "x", "10", "12", "10"),
    "a snapshot without a version": ("10", "15", "10", "", "10"),
}


@pytest.mark.parametrize("versions", SNAPSHOTS_BESIDE_PUTS.values(), ids=SNAPSHOTS_BESIDE_PUTS)
def test_a_snapshot_wins_but_over_what_was_put_since_it_was_begun_and_is_later(
    store: Store[Thing], versions: tuple[str, str, str, str, str]
) -> None:
    before, since, snapshot, version, held = versions
    if before:
        store.put(Thing(resource_version=before))
    store.begin()
    if since:
        store.put(Thing(resource_version=since))
    store.replace([Thing(resource_version=snapshot)] if snapshot else [], set(), version=version)
    record = store.get(A)
    assert (record.resource_version if record else "") == held


def test_the_snapshots_of_two_namespaces_keep_apart_what_was_put(store: Store[Thing]) -> None:
    store.begin("ns")
    store.begin("other")
    assert store.awaits_snapshot("ns")
    store.put(Thing(resource_version="15"))
    store.replace([], set(), "other", version="12")
    store.replace([Thing()], set(), "ns", version="12")
    assert store.get(A) == Thing(resource_version="15")
    assert not store.awaits_snapshot("ns")
    assert not store._put_since


def test_handlers_can_tell_a_snapshot_from_an_event_and_one_that_fails_leaves_no_snapshot(store: Store[Thing]) -> None:
    flags: list[bool] = []
    store.add_handler(lambda before, after: flags.append(store.relisting))
    store.put(Thing())
    store.replace([Thing(name="b")], set())
    store.put(Thing(name="c"))
    assert flags == [False, True, True, False]
    store.add_handler(lambda before, after: next(iter(())))
    with pytest.raises(StopIteration):
        store.replace([Thing()], set())
    assert store.relisting is False


@pytest.mark.parametrize("backwards", [False, True], ids=["in order", "from the last"])
def test_an_index_files_as_many_under_one_value_as_there_are(store: Store[Thing], backwards: bool) -> None:
    things = [Thing(name=f"a{number}", owner="p") for number in range(20)]
    there: set[Thing] = set()
    for thing in things:
        store.put(thing)
        there.add(thing)
        assert set(store.by_index("owner", ObjectKey("ns", "p"))) == there
    for thing in reversed(things) if backwards else things:
        store.remove(key_of(thing))
        there.remove(thing)
        assert set(store.by_index("owner", ObjectKey("ns", "p"))) == there


# Against a model: a dict of records, indexes recomputed from scratch.

THINGS = st.builds(
    Thing,
    namespace=st.sampled_from(["n", "m"]),
    name=st.sampled_from(["a", "b", "c"]),
    uid=st.sampled_from(["u1", "u2"]),
    resource_version=st.integers(1, 12).map(str) | st.sampled_from(["x", "y"]),
    owner=st.sampled_from(["", "p", "q"]),
)
KEYS = st.builds(ObjectKey, st.sampled_from(["n", "m"]), st.sampled_from(["a", "b", "c"]))
SNAPSHOTS = st.tuples(
    st.lists(THINGS, max_size=5, unique_by=key_of), st.sets(KEYS, max_size=2), st.sampled_from(["n", "m", None])
)


@given(steps=st.lists(THINGS | st.tuples(KEYS, st.sampled_from(["u1", "u2", None])) | SNAPSHOTS, max_size=30))
def test_the_store_equals_a_naive_model(steps: list[Any]) -> None:
    store, model, replayed = new_store(), dict[ObjectKey, Thing](), dict[ObjectKey, Thing]()

    def replay(before: Thing | None, after: Thing | None) -> None:
        key = key_of(after or before or Thing())
        assert replayed.get(key) == before
        assert before != after
        if after is None:
            del replayed[key]
        else:
            replayed[key] = after

    store.add_handler(replay)
    for step in steps:
        match step:
            case Thing() as thing:
                held = model.get(key_of(thing))
                taken = store.put(thing)
                assert taken is (held is None or not version_reached(held.resource_version, thing.resource_version))
                if taken:
                    model[key_of(thing)] = thing
            case (ObjectKey() as key, uid):
                gone = key in model and uid in (None, model[key].uid)
                assert store.remove(key, uid) is gone
                if gone:
                    del model[key]
            case (list() as things, set() as kept, namespace):
                snapshot = {key_of(thing): thing for thing in things if namespace in (None, thing.namespace)}
                # A version names one content: the server never changes an object without changing its version.
                for key, thing in snapshot.items():
                    held = model.get(key)
                    if held and (held.uid, held.resource_version) == (thing.uid, thing.resource_version):
                        snapshot[key] = held
                store.replace(snapshot.values(), kept, namespace)
                model = {
                    key: thing for key, thing in model.items() if key in kept or namespace not in (None, key.namespace)
                } | snapshot
        assert {key: store.get(key) for key in store.keys()} == model == replayed  # noqa: SIM118 - not a dict
        for value in [ObjectKey(namespace, owner) for namespace in "nm" for owner in "pq"]:
            filed = store.by_index("owner", value)
            assert len(filed) == len(set(filed))
            assert set(filed) == {thing for thing in model.values() if owner_of(thing) == value}
