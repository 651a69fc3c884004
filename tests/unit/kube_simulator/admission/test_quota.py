"""What a namespace may hold, and what is said when it is full."""

from typing import Any

import pytest

from kube_simulator.admission import quota
from kube_simulator.values import Json
from tests.unit.kube_simulator.admission.admission_support import (
    World,
    container,
    creation,
    named,
    pod,
    request,
)


def limit(world: World, hard: Json, name: str = "few") -> Json:
    return world.put("resourcequotas", name, spec={"hard": hard})


def put_pod(world: World, name: str, phase: str = "Pending", **resources: Any) -> None:
    found = pod(name, container(resources=resources))
    world.store.put("pods", {**found, "status": {"phase": phase}})


def new_pod(*containers: Json, **spec: Any) -> Any:
    return request("CREATE", "pods", pod("new", *containers, **spec))


def status(world: World, found: Json) -> Json:
    return quota.status_of(found, world.store, world.registry)


def test_a_pod_too_many_is_refused_with_what_there_is_and_what_there_may_be(world: World) -> None:
    limit(world, {"pods": "1"})
    world.admit(new_pod())
    put_pod(world, "a")
    refused = world.refusal(new_pod())
    assert (refused.code, refused.reason) == (403, "Forbidden")
    assert refused.message == (
        'pods "new" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1'
    )
    assert refused.details == {"name": "new", "kind": "pods"}


def test_pods_that_have_ended_make_room_unless_all_are_counted(world: World) -> None:
    limit(world, {"pods": "1"})
    put_pod(world, "a", "Succeeded")
    put_pod(world, "b", "Failed")
    world.admit(new_pod())
    limit(world, {"count/pods": "2"}, "all")
    assert "exceeded quota: all, requested: count/pods=1, used: count/pods=2" in (world.refusal(new_pod())).message


@pytest.mark.parametrize(
    ("key", "collection"),
    [
        ("configmaps", "configmaps"),
        ("count/configmaps", "configmaps"),
        ("services", "services"),
        ("count/deployments.apps", "deployments.apps"),
        ("count/widgets.example.com", "widgets.example.com"),
    ],
)
def test_objects_are_counted_by_their_kind(world: World, key: str, collection: str) -> None:
    limit(world, {key: "1"})
    template: Json = {"metadata": {}, "spec": {"containers": []}}
    asked = creation(collection, spec={"template": template})
    world.admit(asked)
    world.put(collection, "there")
    assert f"requested: {key}=1, used: {key}=1, limited: {key}=1" in (world.refusal(asked)).message
    world.admit(creation("secrets"))  # another kind costs nothing


def test_all_that_is_too_much_is_named_in_the_order_of_names(world: World) -> None:
    limit(world, {"pods": "0", "count/pods": "0", "configmaps": "0", "requests.cpu": "0"})
    asked = new_pod(container(resources={"requests": {"cpu": "1"}}))
    said = (world.refusal(asked)).message.partition("exceeded quota: ")[2]
    assert said == (
        "few, requested: count/pods=1,pods=1,requests.cpu=1, used: count/pods=0,pods=0,requests.cpu=0, "
        "limited: count/pods=0,pods=0,requests.cpu=0"
    )


def test_the_first_quota_that_is_exceeded_is_named(world: World) -> None:
    limit(world, {"configmaps": "0"}, "b")
    limit(world, {"configmaps": "0"}, "a")
    assert "exceeded quota: a," in (world.refusal(creation("configmaps"))).message


def test_only_creations_in_the_namespace_of_a_quota_are_held_against_it(world: World) -> None:
    limit(world, {"configmaps": "0"})
    found = named("configmaps", "a")
    world.admit(request("UPDATE", "configmaps", {**found, "data": {}}, found))
    world.admit(request("DELETE", "configmaps", old=found))
    world.admit(creation("namespaces", "another"))


def test_what_was_asked_and_not_written_leaves_no_trace(world: World) -> None:
    limit(world, {"configmaps": "1"})
    asked = request("CREATE", "configmaps", named("configmaps", "a"))
    for _ in range(2):
        world.admit(asked)
    world.put("configmaps", "b")
    assert "exceeded quota" in (world.refusal(asked)).message


def test_cpu_and_memory_are_measured_by_requests_and_limits(world: World) -> None:
    limit(world, {"requests.cpu": "1", "limits.memory": "1Gi", "cpu": "2", "memory": "1Gi"}, "comp")
    put_pod(world, "a", requests={"cpu": "900m", "memory": "100Mi"}, limits={"memory": "200Mi"})
    big = container(resources={"requests": {"cpu": "200m", "memory": "1000Mi"}, "limits": {"memory": "2000Mi"}})
    said = (world.refusal(new_pod(big))).message.partition("exceeded quota: ")[2]
    assert said == (
        "comp, requested: limits.memory=2000Mi,memory=1000Mi,requests.cpu=200m, "
        "used: limits.memory=200Mi,memory=100Mi,requests.cpu=900m, "
        "limited: limits.memory=1Gi,memory=1Gi,requests.cpu=1"
    )
    small = container(resources={"requests": {"cpu": "100m", "memory": "1Mi"}, "limits": {"memory": "1Mi"}})
    world.admit(new_pod(small))


