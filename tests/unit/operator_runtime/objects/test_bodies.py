"""The bodies that authors write, completed and checked."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pydantic
import pytest

from operator_runtime.cache.store import ObjectKey
from operator_runtime.client.resources import CONFIG_MAPS, DEPLOYMENTS, NODES
from operator_runtime.objects.bodies import checked_key, merge_diff, patch_body, plain_status, whole_body

KEY = ObjectKey("ns", "a")
META = {"namespace": "ns", "name": "a"}


def test_a_body_gets_version_and_kind() -> None:
    whole = whole_body(CONFIG_MAPS, {"metadata": META, "data": {"x": "y"}})
    assert (whole.namespace, whole.name) == ("ns", "a")
    assert whole.content == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": META, "data": {"x": "y"}}
    with pytest.raises(ValueError, match=r"metadata\.namespace is 'ns': a Node is cluster-scoped"):
        whole_body(NODES, {"metadata": META})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"apiVersion": "v1", "metadata": META}, "the body's apiVersion is 'v1', that of the kind is 'apps/v1'"),
        ({"kind": "Pod", "metadata": META}, "the body's kind is 'Pod', that of the kind is 'Deployment': leave it out"),
        ({"metadata": {"namespace": "ns"}}, r"metadata\.name is missing: name the Deployment"),
        ({}, r"metadata\.name is missing"),
        ({"metadata": {"name": "a"}}, r"metadata\.namespace is missing: a Deployment lives in a namespace"),
    ],
)
def test_a_body_of_another_kind_or_of_no_object_is_refused(body: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        whole_body(DEPLOYMENTS, body)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"metadata": {"name": "b"}}, r"metadata\.name is 'b', but the patch is for ConfigMap ns/a: leave it out"),
        ({"metadata": {"namespace": "x"}}, r"metadata\.namespace is 'x'"),
        ({"kind": "Pod"}, "the body's kind is 'Pod'"),
    ],
)
def test_a_patch_of_another_object_is_refused(body: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        patch_body(CONFIG_MAPS, KEY, body)


@pytest.mark.parametrize("wrong", ["ns/a", ("ns", "a"), None, [1], {"metadata": "a"}])
def test_a_key_or_a_body_of_another_type_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"give ObjectKey\(namespace, name\), such as `obj.key`"):
        checked_key(CONFIG_MAPS, wrong)
    with pytest.raises(TypeError, match="give a dict"):
        whole_body(DEPLOYMENTS, wrong)


def test_a_key_is_of_the_scope_of_its_kind() -> None:
    assert checked_key(CONFIG_MAPS, KEY) == "ns"
    assert checked_key(NODES, ObjectKey("", "n")) is None
    with pytest.raises(ValueError, match="the key of ConfigMap a has no namespace"):
        checked_key(CONFIG_MAPS, ObjectKey("", "a"))
    with pytest.raises(ValueError, match=r"the key of Node ns/a has a namespace, .* give ObjectKey\('', 'a'\)"):
        checked_key(NODES, KEY)
    with pytest.raises(ValueError, match="has no name"):
        checked_key(CONFIG_MAPS, ObjectKey("ns", ""))


@pytest.mark.parametrize(
    ("live", "desired", "patch"),
    [
        ({}, {}, {}),
        ({}, {"a": None}, {}),
        ({"a": None}, {}, {}),
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {}, {"a": None}),
        ({"a": 1}, {"a": None}, {"a": None}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, {"a": {"c": None}}),
        ({"a": [1, 2]}, {"a": [2]}, {"a": [2]}),
        ({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({}, {"a": {}}, {"a": {}}),
    ],
)
def test_the_difference_is_what_a_merge_patch_needs(
    live: dict[str, Any], desired: dict[str, Any], patch: dict[str, Any]
) -> None:
    assert merge_diff(live, desired) == patch


class Model(pydantic.BaseModel):
    ready_pods: int = pydantic.Field(default=0, serialization_alias="readyPods")


class Status(msgspec.Struct, rename="camel"):
    ready_pods: int = 0
    since: datetime | None = None
    model: Model | None = None


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"a": 1}, {"a": 1}),
        (Model(ready_pods=2), {"readyPods": 2}),
        (
            Status(1, datetime(2026, 11, 21, tzinfo=UTC), Model(ready_pods=3)),
            {"readyPods": 1, "since": "2026-11-21T00:00:00Z", "model": {"readyPods": 3}},
        ),
    ],
)
def test_a_status_of_any_type_becomes_what_json_has(status: object, expected: dict[str, Any]) -> None:
    assert plain_status(status) == expected


@pytest.mark.parametrize("status", [None, 3, ["a"], object()])
def test_a_status_that_is_no_object_is_refused(status: object) -> None:
    with pytest.raises(TypeError, match=r"the status is|cannot be written as JSON"):
        plain_status(status)
