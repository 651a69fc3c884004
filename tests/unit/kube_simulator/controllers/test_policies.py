"""What ValidatingAdmissionPolicies are told of themselves."""

from kube_simulator.values import Json
from tests.unit.kube_simulator.controllers.world import World

POLICIES = "validatingadmissionpolicies.admissionregistration.k8s.io"
RULE = {"apiGroups": ["a.example.com"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
SPEC: Json = {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": "true"}]}


async def test_the_status_follows_the_generation_and_has_an_owner_of_its_own(world: World) -> None:
    await world.create(POLICIES, {"metadata": {"name": "p"}, "spec": SPEC})
    await world.settle()
    found = world.get(POLICIES, "p")
    assert found["status"] == {"observedGeneration": 1, "typeChecking": {}}
    owner = found["metadata"]["managedFields"][0]
    assert (owner["manager"], owner["operation"]) == ("validatingadmissionpolicy-status", "Apply")

    await world.merge(POLICIES, "p", {"spec": {"failurePolicy": "Ignore"}})
    await world.settle()
    assert world.get(POLICIES, "p")["status"]["observedGeneration"] == 2
