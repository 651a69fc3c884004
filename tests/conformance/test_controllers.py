"""What becomes of a Deployment: defaults, ReplicaSet, Pods, scale, status; the parts that controllers play."""

import re

from operator_runtime.testing.waiting import eventually
from tests.conformance.api import Api, Json, causes
from tests.conformance.sample_objects import deployment, path


def create(api: Api, namespace: str, *, replicas: int = 2) -> Json:
    return api.post(path("deployments", namespace), deployment("web", replicas=replicas)).expect(201)


def items(api: Api, resource: str, namespace: str) -> list[Json]:
    """The objects of the Deployment that are not being deleted."""
    found = api.get(path(resource, namespace), labelSelector="app=web").expect(200)["items"]
    return [item for item in found if "deletionTimestamp" not in item["metadata"]]


def await_items(api: Api, resource: str, namespace: str, count: int) -> list[Json]:
    return eventually(lambda: items(api, resource, namespace), lambda found: len(found) == count)


def await_status(api: Api, namespace: str, **desired: int) -> Json:
    return eventually(
        lambda: api.get(path("deployments", namespace, "web")).expect(200),
        lambda found: {key: found.get("status", {}).get(key, 0) for key in desired} == desired,
    )


def controller_of(found: Json) -> tuple[str, str, str, bool]:
    [reference] = found["metadata"]["ownerReferences"]
    assert reference["controller"] is True
    return reference["apiVersion"], reference["kind"], reference["uid"], reference["blockOwnerDeletion"]


def test_a_deployment_is_stored_with_its_defaults(api: Api, namespace: str) -> None:
    """A client that compares what it wants with what is there has to know these."""
    body = deployment("web")
    del body["spec"]["replicas"]
    [container] = body["spec"]["template"]["spec"]["containers"]
    container["ports"] = [{"name": "http", "containerPort": 80}]
    spec = api.post(path("deployments", namespace), body).expect(201)["spec"]
    assert {key: spec[key] for key in spec if key not in ("selector", "template")} == {
        "replicas": 1,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    }
    [stored] = spec["template"]["spec"].pop("containers")
    assert spec["template"]["spec"] == {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }
    assert stored == {
        "name": "web",
        "image": "registry.example.com/web:1",
        "imagePullPolicy": "IfNotPresent",
        "ports": [{"name": "http", "containerPort": 80, "protocol": "TCP"}],
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }


def test_a_deployment_that_cannot_be_is_422_with_its_fields(api: Api, namespace: str) -> None:
    negative = deployment("web", replicas=-1)
    refused = api.post(path("deployments", namespace), negative).expect(422, "Invalid")
    assert ("FieldValueInvalid", "spec.replicas") in causes(refused)

    stray = deployment("web")
    stray["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    refused = api.post(path("deployments", namespace), stray).expect(422, "Invalid")
    assert ("FieldValueInvalid", "spec.template.metadata.labels") in causes(refused)

    create(api, namespace, replicas=0)
    for change in ({"app": "other"}, {"more": "1"}):
        labels = {"app": "web", **change}
        spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}
        refused = api.merge(path("deployments", namespace, "web"), {"spec": spec}).expect(422, "Invalid")
        assert ("FieldValueInvalid", "spec.selector") in causes(refused)


def test_a_deployment_becomes_a_replica_set_and_pods_that_name_their_owners(api: Api, namespace: str) -> None:
    web = create(api, namespace)
    pods = await_items(api, "pods", namespace, 2)
    [replica_set] = items(api, "replicasets", namespace)
    assert controller_of(replica_set) == ("apps/v1", "Deployment", web["metadata"]["uid"], True)
    for pod in pods:
        assert controller_of(pod) == ("apps/v1", "ReplicaSet", replica_set["metadata"]["uid"], True)

    hash_ = replica_set["metadata"]["labels"]["pod-template-hash"]
    assert replica_set["metadata"]["name"] == f"web-{hash_}"
    labels = {"app": "web", "pod-template-hash": hash_}
    assert replica_set["metadata"]["labels"] == labels
    assert replica_set["spec"]["selector"]["matchLabels"] == labels
    assert replica_set["spec"]["template"]["metadata"]["labels"] == labels
    for pod in pods:
        assert re.fullmatch(f"web-{hash_}-[a-z0-9]{{5}}", pod["metadata"]["name"])
        assert pod["metadata"]["generateName"] == f"web-{hash_}-"
        assert pod["metadata"]["labels"] == labels
        assert pod["spec"]["containers"][0]["image"] == "registry.example.com/web:1"
    selected = api.get(path("pods", namespace), labelSelector=f"pod-template-hash={hash_}").expect(200)
    assert len(selected["items"]) == 2

    stored = await_status(api, namespace, observedGeneration=1, replicas=2, updatedReplicas=2)
    assert "pod-template-hash" not in stored["spec"]["selector"]["matchLabels"]
    for found in (stored, replica_set):
        assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"


def test_a_pod_whose_labels_no_longer_match_is_released_and_replaced(api: Api, namespace: str) -> None:
    create(api, namespace, replicas=1)
    [pod] = await_items(api, "pods", namespace, 1)
    one = path("pods", namespace, pod["metadata"]["name"])
    api.merge(one, {"metadata": {"labels": {"app": "other"}}}).expect(200)
    eventually(lambda: api.get(one).expect(200), lambda found: "ownerReferences" not in found["metadata"])
    [replacement] = await_items(api, "pods", namespace, 1)
    assert replacement["metadata"]["uid"] != pod["metadata"]["uid"]


def test_deletion_in_the_foreground_ends_with_the_deployment(api: Api, namespace: str) -> None:
    web = path("deployments", namespace, "web")
    create(api, namespace)
    await_items(api, "pods", namespace, 2)
    answer = api.delete(web, {"propagationPolicy": "Foreground"}).expect(200)
    assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]
    eventually(lambda: api.get(web).status, lambda status: status == 404)
    for resource in ("replicasets", "pods"):
        assert api.get(path(resource, namespace), labelSelector="app=web").expect(200)["items"] == []


def test_an_orphaned_replica_set_is_adopted_by_the_next_deployment(api: Api, namespace: str) -> None:
    web = path("deployments", namespace, "web")
    create(api, namespace, replicas=1)
    [pod] = await_items(api, "pods", namespace, 1)
    [before] = items(api, "replicasets", namespace)
    api.delete(web, {"propagationPolicy": "Orphan"}).expect(200)
    eventually(lambda: api.get(web).status, lambda status: status == 404)
    [orphan] = items(api, "replicasets", namespace)
    assert (orphan["metadata"]["uid"], "ownerReferences" in orphan["metadata"]) == (before["metadata"]["uid"], False)

    second = create(api, namespace, replicas=1)
    one = path("replicasets", namespace, orphan["metadata"]["name"])
    adopted = eventually(lambda: api.get(one).expect(200), lambda found: "ownerReferences" in found["metadata"])
    assert controller_of(adopted)[2] == second["metadata"]["uid"]
    assert [item["metadata"]["uid"] for item in items(api, "pods", namespace)] == [pod["metadata"]["uid"]]
