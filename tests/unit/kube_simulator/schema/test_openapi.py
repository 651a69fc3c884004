"""OpenAPI documents of what is served, as kubectl reads them."""

import json
from typing import Any

import pytest

from kube_simulator.resources import Registry
from kube_simulator.schema import custom, kubernetes
from kube_simulator.schema.node import REFERENCE_PREFIX
from kube_simulator.schema.openapi import Documents
from tests.unit.kube_simulator.schema.schema_parts import INTEGER, TEXT, Json, an_object, crd

SCHEMA = an_object(
    {
        "metadata": an_object({"name": {**TEXT, "maxLength": 5}}),
        "spec": an_object({"size": {**INTEGER, "description": "How many."}}),
    },
    description="A thing.",
)
SUBRESOURCES: Json = {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}}


@pytest.fixture
def registry() -> Registry:
    found = Registry()
    for resource in kubernetes.builtin_resources():
        found.put(resource)
    return found


@pytest.fixture
def documents(registry: Registry) -> Documents:
    return Documents(registry)


def things(**version: Any) -> Json:
    return custom.defaulted(crd("things", SCHEMA, subresources=SUBRESOURCES, **version))


def document(documents: Documents, path: str) -> Json:
    found = json.loads(documents.document(path))
    assert isinstance(found, dict)
    return found


def kinds(found: Json) -> dict[str, Json]:
    return {
        said["kind"]: schema
        for schema in found["components"]["schemas"].values()
        for said in schema.get("x-kubernetes-group-version-kind", ())
    }


def references(part: object) -> set[str]:
    if isinstance(part, dict):
        own = {part["$ref"]} if isinstance(part.get("$ref"), str) else set()
        return own.union(*map(references, part.values()))
    return set().union(*map(references, part)) if isinstance(part, list) else set()


def test_the_index_names_each_group_and_version_with_a_hash_of_its_document(documents: Documents) -> None:
    paths = documents.index()["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/events.k8s.io/v1"} <= paths.keys()
    url = paths["apis/apps/v1"]["serverRelativeURL"]
    assert url.startswith("/openapi/v3/apis/apps/v1?hash=")
    assert documents.index()["paths"]["apis/apps/v1"]["serverRelativeURL"] == url
    with pytest.raises(KeyError):
        documents.document("apis/absent/v1")


def test_a_field_of_two_types_says_so_in_openapis_words_too(registry: Registry, documents: Documents) -> None:
    either: Json = {"x-kubernetes-int-or-string": True}
    fields = {"one": either, "list": {"type": "array", "items": either}, "map": an_object(additionalProperties=either)}
    [resource] = custom.resources_of(custom.defaulted(crd("things", an_object({"spec": an_object(fields)}))))
    registry.put(resource)
    shown = kinds(document(documents, "apis/questions.example.com/v1"))["Thing"]["properties"]["spec"]["properties"]
    both = {**either, "anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert (shown["one"], shown["list"]["items"], shown["map"]["additionalProperties"]) == (both, both, both)
    assert "anyOf" not in resource.schema.raw["properties"]["spec"]["properties"]["one"]


def test_a_crd_appears_changes_its_hash_when_it_changes_and_goes(registry: Registry, documents: Documents) -> None:
    path = "apis/questions.example.com/v1"
    [resource] = custom.resources_of(things())
    assert path not in documents.index()["paths"]
    registry.put(resource)
    first = documents.index()["paths"][path]
    [changed] = custom.resources_of(custom.defaulted(crd("things", an_object({"spec": an_object({"n": INTEGER})}))))
    registry.put(changed)
    assert documents.index()["paths"][path] != first
    registry.remove(resource.group, resource.plural)
    assert path not in documents.index()["paths"]


def test_a_crd_is_described_with_kubernetes_metadata_and_its_own_schema(
    registry: Registry, documents: Documents
) -> None:
    [resource] = custom.resources_of(things())
    registry.put(resource)
    found = document(documents, "apis/questions.example.com/v1")
    thing = found["components"]["schemas"]["com.example.questions.v1.Thing"]
    assert thing["description"] == "A thing."
    assert thing["properties"]["spec"] == SCHEMA["properties"]["spec"]
    assert thing["properties"]["metadata"]["allOf"] == [{"$ref": f"{REFERENCE_PREFIX}{kubernetes.META}ObjectMeta"}]
    assert "properties" not in thing["properties"]["metadata"], "the rules of the name are not published"
    assert "x-kubernetes-embedded-resource" not in thing
    assert kinds(found)["ThingList"]["properties"]["items"]["items"] == {
        "$ref": f"{REFERENCE_PREFIX}com.example.questions.v1.Thing"
    }
    root = "/apis/questions.example.com/v1"
    one = f"{root}/namespaces/{{namespace}}/things/{{name}}"
    assert found["paths"].keys() == {
        *(f"{root}/things", f"{root}/namespaces/{{namespace}}/things"),
        *(one, f"{one}/status", f"{one}/scale"),
    }
    assert found["paths"][f"{one}/scale"]["get"]["x-kubernetes-group-version-kind"]["kind"] == "Scale"


def test_all_that_a_document_refers_to_is_in_it(registry: Registry, documents: Documents) -> None:
    [resource] = custom.resources_of(things())
    registry.put(resource)
    for path in documents.index()["paths"]:
        found = document(documents, path)
        names = {REFERENCE_PREFIX + name for name in found["components"]["schemas"]}
        assert references(found) <= names, path
        assert found["openapi"] == "3.0.0"


def test_kubectl_finds_whether_a_patch_can_be_validated_and_merged_strategically(
    registry: Registry, documents: Documents
) -> None:
    [resource] = custom.resources_of(things())
    registry.put(resource)
    patches = {}
    for group, plural in (("apps", "deployments"), ("questions.example.com", "things")):
        item = document(documents, f"apis/{group}/v1")["paths"]
        patches[plural] = item[f"/apis/{group}/v1/namespaces/{{namespace}}/{plural}/{{name}}"]["patch"]
    for patch in patches.values():
        named = {parameter["name"] for parameter in patch["parameters"]}
        assert {"dryRun", "fieldManager", "fieldValidation", "force"} == named
    strategic = "application/strategic-merge-patch+json"
    assert strategic in patches["deployments"]["requestBody"]["content"]
    assert strategic not in patches["things"]["requestBody"]["content"]


def test_only_the_verbs_of_a_resource_are_told(documents: Documents) -> None:
    core = document(documents, "api/v1")["paths"]
    assert core["/api/v1/namespaces"].keys() == {"get", "post"}
    assert core["/api/v1/namespaces/{namespace}/pods"].keys() == {"get", "post", "delete"}
    reviews = document(documents, "apis/authorization.k8s.io/v1")["paths"]
    assert reviews["/apis/authorization.k8s.io/v1/subjectaccessreviews"].keys() == {"post"}
    assert "/apis/authorization.k8s.io/v1/subjectaccessreviews/{name}" not in reviews
