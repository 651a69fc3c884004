"""ValidatingAdmissionPolicies: rules in CEL that somebody wrote down, and bindings that say where they are in force.

Differs from Kubernetes: a policy is in force at once (there after about a second); parameters (`paramKind`) and audit
annotations are refused with 501, and the action `Audit` leaves no trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kube_simulator.admission import matching, namespaces
from kube_simulator.admission.expressions import Scope, problems
from kube_simulator.admission.request import AdmissionRequest
from kube_simulator.errors import ApiError, Cause, forbidden, invalid, not_implemented
from kube_simulator.resources import Registry
from kube_simulator.schema.expressions import EvaluationError
from kube_simulator.store.store import Store
from kube_simulator.values import Json

POLICIES = f"validatingadmissionpolicies.{matching.GROUP}"
BINDINGS = f"validatingadmissionpolicybindings.{matching.GROUP}"
_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}


@dataclass(frozen=True, slots=True)
class _Failure:
    """A validation that a write does not pass, or that could not be asked."""

    message: str
    reason: str = "Invalid"


def check(request: AdmissionRequest) -> None:
    """Raises ApiError, 422 or 501, if a policy or a binding that is being written cannot be kept."""
    if request.new is None or not request.whole:
        return
    spec = request.new.get("spec") or {}
    if request.resource_name == BINDINGS and spec.get("paramRef"):
        raise not_implemented("parameters of a ValidatingAdmissionPolicyBinding (spec.paramRef)")
    if request.resource_name == POLICIES:
        for field in ("paramKind", "auditAnnotations"):
            if spec.get(field):
                raise not_implemented(f"a ValidatingAdmissionPolicy with spec.{field}")
        if causes := list(_problems(spec)):
            raise invalid(request.target.resource, request.name, causes)


def admit(store: Store, registry: Registry, request: AdmissionRequest) -> tuple[str, ...]:
    """Warnings. Raises ApiError, 422 unless the policy gives another reason, for the first policy that is broken."""
    bindings = store.list(BINDINGS)
    if not bindings or matching.is_exempt(request):
        return ()
    warnings: list[str] = []
    for binding in bindings:
        policy = store.get(POLICIES, "", binding["spec"]["policyName"])
        if policy is None:
            continue
        failures = _failures(policy, binding, store, registry, request)
        actions = binding["spec"]["validationActions"]
        name = f"ValidatingAdmissionPolicy '{policy['metadata']['name']}' with binding '{binding['metadata']['name']}'"
        if failures and "Deny" in actions:
            raise _refusal(request, f"{name} denied request: {failures[0].message}", failures[0].reason)
        if "Warn" in actions:
            warnings += [f"Validation failed for {name}: {failure.message}" for failure in failures]
    return tuple(warnings)


def scope_of(request: AdmissionRequest, version: str, store: Store) -> Scope:
    """What expressions may name, in policies and in the match conditions of webhooks."""
    return Scope(
        {
            "object": request.seen(request.new, version),
            "oldObject": request.seen(request.old, version),
            "request": request.json("", version),
            "namespaceObject": store.get(namespaces.COLLECTION, "", request.namespace) if request.namespace else None,
        }
    )


def _failures(
    policy: Json, binding: Json, store: Store, registry: Registry, request: AdmissionRequest
) -> list[_Failure]:
    spec = policy["spec"]
    version = _matched(spec["matchConstraints"], request, store, registry)
    limits = binding["spec"].get("matchResources")
    if version is None or (limits and _matched(limits, request, store, registry) is None):
        return []
    scope = scope_of(request, version, store).with_variables(spec.get("variables") or ())
    strict = (spec.get("failurePolicy") or "Fail") == "Fail"
    try:
        if not scope.all_true(spec.get("matchConditions") or ()):
            return []
    except EvaluationError as error:
        return [_Failure(str(error))] if strict else []
    found = []
    for validation in spec.get("validations") or ():
        try:
            if not scope.is_true(validation["expression"]):
                found.append(_Failure(_message(validation, scope), validation.get("reason") or "Invalid"))
        except EvaluationError as error:
            if strict:
                found.append(_Failure(str(error)))
    return found


def _matched(config: Json, request: AdmissionRequest, store: Store, registry: Registry) -> str | None:
    """The version in which the object is to be seen; None if this is about something else."""
    match_policy = config.get("matchPolicy")
    excluded = config.get("excludeResourceRules") or ()
    if not matching.selects(config, request, store):
        return None
    if matching.matched_version(excluded, request, registry, match_policy) is not None:
        return None
    rules = config.get("resourceRules") or ()
    if not rules:  # a binding that narrows nothing
        return request.target.resource.version
    return matching.matched_version(rules, request, registry, match_policy)


def _message(validation: Json, scope: Scope) -> str:
    if expression := validation.get("messageExpression"):
        try:
            said = scope.evaluate(expression)
        except EvaluationError:
            said = ""
        if isinstance(said, str) and said.strip() and "\n" not in said:
            return said.strip()
    message = validation.get("message")
    return str(message) if message else f"failed expression: {validation['expression'].strip()}"


def _refusal(request: AdmissionRequest, message: str, reason: str) -> ApiError:
    refused = forbidden(request.target.resource, request.shown_name, message)
    refused.code, refused.reason = _CODES[reason], reason
    refused.details["causes"] = [{"message": message}]
    return refused


def _problems(spec: Json) -> Iterator[Cause]:
    for index, variable in enumerate(spec.get("variables") or ()):
        yield from problems(variable["expression"], f"spec.variables[{index}].expression")
    for index, condition in enumerate(spec.get("matchConditions") or ()):
        yield from problems(condition["expression"], f"spec.matchConditions[{index}].expression")
    for index, validation in enumerate(spec.get("validations") or ()):
        at = f"spec.validations[{index}]"
        yield from problems(validation["expression"], f"{at}.expression")
        if expression := validation.get("messageExpression"):
            yield from problems(expression, f"{at}.messageExpression")
