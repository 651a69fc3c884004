"""What may be changed of a pod's resources, and where: by its subresource ``resize``, and nothing else there."""

from typing import Any

import pytest

from tests.conformance.api import OTHER_UID, Answer, Api, Json, causes
from tests.conformance.sample_objects import path

SMALL = {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}}
BURSTABLE = "Pod QOS Class may not change as a result of resizing"
ONLY = "only cpu and memory resources are mutable"


def create(api: Api, namespace: str, resources: Json | None = None, **container: Any) -> Json:
    web = {"name": "web", "image": "registry.example.com/web:1", **container}
    web |= {} if resources is None else {"resources": resources}
    body = {"metadata": {"name": "a", "labels": {"app": "web"}}, "spec": {"containers": [web]}}
    return api.post(path("pods", namespace), body).expect(201)


def resize(api: Api, namespace: str, resources: Json, **container: Any) -> Answer:
    web = {"name": "web", "resources": resources, **container}
    return api.strategic(path("pods", namespace, "a", "resize"), {"spec": {"containers": [web]}})


def resources_of(pod: Json) -> Json:
    found = pod["spec"]["containers"][0]["resources"]
    assert isinstance(found, dict)
    return found


def running(api: Api, namespace: str, resources: Json | None) -> None:
    """Do what a kubelet does when the container runs; one of a node that cannot resize says nothing of resources."""
    state = {"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    container = {"name": "web", "image": "a", "imageID": "", "ready": True, "restartCount": 0, **state}
    container |= {} if resources is None else {"resources": resources}
    status = {"status": {"phase": "Running", "containerStatuses": [container]}}
    api.merge(path("pods", namespace, "a", "status"), status).expect(200)


def test_a_pod_is_stored_with_amounts_as_kubernetes_writes_them(api: Api, namespace: str) -> None:
    given = {"requests": {"cpu": "0.5", "memory": "1024Mi"}, "limits": {"cpu": 2, "memory": "1.5Gi"}}
    stored = create(api, namespace, given)
    assert resources_of(stored) == {
        "requests": {"cpu": "500m", "memory": "1Gi"},
        "limits": {"cpu": "2", "memory": "1536Mi"},
    }
    assert stored["status"]["qosClass"] == "Burstable"
    assert "resizePolicy" not in stored["spec"]["containers"][0]


def test_cpu_and_memory_grow_and_shrink(api: Api, namespace: str) -> None:
    create(api, namespace, SMALL)
    grown = resize(api, namespace, {"requests": {"memory": "128Mi"}, "limits": {"memory": "256Mi"}}).expect(200)
    assert resources_of(grown) == {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}}
    assert grown["metadata"]["generation"] == 2
    shrunk = resize(api, namespace, {"requests": {"memory": "32Mi"}, "limits": {"memory": "32Mi"}}).expect(200)
    assert resources_of(shrunk)["limits"] == {"memory": "32Mi"}
    same = resize(api, namespace, {"requests": {"memory": "32Mi"}, "limits": {"memory": "32768Ki"}}).expect(200)
    assert same["metadata"] == shrunk["metadata"]
    more = resize(api, namespace, {"limits": {"cpu": "1"}}).expect(200)
    assert resources_of(more) == {
        "requests": {"cpu": "50m", "memory": "32Mi"},
        "limits": {"cpu": "1", "memory": "32Mi"},
    }
    owner = more["metadata"]["managedFields"][-1]
    assert (owner["operation"], owner["subresource"]) == ("Update", "resize")


def test_a_resize_is_of_the_pod_that_it_names(api: Api, namespace: str) -> None:
    one, change = path("pods", namespace, "a", "resize"), {"name": "web", "resources": {"requests": {"cpu": "60m"}}}
    api.strategic(one, {"spec": {"containers": [change]}}).expect(404, "NotFound")
    create(api, namespace, SMALL)
    other = api.strategic(one, {"metadata": {"uid": OTHER_UID}, "spec": {"containers": [change]}})
    assert ("FieldValueInvalid", "metadata.uid") in causes(other.expect(422, "Invalid"))
    old = api.strategic(one, {"metadata": {"resourceVersion": "1"}, "spec": {"containers": [change]}})
    old.expect(409, "Conflict")


