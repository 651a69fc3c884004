"""Field selectors, alone and together with label selectors. The words are answers of a real API server."""

from __future__ import annotations

from typing import Any

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.resources import Resource
from kube_simulator.store.field_selectors import parse_fields
from kube_simulator.store.selection import selection_of
from kube_simulator.values import Json
from tests.unit.kube_simulator.store.examples import (
    CORE_EVENTS,
    EVENTS,
    LEASES,
    PODS,
    WIDGETS,
)


def object_(name: str, namespace: str = "ns", **fields: Any) -> Json:
    return {"metadata": {"name": name, "namespace": namespace}, **fields}


PLAIN = {"a": object_("a"), "b": object_("b"), "c": object_("a", "other")}
PODS_HERE = {
    "a": object_("a", status={"phase": "Running"}, spec={"nodeName": "n", "hostNetwork": True}),
    "b": object_("b", status={"phase": "Pending"}, spec={}),
    "c": object_("c"),
}
WIDGETS_HERE = {
    "a": object_("a", spec={"size": 3, "on": True}),
    "b": object_("b", spec={"size": 0, "on": False}),
    "c": object_("c", spec={}),
    "d": object_("d"),
    "e": object_("e", spec={"size": "x,=\\"}),
    "f": object_("f", spec="odd"),
}


@pytest.mark.parametrize(
    ("resource", "objects", "selector", "expected"),
    [
        (LEASES, PLAIN, "", "abc"),
        (LEASES, PLAIN, "metadata.name=a", "ac"),
        (LEASES, PLAIN, "metadata.name!=a", "b"),
        (LEASES, PLAIN, "metadata.name=a,metadata.namespace!=ns", "c"),
        (LEASES, PLAIN, "metadata.name=a,,metadata.name=b", ""),
        (PODS, PODS_HERE, "status.phase=Running", "a"),
        (PODS, PODS_HERE, "spec.nodeName=", "bc"),
        (PODS, PODS_HERE, "spec.hostNetwork=true", "a"),
        (PODS, PODS_HERE, "spec.hostNetwork=false", "bc"),
        (WIDGETS, WIDGETS_HERE, "spec.size=3", "a"),
        (WIDGETS, WIDGETS_HERE, "spec.size=0", "b"),
        (WIDGETS, WIDGETS_HERE, "spec.size=", "cdf"),
        (WIDGETS, WIDGETS_HERE, "spec.on=true", "a"),
        (WIDGETS, WIDGETS_HERE, "spec.on=false", "b"),
        (WIDGETS, WIDGETS_HERE, "metadata.namespace=ns,spec.on=", "cdef"),
    ],
)
def test_what_is_selected(resource: Resource, objects: dict[str, Json], selector: str, expected: str) -> None:
    fields = parse_fields(selector, resource)
    assert "".join(key for key, each in objects.items() if fields.matches(each)) == expected


@pytest.mark.parametrize(
    "event",
    [
        object_("e", involvedObject={"name": "web"}, reason="Made", source={"component": "maker"}),
        object_("e", regarding={"name": "web"}, reason="Made", reportingController="maker"),
        object_("e", involvedObject={"name": "web"}, reason="Made", source={}, reportingComponent="maker"),
    ],
)
def test_the_fields_of_an_event_go_by_the_names_of_both_api_groups(event: Json) -> None:
    for selector in ("involvedObject.name=web,reason=Made", "source=maker"):
        assert parse_fields(selector, CORE_EVENTS).matches(event)
    assert parse_fields("regarding.name=web", EVENTS).matches(event)
    assert not parse_fields("regarding.name=db", EVENTS).matches(event)


@pytest.mark.parametrize(
    ("resource", "selector"),
    [
        (LEASES, "metadata.name"),
        (LEASES, "metadata.name=a=b"),
        (LEASES, "metadata.name=a\\"),
        (LEASES, "spec.size=1"),
        (LEASES, "=x"),
        (PODS, "spec.size=1"),
        (EVENTS, "involvedObject.name=a"),
    ],
)
def test_what_cannot_be_read_or_selected_by_is_400(resource: Resource, selector: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_fields(selector, resource)
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("selector", "name"),
    [
        ("metadata.name=a", "a"),
        ("metadata.name!=b,metadata.name==a", "a"),
        ("metadata.name!=a", ""),
        ("metadata.namespace=a", ""),
        ("", ""),
    ],
)
def test_a_selector_may_leave_one_name(selector: str, name: str) -> None:
    assert parse_fields(selector, LEASES).name == name


def test_a_selection_is_of_labels_and_fields_together() -> None:
    red, unlabelled = object_("a"), object_("a")
    red["metadata"]["labels"] = {"color": "red"}
    unlabelled["metadata"]["labels"] = None
    both = selection_of(LEASES, {"labelSelector": "color=red", "fieldSelector": "metadata.name=a"})
    assert (both.matches(red), both.matches(unlabelled), both.everything) == (True, False, False)
    other = selection_of(LEASES, {"labelSelector": "color=red", "fieldSelector": "metadata.name=b"})
    assert not other.matches(red)
    assert selection_of(LEASES, {"labelSelector": "!color"}).matches(unlabelled)
    for query in ({}, {"labelSelector": " ", "fieldSelector": ","}):
        everything = selection_of(LEASES, query)
        assert everything.everything
        assert everything.matches(red)
