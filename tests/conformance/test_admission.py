"""What is asked before a write is let in: service accounts of pods."""

from operator_runtime.testing.waiting import eventually
from tests.conformance.api import Api, Json
from tests.conformance.sample_objects import deployment, path

_CONTAINERS = [{"name": "web", "image": "registry.example.com/web:1"}]


def test_a_pod_needs_a_service_account_that_exists(api: Api, namespace: str) -> None:
    pod = {"metadata": {"name": "web"}, "spec": {"serviceAccountName": "absent", "containers": _CONTAINERS}}
    refused = api.post(path("pods", namespace), pod).expect(403, "Forbidden")
    why = f'error looking up service account {namespace}/absent: serviceaccount "absent" not found'
    assert refused["message"] == f'pods "web" is forbidden: {why}'


def test_a_deployment_tells_that_its_pods_are_refused(api: Api, namespace: str) -> None:
    body = deployment("web")
    body["spec"]["template"]["spec"]["serviceAccountName"] = "absent"
    api.post(path("deployments", namespace), body).expect(201)

    def failure() -> Json | None:
        status = api.get(path("deployments", namespace, "web")).expect(200).get("status", {})
        return next((each for each in status.get("conditions", []) if each["type"] == "ReplicaFailure"), None)

    found = eventually(failure, lambda condition: condition is not None)
    assert found is not None
    assert (found["status"], found["reason"]) == ("True", "FailedCreate")
    assert 'serviceaccount "absent" not found' in found["message"]
    assert found["lastUpdateTime"] >= found["lastTransitionTime"]