def test_what_else_it_says_of_the_pod_is_dropped(api: Api, namespace: str) -> None:
    before = create(api, namespace, SMALL)
    body = {
        "metadata": {"labels": {"app": "other"}, "annotations": {"a": "b"}},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "web", "image": "other:1", "resources": {"limits": {"memory": "96Mi"}}}],
        },
        "status": {"phase": "Running"},
    }
    after = api.strategic(path("pods", namespace, "a", "resize"), body).expect(200)
    assert resources_of(after)["limits"] == {"memory": "96Mi"}
    assert after["metadata"]["labels"] == {"app": "web"}
    assert "annotations" not in after["metadata"]
    assert after["status"] == before["status"]
    assert {**after["spec"], "containers": []} == {**before["spec"], "containers": []}
    assert after["spec"]["containers"][0]["image"] == "registry.example.com/web:1"


@pytest.mark.parametrize(
    ("resources", "reason", "field", "why"),
    [
        ({"requests": {"memory": "65Mi"}}, "Invalid", "spec.containers[0].resources.requests",
         "must be less than or equal to memory limit of 64Mi"),
        ({"requests": {"cpu": "-1"}}, "Invalid", "spec.containers[0].resources.requests[cpu]",
         "must be greater than or equal to 0"),
        ({"limits": {"memory": None}}, "Forbidden", "spec.containers[0].resources.limits",
         "resource limits cannot be removed"),
        ({"requests": {"cpu": None}}, "Forbidden", "spec.containers[0].resources.requests",
         "resource requests cannot be removed"),
        ({"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}, "Invalid", "spec", BURSTABLE),
        ({"requests": {"ephemeral-storage": "1Gi"}}, "Forbidden", "spec", ONLY),
    ],
)  # fmt: skip
def test_resources_that_cannot_be_are_422(
    api: Api, namespace: str, resources: Json, reason: str, field: str, why: str
) -> None:
    create(api, namespace, SMALL)
    refused = resize(api, namespace, resources).expect(422, "Invalid")
    assert causes(refused) == {(f"FieldValue{reason}", field)}
    assert why in refused["message"]


def test_a_pod_without_resources_stays_so(api: Api, namespace: str) -> None:
    assert create(api, namespace)["status"]["qosClass"] == "BestEffort"
    refused = resize(api, namespace, {"requests": {"memory": "64Mi"}}).expect(422, "Invalid")
    assert refused["message"] == f'Pod "a" is invalid: spec: Invalid value: "BestEffort": {BURSTABLE}'


def test_containers_stay_the_same_containers(api: Api, namespace: str) -> None:
    create(api, namespace, SMALL)
    added = {"name": "other", "image": "a:1", "resources": {}}
    refused = api.strategic(path("pods", namespace, "a", "resize"), {"spec": {"containers": [added]}}).expect(422)
    assert causes(refused) == {("FieldValueForbidden", "spec.containers")}
    assert "containers may not be added or removed on resize" in refused["message"]
    renamed = {"spec": {"containers": [{**added, "resources": SMALL}]}}
    refused = api.merge(path("pods", namespace, "a", "resize"), renamed).expect(422)
    assert causes(refused) == {("FieldValueForbidden", "spec.containers[0].name")}
    assert "containers may not be renamed or reordered on resize" in refused["message"]
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    refused = resize(api, namespace, {}, resizePolicy=policy).expect(422)
    assert (causes(refused), ONLY in refused["message"]) == ({("FieldValueForbidden", "spec")}, True)


def test_a_container_that_runs_is_resized_where_its_node_says_what_it_has(api: Api, namespace: str) -> None:
    create(api, namespace, SMALL)
    change: Json = {"limits": {"memory": "96Mi"}}
    running(api, namespace, None)
    refused = resize(api, namespace, change).expect(422, "Invalid")
    assert refused["message"] == 'Pod "a" is invalid: spec: Forbidden: Pod running on node without support for resize'
    running(api, namespace, SMALL)
    resized = resize(api, namespace, change).expect(200)
    # What it has is the node's to say.
    assert resized["status"]["containerStatuses"][0]["resources"] == SMALL


def test_elsewhere_the_resources_of_a_pod_last(api: Api, namespace: str) -> None:
    create(api, namespace, SMALL)
    change = {"spec": {"containers": [{"name": "web", "resources": {"limits": {"memory": "96Mi"}}}]}}
    refused = api.strategic(path("pods", namespace, "a"), change).expect(422, "Invalid")
    assert causes(refused) == {("FieldValueForbidden", "spec")}
    assert refused["message"].startswith(
        'Pod "a" is invalid: spec: Forbidden: pod updates may not change fields other than '
        "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
        "`spec.tolerations` (only additions to existing tolerations),"
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
    )
