"""How a Deployment rolls: within which bounds, how long new pods must have been ready, pauses and deadlines."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from operator_runtime.testing.waiting import eventually
from tests.cluster import Cluster
from tests.conformance.api import Api, Json
from tests.conformance.sample_objects import deployment, path
from tests.conformance.workload_pods import await_status as await_status_of

ONE_BY_ONE = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
AN_HOUR = timedelta(hours=1)


def body(*, replicas: int = 2, **spec: Any) -> Json:
    made = deployment("web", replicas=replicas)
    return {**made, "spec": {"strategy": ONE_BY_ONE, **made["spec"], **spec}}


def create(api: Api, namespace: str, *, replicas: int = 2, **spec: Any) -> Json:
    return api.post(path("deployments", namespace), body(replicas=replicas, **spec)).expect(201)


def pods(api: Api, namespace: str, image: str = "1") -> list[Json]:
    """The pods of this image that are not being deleted."""
    found = api.get(path("pods", namespace), labelSelector="app=web").expect(200)["items"]
    desired = f"registry.example.com/web:{image}"
    alive = [each for each in found if "deletionTimestamp" not in each["metadata"]]
    return [each for each in alive if each["spec"]["containers"][0]["image"] == desired]


def await_pods(api: Api, namespace: str, **counts: int) -> dict[str, list[Json]]:
    """The pods of each image (`v1`), once there are as many."""
    return eventually(
        lambda: {image: pods(api, namespace, image[1:]) for image in counts},
        lambda found: {image: len(each) for image, each in found.items()} == counts,
    )


def await_status(api: Api, namespace: str, **desired: int) -> Json:
    return await_status_of(api, namespace, "deployments", **desired)


def condition(status: Json, kind: str) -> tuple[str, str]:
    """Status and reason; empty before anything was said."""
    found = [each for each in status.get("conditions", []) if each["type"] == kind]
    return (found[0]["status"], found[0]["reason"]) if found else ("", "")


def change(api: Api, namespace: str, **spec: Any) -> None:
    api.merge(path("deployments", namespace, "web"), {"spec": spec}).expect(200)


def change_image(api: Api, namespace: str, image: str) -> None:
    container = {"name": "web", "image": f"registry.example.com/web:{image}"}
    change(api, namespace, template={"spec": {"containers": [container]}})


def mark_ready(api: Api, namespace: str, found: Iterable[Json], *, since: timedelta = timedelta(0)) -> None:
    """Do what a kubelet does when the containers are up, and were so some time ago."""
    at = (datetime.now(UTC) - since).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": at}
    for pod in found:
        status = {"status": {"phase": "Running", "conditions": [ready]}}
        api.strategic(path("pods", namespace, pod["metadata"]["name"], "status"), status).expect(200)


def test_without_a_surge_an_old_pod_goes_before_a_new_one_comes(api: Api, namespace: str) -> None:
    create(api, namespace, replicas=3)
    mark_ready(api, namespace, await_pods(api, namespace, v1=3)["v1"])
    await_status(api, namespace, availableReplicas=3)
    change_image(api, namespace, "2")
    for old, new in ((2, 1), (1, 2), (0, 3)):
        found = await_pods(api, namespace, v1=old, v2=new)
        status = await_status(
            api, namespace, replicas=3, updatedReplicas=new, availableReplicas=2, unavailableReplicas=1
        )
        assert condition(status, "Available") == ("True", "MinimumReplicasAvailable")
        mark_ready(api, namespace, found["v2"])
    status = await_status(api, namespace, availableReplicas=3, updatedReplicas=3, unavailableReplicas=0)
    assert condition(status, "Progressing") == ("True", "NewReplicaSetAvailable")


def test_a_new_pod_counts_once_it_has_been_ready_for_long_enough(api: Api, namespace: str) -> None:
    create(api, namespace, minReadySeconds=600, progressDeadlineSeconds=1200)
    mark_ready(api, namespace, await_pods(api, namespace, v1=2)["v1"], since=AN_HOUR)
    await_status(api, namespace, readyReplicas=2, availableReplicas=2)
    change_image(api, namespace, "2")
    first = await_pods(api, namespace, v1=1, v2=1)["v2"]
    mark_ready(api, namespace, first)
    status = await_status(
        api, namespace, readyReplicas=2, availableReplicas=1, unavailableReplicas=1, updatedReplicas=1
    )
    assert condition(status, "Progressing") == ("True", "ReplicaSetUpdated")
    assert len(pods(api, namespace)) == 1
    mark_ready(api, namespace, first, since=AN_HOUR)
    second = await_pods(api, namespace, v1=0, v2=2)["v2"]
    mark_ready(api, namespace, second, since=AN_HOUR)
    await_status(api, namespace, availableReplicas=2, updatedReplicas=2)


def test_a_rollout_that_gets_no_further_says_so(api: Api, cluster: Cluster, namespace: str) -> None:
    create(api, namespace, progressDeadlineSeconds=1)
    found = eventually(
        lambda: condition(api.get(path("deployments", namespace, "web")).expect(200).get("status", {}), "Progressing"),
        lambda found: found[0] == "False",
    )
    assert found == ("False", "ProgressDeadlineExceeded")
    result = cluster.kubectl("-n", namespace, "rollout", "status", "deployment/web", check=False)
    assert (result.returncode, result.stderr) == (1, 'error: deployment "web" exceeded its progress deadline\n')
    mark_ready(api, namespace, await_pods(api, namespace, v1=2)["v1"])
    status = await_status(api, namespace, availableReplicas=2)
    assert condition(status, "Progressing") == ("True", "NewReplicaSetAvailable")
