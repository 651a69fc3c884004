"""What is stored, under which revision, and what is remembered of before."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from kube_simulator.store.store import Change, Forgotten, Store
from tests.unit.kube_simulator.store.examples import LEASES, lease, names, put, version

C = LEASES.collection


@pytest.fixture
def store() -> Store:
    return Store()


# What is there.


def test_every_write_to_whatever_collection_raises_the_one_revision(store: Store) -> None:
    assert store.revision == 1
    assert version(put(store, "a")) == 2, "1 is a version that no object ever has"
    assert version(store.put("others", lease("a"))) == 3
    assert version(put(store, "a", x=1)) == 4
    assert version(store.delete(C, "ns", "a")) == 5
    assert store.revision == 5


def test_what_is_written_is_what_is_read_until_it_is_deleted(store: Store) -> None:
    stored = put(store, "a", x=1)
    assert store.get(C, "ns", "a") is stored
    assert stored["spec"] == {"x": 1}
    last = store.delete(C, "ns", "a")
    assert last == {**stored, "metadata": {**stored["metadata"], "resourceVersion": "3"}}
    assert store.get(C, "ns", "a") is None
    with pytest.raises(KeyError):
        store.delete(C, "ns", "a")
    assert store.revision == 3


def test_neither_what_was_handed_over_nor_what_was_stored_before_is_changed(store: Store) -> None:
    given_ = lease("a", x=1)
    first = store.put(C, given_)
    assert given_ == lease("a", x=1)
    store.put(C, {**first, "spec": {"x": 2}})
    assert (first["spec"], version(first)) == ({"x": 1}, 2)


def test_names_count_within_their_namespace_and_collection(store: Store) -> None:
    here, there = put(store, "a", "here"), put(store, "a", "there")
    cluster_wide = store.put("namespaces", {"metadata": {"name": "a"}})
    assert store.get(C, "here", "a") is here
    assert store.get(C, "there", "a") is there
    assert store.get("namespaces", "", "a") is cluster_wide
    assert store.get(C, "", "a") is None
    assert store.get("absent", "", "a") is None


def test_a_list_is_in_the_order_of_etcd_s_keys(store: Store) -> None:
    for namespace, name in (("b", "y"), ("b-c", "n"), ("b", "x"), ("bb", "z"), ("a", "m")):
        put(store, name, namespace)
    assert names(store.list(C)) == ["m", "n", "x", "y", "z"], 'a hyphen comes before the "/" that ends a namespace'
    assert names(store.list(C, "b")) == ["x", "y"]
    assert store.list(C, "c") == store.list("absent") == []
    store.delete(C, "b", "x")
    put(store, "y", "b", changed=True)
    assert names(store.list(C, "b")) == ["y"]


# What was there.


def test_the_changes_since_a_revision_are_those_of_the_collection_with_before_and_after(store: Store) -> None:
    created = put(store, "a", x=1)
    store.put("others", lease("o"))
    edited = put(store, "a", x=2)
    last = store.delete(C, "ns", "a")
    expected = [
        Change("ADDED", C, 2, created, None),
        Change("MODIFIED", C, 4, edited, created),
        Change("DELETED", C, 5, last, edited),
    ]
    for revision, since in ((0, expected), (2, expected[1:]), (3, expected[1:]), (4, expected[2:]), (5, [])):
        assert store.changes_since(C, revision) == since
    assert store.changes_since("absent", 0) == []


WRITES = st.lists(st.tuples(st.booleans(), st.sampled_from(["a", "a-b", "b"]), st.sampled_from("xyz")), max_size=30)


@given(WRITES)
def test_a_list_of_any_revision_is_what_was_listed_then(writes: list[tuple[bool, str, str]]) -> None:
    store = Store()
    seen = {1: (store.list(C), store.list(C, "a"))}
    for delete, namespace, name in writes:
        if not delete:
            put(store, name, namespace, revision=store.revision)
        elif store.get(C, namespace, name):
            store.delete(C, namespace, name)
        seen[store.revision] = (store.list(C), store.list(C, "a"))
    for revision, then in seen.items():
        assert (store.list_at(C, "", revision), store.list_at(C, "a", revision)) == then


def test_the_oldest_changes_are_dropped_in_batches_and_asking_for_them_says_so() -> None:
    store = Store(history_changes=10)
    store.put("others", lease("o"))
    for number in range(1009):
        put(store, "a", number=number)
    assert len(store.changes_since(C, 2)) == 1009, "a few more than promised are kept, for a while"
    put(store, "a", number=1009)
    changes = store.changes_since(C, 1002)
    assert [change.object["spec"]["number"] for change in changes] == list(range(1000, 1010))
    for ask in (store.changes_since, lambda collection, revision: store.list_at(collection, "", revision)):
        with pytest.raises(Forgotten) as refused:
            ask(C, 1001)
        assert refused.value.oldest == 1002
    assert len(store.changes_since("others", 0)) == 1, "each collection has a history of its own"


def test_forgetting_leaves_the_present_and_what_comes(store: Store) -> None:
    put(store, "a")
    put(store, "b")
    store.forget()
    assert names(store.list(C)) == names(store.list_at(C, "", 3)) == ["a", "b"]
    assert store.changes_since(C, 3) == []
    for collection in (C, "never written to"):
        with pytest.raises(Forgotten) as refused:
            store.changes_since(collection, 2)
        assert refused.value.oldest == 3
    put(store, "c")
    assert [change.revision for change in store.changes_since(C, 3)] == [4]


# Who is told.


def test_listeners_are_told_within_the_write_of_all_or_of_their_collection(store: Store) -> None:
    everything: list[Change] = []
    leases: list[Change] = []
    leave = store.subscribe(everything.append)
    store.subscribe(leases.append, C)
    put(store, "a")
    assert everything == leases == store.changes_since(C, 0)
    store.put("others", lease("o"))
    store.delete(C, "ns", "a")
    leave()
    put(store, "b")
    assert [change.revision for change in everything] == [2, 3, 4]
    assert [change.revision for change in leases] == [2, 4, 5]


def test_a_listener_that_writes_does_not_make_others_hear_of_it_too_early(store: Store) -> None:
    heard: list[int] = []

    def answer(change: Change) -> None:
        if change.revision < 5:
            put(store, f"{change.revision}")

    store.subscribe(answer)
    store.subscribe(lambda change: heard.append(change.revision))
    put(store, "a")
    assert heard == [2, 3, 4, 5]
    put(store, "z")
    assert heard == [2, 3, 4, 5, 6]


def test_a_listener_that_fails_does_not_silence_the_store(store: Store) -> None:
    heard: list[int] = []

    def fail(change: Change) -> None:
        raise LookupError(change.type)

    leave = store.subscribe(fail)
    store.subscribe(lambda change: heard.append(change.revision))
    with pytest.raises(LookupError):
        put(store, "a")
    leave()
    put(store, "b")
    assert heard == [3]
