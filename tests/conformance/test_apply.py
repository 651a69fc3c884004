"""Server-side apply: who owns which field, what conflicts, and the guards that a careful client can send."""

import pytest

from tests.cluster import Cluster
from tests.conformance.api import APPLY_PATCH, OTHER_UID, Answer, Api, Json, causes, statuses_at_once, version
from tests.conformance.sample_objects import config_map, deployment, lease, owner_reference, path, widget


@pytest.fixture
def one(namespace: str) -> str:
    """The path of a ConfigMap that is not there yet."""
    return path("configmaps", namespace, "a")


def guarded(body: Json, **metadata: str) -> Json:
    return {**body, "metadata": {**body["metadata"], **metadata}}


def managers(found: Json) -> dict[tuple[str, str], Json]:
    """The managedFields entries by manager and operation."""
    return {(entry["manager"], entry["operation"]): entry for entry in found["metadata"]["managedFields"]}


def test_apply_creates_with_201_and_changes_with_200(api: Api, one: str) -> None:
    created = api.apply(one, config_map("a", {"k": "1"})).expect(201)
    changed = api.apply(one, config_map("a", {"k": "2"})).expect(200)
    assert changed["data"] == {"k": "2"}
    assert version(changed) > version(created)
    assert changed["metadata"]["uid"] == created["metadata"]["uid"]


def test_apply_wants_a_manager_and_an_identity_that_fits_the_path(api: Api, one: str) -> None:
    api.apply(one, config_map("a")).expect(201)
    unnamed = api.request("PATCH", one, config_map("a"), content_type=APPLY_PATCH).expect(422, "Invalid")
    assert unnamed["details"]["causes"][0]["field"] == "fieldManager"
    api.apply(one, config_map("b")).expect(400, "BadRequest")
    api.apply(one, deployment("a")).expect(400, "BadRequest")
    api.apply(one, {"metadata": {"name": "a"}}).expect(400, "BadRequest")
    api.apply(path("configmaps", "no-such-namespace", "a"), config_map("a")).expect(404, "NotFound")


def test_an_apply_that_changes_nothing_keeps_the_resource_version_and_the_times(api: Api, one: str) -> None:
    created = api.apply(one, config_map("a", {"k": "1"})).expect(201)
    assert api.apply(one, config_map("a", {"k": "1"})).expect(200) == created
    assert api.apply(one, config_map("a", {"k": "1"}), force=True).expect(200) == created


def test_equal_values_and_added_fields_do_not_conflict(api: Api, namespace: str) -> None:
    """A plain apply seizes a stranger's object; see the guard by resourceVersion."""
    web = path("deployments", namespace, "web")
    body = deployment("web", replicas=0)
    api.post(path("deployments", namespace), body, fieldManager="stranger").expect(201)
    owner = api.post(path("configmaps", namespace), config_map("owner")).expect(201)
    body["metadata"]["ownerReferences"] = [owner_reference(owner, controller=True)]
    body["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "registry.example.com/side:1"})
    seized = api.apply(web, body).expect(200)
    assert [reference["name"] for reference in seized["metadata"]["ownerReferences"]] == ["owner"]
    assert [container["name"] for container in seized["spec"]["template"]["spec"]["containers"]] == ["web", "side"]


def test_a_second_controller_is_422_even_with_force(api: Api, namespace: str) -> None:
    owners = [api.post(path("configmaps", namespace), config_map(name)).expect(201) for name in ("one", "two")]
    first, second = (config_map("a", ownerReferences=[owner_reference(owner, controller=True)]) for owner in owners)
    one = path("configmaps", namespace, "a")
    api.post(path("configmaps", namespace), first).expect(201)
    for force in (False, True):
        refused = api.apply(one, second, force=force).expect(422, "Invalid")
        assert {field for _, field in causes(refused)} == {"metadata.ownerReferences"}


def test_resource_version_1_means_create_or_409_also_with_force(
    cluster: Cluster, api: Api, namespace: str, widgets: None
) -> None:
    for resource, body in (
        ("configmaps", config_map("a", {"k": "1"})),
        ("deployments", deployment("a", replicas=0)),
        ("leases", lease("a", {"holderIdentity": "me"})),
        ("widgets", widget("a", {"size": 1})),
    ):
        one = path(resource, namespace, "a")
        first = guarded(body, resourceVersion="1")
        created = api.apply(one, first).expect(201)
        assert set(managers(created)) == {("tester", "Apply")}, resource
        for force in (False, True):
            for manager in ("tester", "other"):
                refused = api.apply(one, first, manager, force=force).expect(409, "Conflict")
                assert "causes" not in refused["details"], resource
                assert "the object has been modified" in refused["message"]
        assert api.get(one).json["metadata"]["uid"] == created["metadata"]["uid"]
        assert set(managers(api.get(one).json)) >= {("tester", "Apply")}

    def create(client: Api, _: int) -> Answer:
        body = guarded(config_map("raced"), resourceVersion="1")
        return client.apply(path("configmaps", namespace, "raced"), body)

    assert statuses_at_once(cluster, 8, create) == [201] + [409] * 7


def test_a_uid_never_resurrects_and_never_touches_another(api: Api, one: str) -> None:
    api.apply(one, guarded(config_map("a"), uid=OTHER_UID), force=True).expect(409, "Conflict")
    api.get(one).expect(404, "NotFound")
    created = api.apply(one, config_map("a", {"k": "1"})).expect(201)
    refused = api.apply(one, guarded(config_map("a", {"k": "2"}), uid=OTHER_UID), force=True).expect(422, "Invalid")
    assert {field for _, field in causes(refused)} == {"metadata.uid"}
    right = guarded(config_map("a", {"k": "2"}), uid=created["metadata"]["uid"])
    assert api.apply(one, right, force=True).expect(200)["data"] == {"k": "2"}


def test_force_keeps_foreign_annotations_and_containers_and_restores_what_was_removed(api: Api, namespace: str) -> None:
    web = path("deployments", namespace, "web")
    body = deployment("web", replicas=0, labels={"mine": "1"})
    api.apply(web, body).expect(201)
    restart = {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "2001-01-01T00:00:00Z"}}}
    sidecar = {"spec": {"containers": [{"name": "injected", "image": "registry.example.com/injected:1"}]}}
    foreign = {"metadata": {"labels": {"mine": None}}, "spec": {"template": {**restart, **sidecar}}}
    api.strategic(web, foreign, fieldManager="other").expect(200)
    mended = api.apply(web, body, force=True).expect(200)
    assert mended["metadata"]["labels"] == {"mine": "1"}
    template = mended["spec"]["template"]
    assert "kubectl.kubernetes.io/restartedAt" in template["metadata"]["annotations"]
    assert {container["name"] for container in template["spec"]["containers"]} == {"web", "injected"}


def test_apply_answers_500_to_a_field_that_the_schema_has_not_or_of_another_type(api: Api, one: str) -> None:
    """The client is at fault, and is told so by the message alone: no retry will help."""
    assert "field not declared in schema" in api.apply(one, config_map("a") | {"dat": {}}).expect(500)["message"]
    assert api.apply(one, config_map("a") | {"data": "text"}).status == 500
    api.get(one).expect(404, "NotFound")
