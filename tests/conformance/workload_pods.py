"""The pods of a workload ``web``, and what a kubelet would do for them: no cluster of these tests has one."""

from typing import Any

from operator_runtime.testing.waiting import eventually
from tests.conformance.api import Answer, Api, Json
from tests.conformance.sample_objects import path, stateful_set

REVISION = "controller-revision-hash"


def create(api: Api, namespace: str, *, replicas: int = 2, **spec: Any) -> Json:
    """A StatefulSet ``web``."""
    return api.post(path("statefulsets", namespace), stateful_set("web", replicas=replicas, **spec)).expect(201)


def pods(api: Api, namespace: str) -> dict[str, Json]:
    """The pods that are not being deleted, by name."""
    found = api.get(path("pods", namespace), labelSelector="app=web").expect(200)["items"]
    return {each["metadata"]["name"]: each for each in found if "deletionTimestamp" not in each["metadata"]}


def await_pods(api: Api, namespace: str, *names: str) -> dict[str, Json]:
    """The pods, once these and no others are there."""
    return eventually(lambda: pods(api, namespace), lambda found: found.keys() == set(names))


def await_status(api: Api, namespace: str, plural: str = "statefulsets", /, **desired: object) -> Json:
    """The workload's status, once it says this; a count that it leaves out is 0."""
    found: Json = eventually(
        lambda: api.get(path(plural, namespace, "web")).expect(200).get("status", {}),
        lambda found: {key: found.get(key, 0) for key in desired} == desired,
    )
    return found


def serving(api: Api, namespace: str, **spec: Any) -> dict[str, Json]:
    """The pods of a new StatefulSet of two, which have got ready since."""
    create(api, namespace, **spec)
    found = await_pods(api, namespace, "web-0", "web-1")
    for name in found:
        mark(api, namespace, name).expect(200)
    await_status(api, namespace, readyReplicas=2)
    return found


def change_image(api: Api, namespace: str, image: str) -> str:
    """Change the template; the name of its revision."""
    template = {"spec": {"containers": [{"name": "web", "image": f"registry.example.com/web:{image}"}]}}
    one = path("statefulsets", namespace, "web")
    changed = api.strategic(one, {"spec": {"template": template}}).expect(200)
    generation = changed["metadata"]["generation"]
    return str(await_status(api, namespace, observedGeneration=generation)["updateRevision"])


def revision_of(pod: Json) -> str:
    """The name of the revision that a pod was made from."""
    return str(pod["metadata"]["labels"][REVISION])


def uids(found: dict[str, Json]) -> dict[str, str]:
    """The pods' uids, by name."""
    return {name: each["metadata"]["uid"] for name, each in found.items()}


def mark(api: Api, namespace: str, name: str, phase: str = "Running", *, ready: bool | None = None) -> Answer:
    """Do what a kubelet does when the containers are up, or have ended; without a word, a pod that runs is ready."""
    is_ready = phase == "Running" if ready is None else ready
    conditions = [{"type": "Ready", "status": "True" if is_ready else "False"}]
    status = {"status": {"phase": phase, "conditions": conditions}}
    return api.strategic(path("pods", namespace, name, "status"), status)


def await_new(api: Api, namespace: str, name: str, old: dict[str, Json]) -> Json:
    """The pod that has taken the place of an older one."""
    taken = old[name]["metadata"]["uid"]
    found = eventually(lambda: pods(api, namespace), lambda found: uids(found).get(name, taken) != taken)
    return found[name]
