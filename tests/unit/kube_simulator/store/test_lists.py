"""Lists: which version, which page, and what is refused. The words are answers of a real API server."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.resources import Resource
from kube_simulator.store.lists import Listing, list_page, present
from kube_simulator.store.selection import selection_of
from kube_simulator.store.store import Store
from tests.unit.kube_simulator.store.examples import LEASES, NAMESPACES, names, put


@pytest.fixture
def store() -> Store:
    """Five leases `a` to `e` in `ns`, of revisions 2 to 6, and one of another namespace before and behind."""
    store = Store()
    for name in "abcde":
        put(store, name, labels={"vowel": "yes"} if name in "ae" else {})
    put(store, "z", "m")
    put(store, "y", "o")
    return store


def page(store: Store, namespace: str = "ns", resource: Resource = LEASES, /, **query: str) -> Listing:
    """`continue` is a word of Python: it is written `continue_` here."""
    return list_page(store, resource, namespace, {key.rstrip("_"): value for key, value in query.items()})


def refused(store: Store, **query: str) -> ApiError:
    with pytest.raises(ApiError) as error:
        page(store, **query)
    return error.value


def content(token: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))


# The whole list.


def test_a_selected_name_is_found_without_looking_at_the_others(store: Store) -> None:
    one = selection_of(LEASES, {"fieldSelector": "metadata.name=b"})
    assert names(present(store, LEASES, "ns", one)) == ["b"]
    assert len(present(store, LEASES, "", one)) == 7, "the namespace is not known"
    store.put("namespaces", {"metadata": {"name": "b"}})
    store.put("namespaces", {"metadata": {"name": "c"}})
    assert names(present(store, NAMESPACES, "", one)) == ["b"]


# Pages.


def test_the_rest_may_be_asked_for_without_a_limit_and_of_all_namespaces(store: Store) -> None:
    first = page(store, "", limit="1")
    rest = page(store, "", continue_=first.continue_token)
    assert names(first.items + rest.items) == ["z", "a", "b", "c", "d", "e", "y"]
    store.put("namespaces", {"metadata": {"name": "m"}})
    store.put("namespaces", {"metadata": {"name": "n"}})
    first = page(store, "", NAMESPACES, limit="1")
    assert content(first.continue_token)["start"] == "/m\0"
    assert names(page(store, "", NAMESPACES, continue_=first.continue_token).items) == ["n"]


def test_a_limit_is_ignored_at_version_0_and_makes_any_other_version_exact(store: Store) -> None:
    assert len(page(store, limit="1", resourceVersion="0").items) == 5
    exact = page(store, limit="1", resourceVersion="4")
    assert (names(exact.items), exact.revision, exact.remaining) == (["a"], 4, 2)
    newer = page(store, limit="1", resourceVersion="4", resourceVersionMatch="NotOlderThan")
    assert (newer.revision, newer.remaining) == (8, 4)
    rest = page(store, limit="1", resourceVersion="0", continue_=exact.continue_token)
    assert names(rest.items) == ["b", "c"], "and so it is with a token"


# What cannot be had.


def test_a_forgotten_version_is_410_and_so_is_a_token_of_it(store: Store) -> None:
    first = page(store, limit="2")
    put(store, "bb")
    store.forget()
    for query in (
        {"resourceVersion": "8", "resourceVersionMatch": "Exact"},
        {"resourceVersion": "8", "limit": "1"},
        {"limit": "2", "continue_": first.continue_token},
    ):
        error = refused(store, **query)
        assert (error.code, error.reason) == (410, "Expired")
