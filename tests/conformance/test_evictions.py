"""What becomes of an eviction: the pod's deletion, which a PodDisruptionBudget may forbid."""

from tests.conformance.api import OTHER_UID, Answer, Api, Json
from tests.conformance.sample_objects import path
from tests.conformance.workload_pods import await_new, pods, serving

EVICTED = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def evict(api: Api, namespace: str, name: str, options: Json | None = None, **query: str) -> Answer:
    body: Json = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    body |= {} if options is None else {"deleteOptions": options}
    return api.post(path("pods", namespace, name, "eviction"), body, **query)


def web(api: Api, namespace: str) -> dict[str, Json]:
    """Two pods that run and are ready."""
    serving(api, namespace, updateStrategy={"type": "OnDelete"})
    return pods(api, namespace)


def test_an_evicted_pod_is_deleted_and_made_anew(api: Api, namespace: str) -> None:
    before = web(api, namespace)
    assert evict(api, namespace, "web-1").expect(201) == EVICTED
    await_new(api, namespace, "web-1", before)


def test_what_is_not_there_or_is_another_pod_is_not_evicted(api: Api, namespace: str) -> None:
    found = web(api, namespace)["web-0"]["metadata"]
    missing = evict(api, namespace, "absent").expect(404, "NotFound")
    assert (missing["message"], missing["details"]) == ('pods "absent" not found', {"name": "absent", "kind": "pods"})
    for preconditions in ({"uid": OTHER_UID}, {"resourceVersion": "1"}):
        evict(api, namespace, "web-0", {"preconditions": preconditions}).expect(409, "Conflict")
    assert pods(api, namespace)["web-0"]["metadata"]["uid"] == found["uid"]
    evict(api, namespace, "web-0", {"preconditions": {"uid": found["uid"]}}).expect(201)


def test_a_dry_run_deletes_nothing(api: Api, namespace: str) -> None:
    before = web(api, namespace)
    assert evict(api, namespace, "web-0", dryRun="All").expect(201) == EVICTED
    assert evict(api, namespace, "web-0", {"dryRun": ["All"]}).expect(201) == EVICTED
    assert pods(api, namespace)["web-0"] == before["web-0"]
