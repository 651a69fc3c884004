"""How the server refuses: the Status that clients branch on, and the few refusals that are not one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from operator_runtime.testing.waiting import eventually
from tests.cluster import Cluster
from tests.conformance.api import Answer, Api, Json, causes
from tests.conformance.sample_objects import GROUP, config_map, deployment, path, widget

USER = "conformance-user"


@pytest.fixture
def user(cluster: Cluster) -> Iterator[Api]:
    """A client of a user who may do nothing in a namespace until a role says so."""
    client = Api(cluster, cluster.user_kubeconfig(USER))
    yield client
    client.close()


def allow(api: Api, namespace: str, group: str, resources: list[str], verbs: list[str], *names: str) -> None:
    """Give the user these verbs in this namespace, of the objects of these names or of all."""
    rules = [{"apiGroups": [group], "resources": resources, "verbs": verbs, "resourceNames": names}]
    role = {"metadata": {"name": "user"}, "rules": rules}
    binding = {
        "metadata": {"name": "user"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "user"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
    }
    api.post(path("roles", namespace), role).expect(201)
    api.post(path("rolebindings", namespace), binding).expect(201)


def test_a_refusal_is_a_status(api: Api, namespace: str) -> None:
    answer = api.get(path("deployments", namespace, "absent"))
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.expect(404, "NotFound") == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'deployments.apps "absent" not found',
        "reason": "NotFound",
        "details": {"name": "absent", "group": "apps", "kind": "deployments"},
        "code": 404,
    }


def test_a_resource_that_is_not_served_is_404_in_plain_text(api: Api, namespace: str, widgets: None) -> None:
    """That is how a client tells a missing CRD from a missing object."""
    for unknown in (
        f"/apis/absent.example.com/v1/namespaces/{namespace}/things",
        f"/apis/{GROUP}/v2/namespaces/{namespace}/widgets",
        f"/apis/{GROUP}/v1/namespaces/{namespace}/things",
        "/nothing/here",
    ):
        answer = api.get(unknown)
        assert (answer.status, answer.body) == (404, b"404 page not found\n"), unknown
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"


def test_a_method_that_a_path_has_not_is_405(api: Api, namespace: str) -> None:
    api.put(path("configmaps", namespace), config_map("a")).expect(405, "MethodNotAllowed")
    api.merge(path("configmaps", namespace), {}).expect(405, "MethodNotAllowed")
    api.post(path("configmaps", namespace, "a"), config_map("a")).expect(405, "MethodNotAllowed")


def test_a_body_or_a_parameter_that_cannot_be_read_is_400(api: Api, namespace: str, widgets: None) -> None:
    for resource in ("configmaps", "widgets"):
        for body in (b"{no json", b"", b'"text"', b"{}\n{}"):
            answer = api.post(path(resource, namespace), body)
            assert answer.status == 400, (resource, body, answer)
            assert answer.json["reason"] == "BadRequest"
    for number in ("limit", "timeoutSeconds"):
        api.get(path("configmaps", namespace), **{number: "x"}).expect(400, "BadRequest")
    wrong = config_map("a") | {"data": {"k": 1}}
    api.post(path("configmaps", namespace), wrong).expect(400, "BadRequest")
    kind = widget("w") | {"kind": "Gadget"}
    assert causes(api.post(path("widgets", namespace), kind).expect(422, "Invalid")) == {("FieldValueInvalid", "kind")}
    group = widget("w") | {"apiVersion": f"{GROUP}/v2"}
    api.post(path("widgets", namespace), group).expect(400, "BadRequest")


def test_an_invalid_object_is_422_with_a_cause_for_each_field(api: Api, namespace: str) -> None:
    body = deployment("Web", replicas=-1, labels={"l": "not a value"})
    refused = api.post(path("deployments", namespace), body).expect(422, "Invalid")
    assert {
        ("FieldValueInvalid", "metadata.name"),
        ("FieldValueInvalid", "metadata.labels"),
        ("FieldValueInvalid", "spec.replicas"),
    } <= causes(refused)
    assert refused["details"]["name"] == "Web"
    assert refused["message"].startswith('Deployment.apps "Web" is invalid: [')
    missing = api.post(path("deployments", namespace), {"metadata": {"name": "web"}}).expect(422, "Invalid")
    assert ("FieldValueRequired", "spec.selector") in causes(missing)


def test_an_owner_reference_must_be_complete(api: Api, namespace: str) -> None:
    references = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": ""}]
    body = config_map("a", ownerReferences=references)
    refused = api.post(path("configmaps", namespace), body).expect(422, "Invalid")
    assert {field for _, field in causes(refused)} == {"metadata.ownerReferences.uid"}


@pytest.mark.parametrize(
    ("method", "verb", "name"),
    [("GET", "get", "a"), ("GET", "list", None), ("POST", "create", None), ("DELETE", "delete", "a")],
)
def test_what_rbac_does_not_allow_is_403_that_names_user_verb_and_resource(
    user: Api, namespace: str, method: str, verb: str, name: str | None
) -> None:
    body = deployment("a") if method == "POST" else None
    refused = user.request(method, path("deployments", namespace, name), body).expect(403, "Forbidden")
    assert refused["details"].get("kind") == "deployments"
    desired = f'User "{USER}" cannot {verb} resource "deployments" in API group "apps" in the namespace "{namespace}"'
    assert desired in refused["message"]


def test_a_watch_of_all_namespaces_is_refused_before_it_begins(user: Api) -> None:
    refused = user.get(path("deployments"), watch="1").expect(403, "Forbidden")
    assert 'cannot watch resource "deployments" in API group "apps" at the cluster scope' in refused["message"]


def test_a_role_in_a_namespace_allows_what_it_says_and_no_more(api: Api, user: Api, namespace: str) -> None:
    allow(api, namespace, "", ["configmaps"], ["get", "list", "watch", "patch"])
    eventually(lambda: user.get(path("configmaps", namespace)).status, lambda status: status == 200)
    refused = user.apply(path("configmaps", namespace, "a"), config_map("a")).expect(403, "Forbidden")
    assert 'cannot create resource "configmaps"' in refused["message"], "an apply that creates needs both"
    api.post(path("configmaps", namespace), config_map("a")).expect(201)
    user.apply(path("configmaps", namespace, "a"), config_map("a", {"k": "1"})).expect(200)
    user.put(path("configmaps", namespace, "a"), config_map("a")).expect(403, "Forbidden")
    user.get(path("configmaps")).expect(403, "Forbidden")


def test_a_role_for_one_name_allows_a_list_that_selects_it_alone(api: Api, user: Api, namespace: str) -> None:
    allow(api, namespace, "", ["configmaps"], ["list"], "a")
    collection = path("configmaps", namespace)
    eventually(lambda: user.get(collection, fieldSelector="metadata.name=a").status, lambda status: status == 200)
    user.get(collection, fieldSelector="metadata.namespace!=default,metadata.name==a").expect(200)
    for selector in ("", "metadata.name=b", "metadata.name!=a"):
        user.get(collection, fieldSelector=selector).expect(403, "Forbidden")


def test_a_subresource_is_allowed_on_its_own(api: Api, user: Api, namespace: str, widgets: None) -> None:
    one = path("widgets", namespace, "w")
    api.post(path("widgets", namespace), widget("w")).expect(201)
    allow(api, namespace, GROUP, ["widgets/status"], ["patch"])
    eventually(lambda: user.merge(f"{one}/status", {"status": {"replicas": 1}}).status, lambda status: status == 200)
    refused = user.merge(one, {"spec": {"size": 2}}).expect(403, "Forbidden")
    assert 'cannot patch resource "widgets"' in refused["message"]


def test_a_wrong_token_is_401_and_none_at_all_is_an_anonymous_user(cluster: Cluster, namespace: str) -> None:
    def answer(token: str | None) -> Answer:
        client = Api(cluster, None, token=token)
        try:
            return client.get(path("configmaps", namespace))
        finally:
            client.close()

    answer("wrong").expect(401, "Unauthorized")
    assert 'User "system:anonymous"' in answer(None).expect(403, "Forbidden")["message"]


def test_a_service_account_s_token_authenticates_as_that_account(cluster: Cluster, namespace: str) -> None:
    directory: Path = cluster.service_account_dir(namespace, "robot")
    client = Api(cluster, None, token=(directory / "token").read_text())
    refused: Json = client.get(path("configmaps", namespace)).expect(403, "Forbidden")
    client.close()
    assert f'User "system:serviceaccount:{namespace}:robot"' in refused["message"]
