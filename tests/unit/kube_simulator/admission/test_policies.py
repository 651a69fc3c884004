"""Policies that somebody wrote in CEL, and the bindings that bring them into force."""

from typing import Any

import pytest

from kube_simulator.admission.policies import BINDINGS, POLICIES
from kube_simulator.values import Json
from tests.unit.kube_simulator.admission.admission_support import (
    NAMESPACE,
    World,
    creation,
    named,
    request,
)

ALWAYS: Json = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
NO: Json = {"expression": "false", "message": "no"}
DENIED = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "


def enforce(
    world: World,
    *validations: Json,
    actions: tuple[str, ...] = ("Deny",),
    limits: Json | None = None,
    constraints: Json | None = None,
    **spec: Any,
) -> None:
    matched = {"resourceRules": [ALWAYS], **(constraints or {})}
    world.put(POLICIES, "p", spec={"matchConstraints": matched, "validations": list(validations), **spec})
    limited = {} if limits is None else {"matchResources": limits}
    world.put(BINDINGS, "b", spec={"policyName": "p", "validationActions": list(actions), **limited})


async def test_what_breaks_a_policy_is_422_with_its_message(world: World) -> None:
    enforce(world, {"expression": "object.metadata.name != 'bad'", "message": "a bad name"})
    assert await world.admit(creation("configmaps", "good")) == ()
    refused = await world.refusal(creation("configmaps", "bad"))
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert refused.message == f'configmaps "bad" is forbidden: {DENIED}a bad name'
    assert refused.details == {
        "name": "bad",
        "kind": "configmaps",
        "causes": [{"message": f"{DENIED}a bad name"}],
    }


@pytest.mark.parametrize(("reason", "code"), [("Forbidden", 403), ("RequestEntityTooLarge", 413), ("Invalid", 422)])
async def test_a_validation_may_give_its_reason(world: World, reason: str, code: int) -> None:
    enforce(world, {**NO, "reason": reason})
    refused = await world.refusal(creation("configmaps"))
    assert (refused.code, refused.reason) == (code, reason)


@pytest.mark.parametrize(
    ("validation", "said"),
    [
        ({"expression": "false"}, "failed expression: false"),
        ({"expression": "false &&\n  true"}, "failed expression: false &&\n  true"),
        ({**NO, "messageExpression": "'got ' + object.metadata.name"}, "got new"),
        ({**NO, "messageExpression": "string(object.data.nope)"}, "no"),
        ({"expression": "false", "messageExpression": "'  '"}, "failed expression: false"),
        ({"expression": "object.data.nope == 'x'"}, "expression 'object.data.nope == 'x'' resulted in error: "
         "no such key: data"),
    ],
)  # fmt: skip
async def test_the_message_is_computed_or_written_or_the_expression(world: World, validation: Json, said: str) -> None:
    enforce(world, validation)
    assert (await world.refusal(creation("configmaps"))).message.partition("denied request: ")[2] == said


async def test_the_first_validation_that_fails_is_told(world: World) -> None:
    enforce(world, {"expression": "true"}, {**NO, "message": "one"}, {**NO, "message": "two"})
    assert (await world.refusal(creation("configmaps"))).message.endswith(": one")


async def test_expressions_see_the_objects_the_request_and_the_namespace(world: World) -> None:
    world.put("namespaces", NAMESPACE, labels={"tier": "front"})
    sees = (
        "object == null && oldObject.data.k == 'v' && request.operation == 'DELETE' && request.name == 'c'"
        f" && request.namespace == '{NAMESPACE}' && request.userInfo.username == 'root'"
        " && request.kind.kind == 'ConfigMap' && request.resource.resource == 'configmaps' && !request.dryRun"
        " && namespaceObject.metadata.labels.tier == 'front'"
    )
    enforce(world, {"expression": f"!({sees})", "message": "all of it"})
    refused = await world.refusal(request("DELETE", "configmaps", old=named("configmaps", "c", data={"k": "v"})))
    assert refused.message.endswith(": all of it")


async def test_a_binding_warns_or_keeps_silent_if_it_does_not_deny(world: World) -> None:
    enforce(world, NO, actions=("Warn",))
    warning = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': no"
    assert await world.admit(creation("configmaps")) == (warning,)
    enforce(world, NO, actions=("Audit",))
    assert await world.admit(creation("configmaps")) == ()


async def test_a_policy_without_a_binding_and_a_binding_without_a_policy_are_of_no_effect(world: World) -> None:
    enforce(world, NO)
    world.store.delete(BINDINGS, "", "b")
    assert await world.admit(creation("configmaps")) == ()
    world.put(BINDINGS, "b", spec={"policyName": "another", "validationActions": ["Deny"]})
    assert await world.admit(creation("configmaps")) == ()


