"""Nulls in what is sent: where Go decodes a type, a null is no value, and leaves the zero of the type."""

import json
from typing import Any, Final

import pytest

from operator_runtime.testing.waiting import eventually
from tests.conformance.api import Api, Json, causes
from tests.conformance.sample_objects import custom_resource_definition, install, path

_SCHEMA: Final = "/spec/versions/0/schema/openAPIV3Schema"
_SPEC: Final = f"{_SCHEMA}/properties/spec"
_X: Final = f"{_SPEC}/properties/x"
_KEYWORDS: Final = (
    *("enum", "default", "nullable", "items", "additionalProperties", "allOf", "anyOf", "oneOf", "not", "format"),
    *("pattern", "maxLength", "minimum", "title", "example", "description", "x-kubernetes-validations"),
)


def crd_with(**changes: Any) -> Json:
    """A CRD in which the values at these paths stand instead."""
    crd = custom_resource_definition("Null", {"spec": {"type": "object", "properties": {"x": {"type": "string"}}}})
    for pointer, value in changes.items():
        *parents, last = pointer.strip("/").split("/")
        at: Any = crd
        for part in parents:
            at = at[int(part) if isinstance(at, list) else part]
        at[last] = value
    return crd


@pytest.mark.parametrize(
    "changes",
    [
        {f"{_SCHEMA}/properties": None, f"{_SCHEMA}/required": None}
        | {"/spec/versions/0/subresources": {"status": None, "scale": None}, "/status": None},
        {f"{_SPEC}/properties": None, f"{_SPEC}/required": None, "/spec/conversion": None}
        | {f"/spec/names/{key}": None for key in ("shortNames", "categories", "listKind", "singular")}
        | {f"/metadata/{key}": None for key in ("labels", "annotations", "finalizers", "ownerReferences")},
        {f"{_X}/{keyword}": None for keyword in _KEYWORDS}
        | {f"{_SPEC}/allOf": [None], "/spec/preserveUnknownFields": None}
        | {f"/spec/versions/0/{key}": None for key in ("subresources", "additionalPrinterColumns", "selectableFields")},
    ],
    ids=["no schema to speak of", "no fields", "no keywords"],
)
def test_a_crd_with_nulls_is_served_and_can_be_deleted(api: Api, namespace: str, changes: Json) -> None:
    crd = crd_with(**changes)
    install(api, crd)
    one = {"apiVersion": f"{crd['spec']['group']}/v1", "kind": "Null", "metadata": {"name": "one"}, "spec": {"x": "1"}}
    api.post(path("nulls", namespace), one).expect(201)
    definition = path("customresourcedefinitions", name=crd["metadata"]["name"])
    assert ": null" not in json.dumps(api.get(definition).expect(200)["spec"])
    api.delete(definition).expect(200)
    eventually(lambda: api.get(definition).status, lambda status: status == 404)


def test_a_null_in_a_built_in_kind_is_no_value(api: Api, namespace: str) -> None:
    body: Json = {"metadata": {"name": "c", "labels": {"a": None}, "annotations": None}, "data": {"b": None}}
    created = api.post(path("configmaps", namespace), {**body, "binaryData": None}).expect(201)
    assert (created["metadata"]["labels"], created["data"]) == ({"a": ""}, {"b": ""})
    assert "annotations" not in created["metadata"]
    assert "binaryData" not in created
    secret = {"metadata": {"name": "s"}, "data": {"a": None}, "stringData": {"b": None}}
    created = api.post(f"/api/v1/namespaces/{namespace}/secrets", secret).expect(201)
    assert created["data"] == {"a": "", "b": ""}

    container = {"name": "web", "image": "web:1", "env": None, "args": [None], "resources": {"limits": {"cpu": None}}}
    pod = {"containers": [container], "nodeSelector": {"a": None}, "volumes": None, "imagePullSecrets": [None]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    deployment = {"metadata": {"name": "web"}, "spec": spec}
    made = api.post(path("deployments", namespace), deployment, dryRun="All").expect(201)["spec"]["template"]["spec"]
    assert (made["nodeSelector"], made["imagePullSecrets"]) == ({"a": ""}, [{}])
    assert made["containers"][0]["args"] == [""]
    assert made["containers"][0]["resources"] == {"limits": {"cpu": "0"}}
    for containers, field in (
        (None, "spec.template.spec.containers"),
        ([None], "spec.template.spec.containers[0].name"),
    ):
        template["spec"] = {**pod, "containers": containers}
        refused = api.post(path("deployments", namespace), deployment, dryRun="All").expect(422, "Invalid")
        assert ("FieldValueRequired", field) in causes(refused)
