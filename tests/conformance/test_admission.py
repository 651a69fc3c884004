"""What is asked before a write is let in: service accounts of pods, and policies that somebody wrote down."""

from collections.abc import Iterator

import pytest

from operator_runtime.testing.waiting import eventually
from tests.conformance.api import Api, Json
from tests.conformance.sample_objects import config_map, deployment, path

_POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
_BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
_RULE = {"apiGroups": [""], "apiVersions": ["*"], "operations": ["DELETE"], "resources": ["configmaps"]}
_CONTAINERS = [{"name": "web", "image": "registry.example.com/web:1"}]


@pytest.fixture
def policy(api: Api, namespace: str) -> Iterator[str]:
    """The name of a policy by which no ConfigMap called `kept` is deleted, and the refusal tells of the request."""
    said = "'name ' + (has(request.name) ? request.name : '-') + ', object ' + oldObject.metadata.name"
    validation = {"expression": "oldObject.metadata.name != 'kept'", "messageExpression": said}
    spec = {"matchConstraints": {"resourceRules": [_RULE]}, "validations": [validation]}
    api.post(_POLICIES, {"metadata": {"name": namespace}, "spec": spec}).expect(201)
    yield namespace
    api.delete(f"{_BINDINGS}/{namespace}")
    api.delete(f"{_POLICIES}/{namespace}").expect(200)


def bind(api: Api, policy: str, **fields: object) -> Json:
    """Put a policy in force in the namespace of its name."""
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": policy}}}
    spec = {"policyName": policy, "validationActions": ["Deny"], "matchResources": here, **fields}
    return api.post(_BINDINGS, {"metadata": {"name": policy}, "spec": spec}).expect(201)


def test_a_binding_gets_the_defaults_of_what_it_limits(api: Api, policy: str) -> None:
    found = bind(api, policy, matchResources={"resourceRules": [_RULE]})
    assert found["spec"]["matchResources"] == {
        "resourceRules": [{**_RULE, "scope": "*"}],
        "namespaceSelector": {},
        "objectSelector": {},
        "matchPolicy": "Equivalent",
    }


def test_a_policy_says_which_generation_was_looked_at(api: Api, policy: str) -> None:
    one = f"{_POLICIES}/{policy}"

    def status() -> Json:
        return api.get(one).expect(200)["status"] or {}

    eventually(status, lambda found: found == {"observedGeneration": 1, "typeChecking": {}})
    api.merge(one, {"spec": {"failurePolicy": "Ignore"}}).expect(200)
    eventually(status, lambda found: found == {"observedGeneration": 2, "typeChecking": {}})


def test_deleting_a_collection_asks_for_each_object_and_names_none(api: Api, namespace: str, policy: str) -> None:
    collection, one = path("configmaps", namespace), path("configmaps", namespace, "kept")
    api.post(collection, config_map("kept")).expect(201)
    bind(api, policy)
    eventually(lambda: api.delete(one, dryRun="All").status, lambda status: status == 422)  # in force after a while
    words = f"ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request:"
    refused = api.delete(one).expect(422, "Invalid")
    assert refused["message"] == f'configmaps "kept" is forbidden: {words} name kept, object kept'
    refused = api.delete(collection, fieldSelector="metadata.name=kept").expect(422, "Invalid")
    assert refused["message"] == f'configmaps "Unknown" is forbidden: {words} name -, object kept'
    api.get(one).expect(200)


@pytest.mark.parametrize(("metadata", "shown"), [({"name": "web"}, "web"), ({"generateName": "web-"}, "web-")])
def test_a_pod_needs_a_service_account_that_exists(api: Api, namespace: str, metadata: Json, shown: str) -> None:
    pod = {"metadata": metadata, "spec": {"serviceAccountName": "absent", "containers": _CONTAINERS}}
    refused = api.post(path("pods", namespace), pod).expect(403, "Forbidden")
    why = f'error looking up service account {namespace}/absent: serviceaccount "absent" not found'
    assert refused["message"] == f'pods "{shown}" is forbidden: {why}'


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
