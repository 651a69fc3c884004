"""Admission as a whole: its order, and that it does not wait without a reason."""

from dataclasses import replace

import pytest

from kube_simulator.access.rbac import ROLES
from kube_simulator.admission.policies import BINDINGS, POLICIES
from tests.unit.kube_simulator.admission.admission_support import (
    JANE,
    NAMESPACE,
    World,
    creation,
    named,
    pod,
    request,
)


def refuse_configmaps_and_pods(world: World, *actions: str) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps", "pods"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false", "message": "no"}]}
    world.put(POLICIES, "p", spec=spec)
    world.put(BINDINGS, "b", spec={"policyName": "p", "validationActions": list(actions)})


async def test_nothing_waits_unless_a_webhook_is_asked(world: World) -> None:
    world.put("resourcequotas", "few", spec={"hard": {"configmaps": "1"}})
    asked = creation("configmaps")
    decision = world.admission.admit("CREATE", asked.target, asked.new, None, asked.caller, dry_run=False)
    with pytest.raises(StopIteration) as done:
        decision.send(None)
    assert done.value.value == ()


async def test_namespaces_come_before_policies_and_policies_before_quotas(world: World) -> None:
    world.put("resourcequotas", "few", spec={"hard": {"configmaps": "0"}})
    asked = creation("configmaps")
    assert "exceeded quota" in (await world.refusal(asked)).message
    refuse_configmaps_and_pods(world, "Deny")
    assert "denied request: no" in (await world.refusal(asked)).message
    world.store.delete("namespaces", "", NAMESPACE)
    assert (await world.refusal(asked)).code == 404


async def test_nobody_grants_permissions_that_they_do_not_have(world: World) -> None:
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
    asked = creation(ROLES, "r", caller=JANE, rules=rules)
    refused = await world.refusal(asked)
    assert (refused.code, "attempting to grant RBAC permissions not currently held" in refused.message) == (403, True)
    assert await world.admit(replace(asked, caller=creation("configmaps").caller)) == ()


async def test_warnings_of_all_parts_come_together(world: World) -> None:
    world.put("namespaces", NAMESPACE, labels={"pod-security.kubernetes.io/warn": "baseline"})
    refuse_configmaps_and_pods(world, "Warn")
    said = await world.admit(request("CREATE", "pods", pod(hostPID=True)))
    assert [each.split()[0] for each in said] == ["would", "Validation"]


async def test_warnings_before_a_refusal_are_in_its_headers(world: World) -> None:
    refuse_configmaps_and_pods(world, "Warn")
    world.put("resourcequotas", "few", spec={"hard": {"configmaps": "0"}})
    refused = await world.refusal(creation("configmaps"))
    expected = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': no"
    assert refused.headers == {"Warning": f'299 - "{expected}"'}


async def test_what_nobody_objects_to_is_let_in(world: World) -> None:
    found = named("configmaps", "c")
    assert await world.admit(request("UPDATE", "configmaps", {**found, "data": {"k": "v"}}, found)) == ()