async def test_a_binding_narrows_where_a_policy_is_in_force(world: World) -> None:
    elsewhere = {"namespaceSelector": {"matchLabels": {"tier": "front"}}}
    enforce(world, NO, limits=elsewhere)
    assert await world.admit(creation("configmaps")) == ()
    world.put("namespaces", NAMESPACE, labels={"tier": "front"})
    await world.refusal(creation("configmaps"))
    enforce(world, NO, limits={"resourceRules": [{**ALWAYS, "operations": ["DELETE"]}]})
    assert await world.admit(creation("configmaps")) == ()


async def test_a_policy_is_about_what_its_rules_name_and_do_not_exclude(world: World) -> None:
    enforce(world, NO)
    assert await world.admit(creation("secrets")) == ()
    enforce(world, NO, constraints={"excludeResourceRules": [{**ALWAYS, "resourceNames": ["new"]}]})
    assert await world.admit(creation("configmaps", "new")) == ()
    await world.refusal(creation("configmaps", "other"))
    enforce(world, NO, constraints={"objectSelector": {"matchLabels": {"a": "b"}}})
    assert await world.admit(creation("configmaps")) == ()
    await world.refusal(creation("configmaps", labels={"a": "b"}))


async def test_conditions_decide_whether_a_policy_is_asked_at_all(world: World) -> None:
    enforce(world, NO, matchConditions=[{"name": "c", "expression": "object.metadata.name == 'x'"}])
    assert await world.admit(creation("configmaps", "y")) == ()
    await world.refusal(creation("configmaps", "x"))


async def test_the_failure_policy_says_what_an_error_is(world: World) -> None:
    failing = {"name": "c", "expression": "object.nope == 1"}
    enforce(world, NO, matchConditions=[failing])
    said = "expression 'object.nope == 1' resulted in error: no such key: nope"
    assert (await world.refusal(creation("configmaps"))).message.endswith(f"denied request: {said}")
    enforce(world, NO, matchConditions=[failing], failurePolicy="Ignore")
    assert await world.admit(creation("configmaps")) == ()
    enforce(world, failing, failurePolicy="Ignore")
    assert await world.admit(creation("configmaps")) == ()


async def test_variables_are_there_for_validations(world: World) -> None:
    enforce(world, {**NO, "expression": "variables.x != 3"}, variables=[{"name": "x", "expression": "1 + 2"}])
    await world.refusal(creation("configmaps"))


async def test_a_scale_is_seen_as_a_scale(world: World) -> None:
    rule = {**ALWAYS, "apiGroups": ["apps"], "resources": ["deployments/scale"]}
    small = {"expression": "object.spec.replicas <= 5", "message": "too many"}
    enforce(world, small, constraints={"resourceRules": [rule]})
    old = named("deployments.apps", "d", spec={"replicas": 1, "selector": {"matchLabels": {"a": "b"}}})
    new = {**old, "spec": {**old["spec"], "replicas": 6}}
    asked = request("UPDATE", "deployments.apps", new, old, subresource="scale")
    assert (await world.refusal(asked)).message.endswith("too many")


async def test_nobody_is_locked_out_of_the_policies_themselves(world: World) -> None:
    everything = {key: ["*"] for key in ("apiGroups", "apiVersions", "operations", "resources")}
    enforce(world, NO, constraints={"resourceRules": [everything]})
    found = world.store.get(POLICIES, "", "p")
    assert await world.admit(request("DELETE", POLICIES, old=found)) == ()
    await world.refusal(creation("secrets"))


def policy(**spec: Any) -> Json:
    return {"matchConstraints": {"resourceRules": [ALWAYS]}, "validations": [NO], **spec}


async def test_an_expression_that_cannot_be_compiled_is_told_when_it_is_written(world: World) -> None:
    spec = policy(
        validations=[{"expression": "foo", "messageExpression": "bar"}],
        variables=[{"name": "v", "expression": "baz"}],
        matchConditions=[{"name": "c", "expression": "qux"}],
    )
    refused = await world.refusal(creation(POLICIES, spec=spec))
    assert (refused.code, [cause["field"] for cause in refused.details["causes"]]) == (
        422,
        [
            "spec.variables[0].expression",
            "spec.matchConditions[0].expression",
            "spec.validations[0].expression",
            "spec.validations[0].messageExpression",
        ],
    )
    assert await world.admit(creation(POLICIES, spec=policy())) == ()


@pytest.mark.parametrize(
    ("collection", "spec"),
    [
        (POLICIES, policy(paramKind={"apiVersion": "v1", "kind": "ConfigMap"})),
        (POLICIES, policy(auditAnnotations=[{"key": "k", "valueExpression": "'v'"}])),
        (BINDINGS, {"policyName": "p", "paramRef": {"name": "x"}}),
    ],
)
async def test_parameters_and_audit_annotations_are_501(world: World, collection: str, spec: Json) -> None:
    assert (await world.refusal(creation(collection, spec=spec))).code == 501
