"""Whose a field is, by managedFields as a real API server wrote them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from operator_runtime.objects.managed_fields import Writers

OPERATOR, KUBECTL, HELM, CONTROLLER = "memcached-operator", "kubectl-edit", "helm", "kube-controller-manager"
UID = "eba450eb-158b-4e83-8977-681c598117da"


def entry(manager: str, fields: dict[str, Any], minute: int, subresource: str = "") -> dict[str, Any]:
    found = {"manager": manager, "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1"}
    found |= {"time": f"2026-11-21T12:{minute:02}:00Z"} | ({"subresource": subresource} if subresource else {})
    return found | {"fieldsV1": fields}


def container(**fields: Any) -> dict[str, Any]:
    entry = {'k:{"name":"memcached"}': {".": {}, "f:name": {}, **{f"f:{name}": each for name, each in fields.items()}}}
    return {"f:spec": {"f:template": {"f:spec": {"f:containers": entry}}}}


PORT: dict[str, Any] = {".": {}, "f:containerPort": {}}
OPERATOR_FIELDS = {
    "f:metadata": {
        "f:labels": {"f:app": {}, "f:app.kubernetes.io/name": {}},
        "f:ownerReferences": {f'k:{{"uid":"{UID}"}}': {}},
    }
} | container(command={}, ports={'k:{"containerPort":11211,"protocol":"TCP"}': PORT})
MANAGED = [
    entry(OPERATOR, OPERATOR_FIELDS, 1),
    entry(KUBECTL, container(image={}, securityContext={"f:readOnlyRootFilesystem": {}}), 2),
    entry(KUBECTL, {"f:spec": {"f:replicas": {}}}, 3, "scale"),
    entry(HELM, container(image={}, ports={'k:{"containerPort":80,"protocol":"TCP"}': PORT}), 4),
    entry(HELM, {"f:spec": {"f:selector": {}}, "f:metadata": {"f:finalizers": {'v:"helm"': {}}}}, 5),
    entry(CONTROLLER, {"f:status": {"f:replicas": {}, "f:conditions": {}}}, 6, "status"),
]
LIVE = json.dumps({"metadata": {"name": "sessions", "managedFields": MANAGED}}).encode()


@pytest.mark.parametrize(
    ("path", "owners"),
    [
        ("metadata.labels[app.kubernetes.io/name]", [OPERATOR]),
        ("metadata.labels[team]", []),
        (f"metadata.ownerReferences[{UID}]", [OPERATOR]),
        (f"metadata.ownerReferences[{UID}].controller", [OPERATOR]),
        ("spec.template.spec.containers[memcached].image", [HELM, KUBECTL]),
        ("spec.template.spec.containers[memcached].command", [OPERATOR]),
        ("spec.template.spec.containers[memcached].ports", [HELM, OPERATOR]),
        ("spec.template.spec.containers[memcached].securityContext", [KUBECTL]),
        ("spec.template.spec.containers[memcached]", [HELM, KUBECTL, OPERATOR]),
        ("spec.selector.matchLabels[app]", [HELM]),
        ("spec.replicas", [KUBECTL]),
        ("status.conditions", [CONTROLLER]),
    ],
)
def test_a_field_belongs_to_the_manager_that_wrote_it_or_all_around_it_or_something_in_it(
    path: str, owners: list[str]
) -> None:
    assert [each.manager for each in Writers(LIVE).owners(path)] == owners


def test_a_writer_says_by_which_subresource_and_when() -> None:
    (writer,) = Writers(LIVE).owners("spec.replicas")
    assert (writer.manager, writer.time, writer.subresource) == (KUBECTL, "2026-11-21T12:03:00Z", "scale")


def test_who_wrote_the_object_at_all_is_told_apart_from_who_writes_its_status() -> None:
    latest = [each.manager for each in Writers(LIVE).latest("metadata.labels[team]")]
    assert latest == [HELM, HELM, KUBECTL, KUBECTL, OPERATOR]
    assert [each.manager for each in Writers(LIVE).latest("status.nodes")] == [CONTROLLER]


@pytest.mark.parametrize(
    "body", [b"", b"no JSON", b"{}", b'{"metadata": {"managedFields": 5}}', b'{"metadata": {"managedFields": [{}]}}']
)
def test_what_cannot_be_read_belongs_to_nobody(body: bytes) -> None:
    assert Writers(body).owners("spec.replicas") == []


def test_keys_that_are_no_json_are_not_looked_into() -> None:
    fields: dict[str, Any] = {"f:spec": {"f:list": {"k:no JSON": {}, "i:0": {}, "k:7": {}}}}
    body = json.dumps({"metadata": {"managedFields": [entry(KUBECTL, fields, 1)]}}).encode()
    assert Writers(body).owners("spec.list[memcached]") == []
