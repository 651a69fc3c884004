"""What takes part in admission: configurations of validating webhooks, validating policies and their bindings.

Differs from Kubernetes: CEL expressions are not compiled when they are written; one that cannot be fails where it is
asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from kube_simulator.errors import Cause
from kube_simulator.kinds.base import Strategy, plain, with_subresource
from kube_simulator.kinds.causes import duplicate, invalid, not_supported, one_of, required, unlike
from kube_simulator.kinds.names import dns_subdomain
from kube_simulator.values import Json

_REVIEW_VERSIONS = ("v1", "v1beta1")
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_FAILURE_POLICIES = ("Fail", "Ignore")
_MATCH_POLICIES = ("Equivalent", "Exact")
_ACTIONS = ("Audit", "Deny", "Warn")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_RULE_LISTS = ("operations", "apiGroups", "apiVersions", "resources")
_TIMEOUT_S = 10
_LONGEST_TIMEOUT_S = 30
_LABELS_OF_A_WEBHOOK = 3


def _default_webhooks(new: Json) -> Json:
    webhooks = [_webhook(each) for each in new.get("webhooks") or []]
    rest = {key: value for key, value in new.items() if key != "webhooks"}
    return {**rest, "webhooks": webhooks} if webhooks else rest


def _webhook(webhook: Json) -> Json:
    given = {key: value for key, value in webhook.items() if value is not None}
    new = {
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "timeoutSeconds": _TIMEOUT_S,
        "clientConfig": {},
        **given,
    }
    if "service" in new["clientConfig"]:
        new["clientConfig"] = {**new["clientConfig"], "service": {"port": 443, **new["clientConfig"]["service"]}}
    if "rules" in new:
        new["rules"] = _rules(new["rules"])
    return new


def _rules(rules: Sequence[Json]) -> list[Json]:
    return [{"scope": "*", **each} for each in rules]


def _webhooks_problems(new: Json, _old: Json | None) -> list[Cause]:
    found: list[Cause] = []
    names: set[str] = set()
    for index, webhook in enumerate(new.get("webhooks") or []):
        at, name = f"webhooks[{index}]", webhook.get("name") or ""
        found += _webhook_problems(webhook, at)
        found += [duplicate(f"{at}.name", name)] if name and name in names else []
        names.add(name)
    return found


def _webhook_problems(webhook: Json, at: str) -> list[Cause]:
    name = webhook.get("name") or ""
    found = [] if name else [required(f"{at}.name")]
    if name and not (wrong := unlike(f"{at}.name", name, dns_subdomain(name))):
        if len(name.split(".")) < _LABELS_OF_A_WEBHOOK:
            why = "should be a domain with at least three segments separated by dots"
            found.append(invalid(f"{at}.name", name, why))
    elif name:
        found += wrong
    for number, rule in enumerate(webhook.get("rules") or []):
        found += _rule_problems(rule, f"{at}.rules[{number}]")
    found += one_of(f"{at}.failurePolicy", webhook["failurePolicy"], _FAILURE_POLICIES)
    found += one_of(f"{at}.matchPolicy", webhook["matchPolicy"], _MATCH_POLICIES)
    if webhook.get("sideEffects") is None:
        found.append(required(f"{at}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}"))
    found += one_of(f"{at}.sideEffects", webhook.get("sideEffects"), _SIDE_EFFECTS)
    seconds = webhook["timeoutSeconds"]
    if not 1 <= seconds <= _LONGEST_TIMEOUT_S:
        why = f"the timeout value must be between 1 and {_LONGEST_TIMEOUT_S} seconds"
        found.append(invalid(f"{at}.timeoutSeconds", seconds, why))
    found += _client_problems(webhook["clientConfig"], f"{at}.clientConfig")
    versions, listed = webhook.get("admissionReviewVersions") or [], ", ".join(_REVIEW_VERSIONS)
    if not versions:
        found.append(required(f"{at}.admissionReviewVersions", f"must specify one of {listed}"))
    elif not set(versions) & set(_REVIEW_VERSIONS):
        why = f"must include at least one of {listed}"
        found.append(invalid(f"{at}.admissionReviewVersions", versions, why))
    return found


def _client_problems(client: Json, at: str) -> list[Cause]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        return [required(at, "exactly one of url or service is required")]
    if service is not None:
        return [required(f"{at}.service.{key}") for key in ("name", "namespace") if not service.get(key)]
    scheme, _, rest = str(url).partition("://")
    if scheme == "https" and rest:
        return []
    why = "'https' is the only allowed URL scheme; desired format: https://host[/path]"
    return [invalid(f"{at}.url", scheme, why)]


def _rule_problems(rule: Json, at: str) -> list[Cause]:
    return [required(f"{at}.{key}") for key in _RULE_LISTS if not rule.get(key)]


def _default_policy(new: Json) -> Json:
    spec = {"failurePolicy": "Fail", **(new.get("spec") or {})}
    if spec.get("matchConstraints") is not None:
        spec["matchConstraints"] = _match_resources(spec["matchConstraints"])
    return {**new, "spec": spec, "status": new.get("status") or {}}


def _default_binding(new: Json) -> Json:
    spec = {key: value for key, value in (new.get("spec") or {}).items() if value is not None}
    if "matchResources" in spec:
        spec["matchResources"] = _match_resources(spec["matchResources"])
    return {**new, "spec": spec}


def _match_resources(given: Json) -> Json:
    given = {key: value for key, value in given.items() if value is not None}
    found = {"namespaceSelector": {}, "objectSelector": {}, "matchPolicy": "Equivalent", **given}
    return found | {key: _rules(found[key]) for key in ("resourceRules", "excludeResourceRules") if key in found}


def _policy_problems(new: Json, _old: Json | None) -> list[Cause]:
    spec, found = new["spec"], []
    constraints = spec.get("matchConstraints")
    if constraints is None:
        found.append(required("spec.matchConstraints"))
    elif not constraints.get("resourceRules"):
        found.append(required("spec.matchConstraints.resourceRules"))
    else:
        for index, rule in enumerate(constraints["resourceRules"]):
            found += _rule_problems(rule, f"spec.matchConstraints.resourceRules[{index}]")
    found += one_of("spec.failurePolicy", spec["failurePolicy"], _FAILURE_POLICIES)
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        why = "validations or auditAnnotations must contain at least one item"
        found += [required(f"spec.{key}", why) for key in ("validations", "auditAnnotations")]
    for index, validation in enumerate(spec.get("validations") or []):
        at = f"spec.validations[{index}]"
        if not (validation.get("expression") or "").strip():
            found.append(required(f"{at}.expression", "expression is not specified"))
        found += one_of(f"{at}.reason", validation.get("reason"), _REASONS)
    return found


def _binding_problems(new: Json, _old: Json | None) -> list[Cause]:
    spec = new["spec"]
    found = [] if spec.get("policyName") else [required("spec.policyName")]
    actions = spec.get("validationActions") or []
    if not actions:
        found.append(required("spec.validationActions", "at least one validation action is required"))
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            found.append(not_supported(f"spec.validationActions[{index}]", action, _ACTIONS))
        elif action in actions[:index]:
            found.append(duplicate(f"spec.validationActions[{index}]", action))
    if {"Deny", "Warn"} <= set(actions):
        why = "must not contain both Deny and Warn (repeating the same validation failure information in the API"
        why += " response and headers serves no purpose)"
        found.append(invalid("spec.validationActions", actions, why))
    return found


WEBHOOKS: Strategy = plain(_default_webhooks, _webhooks_problems, generation=True)
POLICY: Strategy = with_subresource(
    _default_policy,
    _policy_problems,
    first_status={},
    kept_on_status=("labels", "annotations", "finalizers", "ownerReferences"),
)
POLICY_BINDING: Strategy = plain(_default_binding, _binding_problems, generation=True)
