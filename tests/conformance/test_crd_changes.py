"""A CRD that changes or goes while its objects are there: what their clients see, and what old objects may do."""

from collections.abc import Iterator
from typing import Any

import pytest

from operator_runtime.testing.waiting import eventually
from tests.conformance.api import Api, Json, version
from tests.conformance.sample_objects import GROUP, custom_resource_definition, install, path

CRD = path("customresourcedefinitions", name=f"gadgets.{GROUP}")


def gadget_crd(**name_rules: Any) -> Json:
    spec = {"type": "object", "properties": {"size": {"type": "integer"}}}
    metadata = {"type": "object", "properties": {"name": {"type": "string", **name_rules}}}
    return custom_resource_definition("Gadget", {"metadata": metadata, "spec": spec}, subresources={"status": {}})


def gadget(name: str, **metadata: Any) -> Json:
    identity = {"apiVersion": f"{GROUP}/v1", "kind": "Gadget"}
    return {**identity, "metadata": {"name": name, **metadata}, "spec": {"size": 1}}


@pytest.fixture
def gadgets(api: Api, namespace: str) -> Iterator[str]:
    """The path of a collection whose CRD may be changed and deleted."""
    install(api, gadget_crd())
    yield path("gadgets", namespace)
    api.delete(CRD)
    eventually(lambda: api.get(CRD).status, lambda status: status == 404)


def change_schema(api: Api, collection: str, field: str) -> None:
    """Add a field, and wait until the server goes by the new schema."""
    schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/" + field
    api.json_patch(CRD, {"op": "add", "path": schema, "value": {"type": "string"}}).expect(200)
    probe = gadget("probe")
    probe["spec"][field] = "x"
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    eventually(lambda: api.post(collection, probe, **query).status, lambda status: status == 201)


def test_a_changed_schema_ends_watches_and_forgets_their_versions(api: Api, gadgets: str) -> None:
    created = api.post(gadgets, gadget("a")).expect(201)
    held = str(version(created))
    with api.watch(gadgets, resourceVersion=held) as stream:
        change_schema(api, gadgets, "color")
        assert list(stream) == [], "a clean end"
    assert api.get(f"{gadgets}/a").expect(200) == created, "the objects stay"
    with api.watch(gadgets, resourceVersion=held) as stream:
        [event] = list(stream)
    assert (event.type, event.object["code"], event.object["reason"]) == ("ERROR", 410, "Expired")
    assert api.get(gadgets).expect(200)["items"] == [created], "a list helps"


def test_a_deleted_crd_deletes_its_objects_ends_watches_and_is_404_in_text(api: Api, gadgets: str) -> None:
    held = version(api.post(gadgets, gadget("a")).expect(201))
    with api.watch(gadgets, resourceVersion=str(held)) as stream:
        api.delete(CRD).expect(200)
        assert [event.key for event in stream] == [("DELETED", "a")]
    gone = eventually(lambda: api.get(gadgets), lambda answer: answer.status == 404)
    assert (gone.headers["Content-Type"], gone.body) == ("text/plain; charset=utf-8", b"404 page not found\n")
    assert api.post(gadgets, gadget("b")).status == 404