def test_what_is_measured_must_be_said(world: World) -> None:
    limit(world, {"requests.cpu": "9", "limits.memory": "9Gi"}, "comp")
    silent = container("a"), container("b", resources={"limits": {"cpu": "1"}})
    refused = world.refusal(new_pod(*silent))
    assert refused.message.endswith("failed quota: comp: must specify limits.memory for: a,b; requests.cpu for: a")


def test_starting_counts_where_it_takes_more_than_running(world: World) -> None:
    found = limit(world, {"cpu": "1"})

    def wants(cpu: str, **fields: Any) -> Json:
        return container(resources={"requests": {"cpu": cpu}}, **fields)

    side = wants("100m", restartPolicy="Always")
    running = pod("a", wants("300m"), wants("200m"), initContainers=[wants("400m")])
    world.store.put("pods", running)
    assert status(world, found)["used"] == {"cpu": "500m"}
    world.store.put("pods", pod("a", wants("300m"), initContainers=[side, wants("700m")]))
    assert status(world, found)["used"] == {"cpu": "800m"}
    world.store.put("pods", pod("a", wants("300m"), initContainers=[wants("350m"), side], overhead={"cpu": "50m"}))
    assert status(world, found)["used"] == {"cpu": "450m"}


def test_the_status_says_what_is_allowed_and_what_is_used(world: World) -> None:
    hard = {"pods": "5", "count/widgets.example.com": "1", "count/nothings.example.com": "1", "memory": "1Gi"}
    found = limit(world, hard)
    put_pod(world, "a", requests={"memory": "512Mi"})
    put_pod(world, "b", limits={"memory": "512Mi"})
    used = {"count/widgets.example.com": "0", "memory": "1Gi", "pods": "2"}
    assert status(world, found) == {"hard": hard, "used": used}
    assert status(world, limit(world, {})) == {}


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ({"hard": {"services.nodeports": "1"}}, "a ResourceQuota on services.nodeports"),
        ({"hard": {"requests.storage": "1Gi"}}, "a ResourceQuota on requests.storage"),
        ({"hard": {"pods": "1"}, "scopes": ["Terminating"]}, "the scopes of a ResourceQuota"),
        ({"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": []}}, "the scopes of a ResourceQuota"),
    ],
)
def test_a_quota_that_cannot_be_kept_is_not_taken(world: World, spec: Json, what: str) -> None:
    refused = world.refusal(creation("resourcequotas", spec=spec))
    assert (refused.code, refused.message) == (501, f"the simulator does not do this: {what}")
    old = named("resourcequotas", "q", spec={"hard": {}})
    assert (world.refusal(request("UPDATE", "resourcequotas", {**old, "spec": spec}, old))).code == 501


def test_resources_of_a_pod_as_a_whole_are_not_measured(world: World) -> None:
    limit(world, {"cpu": "1"})
    asked = new_pod(container(resources={"requests": {"cpu": "1"}}), resources={"requests": {"cpu": "1"}})
    assert (world.refusal(asked)).code == 501


@pytest.mark.parametrize(
    ("wanted", "has", "conditions", "used"),
    [
        ("64Mi", None, [], "64Mi"),
        ("96Mi", "64Mi", [], "96Mi"),
        ("64Mi", "96Mi", [], "96Mi"),
        ("96Mi", "64Mi", [{"type": "PodResizePending", "reason": "Deferred"}], "96Mi"),
        ("96Mi", "64Mi", [{"type": "PodResizePending", "reason": "Infeasible"}], "64Mi"),
    ],
)
def test_while_a_resize_is_not_done_the_larger_amount_counts(
    world: World, wanted: str, has: str | None, conditions: list[Json], used: str
) -> None:
    resources = {"requests": {"memory": wanted}, "limits": {"memory": wanted}}
    found = pod("a", container("web", resources=resources))
    had: Json = {} if has is None else {"requests": {"memory": has}, "limits": {"memory": has}}
    statuses = [{"name": "web", "resources": had, **({"allocatedResources": had["requests"]} if had else {})}]
    world.store.put("pods", {**found, "status": {"containerStatuses": statuses, "conditions": conditions}})
    hard = {"limits.memory": "1Gi", "requests.memory": "1Gi"}
    assert status(world, limit(world, hard))["used"] == {"limits.memory": used, "requests.memory": used}
