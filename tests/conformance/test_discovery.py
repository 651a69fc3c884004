"""What a client learns before its first request: versions, groups, resources, schemas, health."""

import re

from operator_runtime.testing.waiting import eventually
from tests.conformance.api import Api, Json
from tests.conformance.sample_objects import GROUP


def resources(api: Api, group_version: str) -> dict[str, Json]:
    found = api.get(group_version).expect(200)
    assert found["kind"] == "APIResourceList"
    return {resource["name"]: resource for resource in found["resources"]}


def test_the_api_server_has_a_service_and_a_role_for_servers_that_ask_it(api: Api) -> None:
    service = api.get("/api/v1/namespaces/default/services/kubernetes").expect(200)
    assert service["metadata"]["labels"] == {"component": "apiserver", "provider": "kubernetes"}
    [port] = service["spec"]["ports"]
    assert (port["name"], port["port"], service["spec"]["type"]) == ("https", 443, "ClusterIP")
    assert service["spec"]["clusterIP"].endswith(".0.1")
    assert "selector" not in service["spec"]
    role = api.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/system:auth-delegator").expect(200)
    assert [(rule["apiGroups"], rule["resources"], rule["verbs"]) for rule in role["rules"]] == [
        (["authentication.k8s.io"], ["tokenreviews"], ["create"]),
        (["authorization.k8s.io"], ["subjectaccessreviews"], ["create"]),
    ]


def test_the_server_says_its_version(api: Api) -> None:
    found = api.get("/version").expect(200)
    assert re.fullmatch(r"v\d+\.\d+\.\d+\S*", found["gitVersion"])
    assert found["gitVersion"].startswith(f"v{found['major']}.{found['minor'].rstrip('+')}.")


def test_the_groups_and_their_preferred_versions_are_listed(api: Api, widgets: None) -> None:
    assert api.get("/api").expect(200)["versions"] == ["v1"]
    found = eventually(
        lambda: {group["name"]: group for group in api.get("/apis").expect(200)["groups"]},
        lambda groups: GROUP in groups,
    )
    assert {"apps", "coordination.k8s.io", "events.k8s.io", "apiextensions.k8s.io"} < found.keys()
    for group in ("apps", GROUP):
        version = {"groupVersion": f"{group}/v1", "version": "v1"}
        assert found[group]["preferredVersion"] == version
        assert version in found[group]["versions"]
        assert api.get(f"/apis/{group}").expect(200)["preferredVersion"] == version
    assert api.get("/apis/absent.example.com/v1").status == 404


def test_a_group_lists_its_resources_with_verbs_and_short_names(api: Api) -> None:
    apps = resources(api, "/apis/apps/v1")
    deployments = apps["deployments"]
    assert (deployments["kind"], deployments["singularName"], deployments["namespaced"]) == (
        "Deployment",
        "deployment",
        True,
    )
    assert deployments["shortNames"] == ["deploy"]
    assert set(deployments["verbs"]) >= {"create", "delete", "get", "list", "patch", "update", "watch"}
    assert set(apps["deployments/status"]["verbs"]) == {"get", "patch", "update"}
    assert (apps["deployments/scale"]["kind"], apps["deployments/scale"]["group"]) == ("Scale", "autoscaling")
    core = resources(api, "/api/v1")
    assert core["pods"]["shortNames"] == ["po"]
    assert core["namespaces"]["namespaced"] is False


def test_a_crd_is_discovered_like_a_built_in_resource(api: Api, widgets: None) -> None:
    found = eventually(lambda: api.get(f"/apis/{GROUP}/v1"), lambda answer: answer.status == 200).json["resources"]
    by_name = {resource["name"]: resource for resource in found}
    assert {"widgets", "widgets/status", "widgets/scale"} <= by_name.keys()
    assert (by_name["widgets"]["kind"], by_name["widgets"]["shortNames"]) == ("Widget", ["wid"])
    assert set(by_name["widgets"]["verbs"]) >= {"create", "delete", "get", "list", "patch", "update", "watch"}
