"""Deployments, ReplicaSets and StatefulSets: defaults and rules.

Differs from Kubernetes: any counts may be written into a status. `volumeClaimTemplates` are answered with 501, as there
are no claims, and what is to become of claims is not looked at.
"""

from __future__ import annotations

import re
from typing import Final

from kube_simulator.errors import ApiError, Cause, not_implemented
from kube_simulator.kinds.compaction import APPS_V1, compact
from kube_simulator.kinds.defaults import Within, defaulted_template, filled
from kube_simulator.kinds.kind_strategy import Strategy, with_subresource
from kube_simulator.kinds.pods import template_problems
from kube_simulator.names import dns_label
from kube_simulator.schema.causes import IMMUTABLE, at_least_zero, forbidden, invalid, not_supported, required, unlike
from kube_simulator.store.selection import from_label_selector
from kube_simulator.values import Json, shared

_ROLLING: Final = "RollingUpdate"
_PERCENT: Final = "[0-9]+%"
_QUARTERS: Final = {"maxUnavailable": "25%", "maxSurge": "25%"}
_COUNTS: Final = ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
_DEPLOYMENT: Final = {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}
_RETAINED: Final = {"whenDeleted": "Retain", "whenScaled": "Retain"}
_STATEFUL_SET: Final = {
    "podManagementPolicy": "OrderedReady",
    "replicas": 1,
    "revisionHistoryLimit": 10,
    "persistentVolumeClaimRetentionPolicy": _RETAINED,
}
_MUTABLE: Final = (
    *("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"),
    *("persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
)


def _default(new: Json) -> Json:
    type = f"{APPS_V1}{new['kind']}"
    given = compact(new.get("spec"), f"{type}Spec")
    spec = {**given, "template": defaulted_template(given["template"])}
    if new["kind"] == "Deployment":
        strategy = filled(spec["strategy"], {"type": _ROLLING})
        if strategy["type"] == _ROLLING:
            strategy = filled({"rollingUpdate": {}, **strategy}, {"rollingUpdate": Within(_QUARTERS)})
        spec = {**_DEPLOYMENT, **spec, "strategy": shared(strategy, given["strategy"])}
    elif new["kind"] == "StatefulSet":
        spec = {**_STATEFUL_SET, **spec, "updateStrategy": _updates(given["updateStrategy"])}
        spec = filled(spec, {"persistentVolumeClaimRetentionPolicy": Within(_RETAINED)})
    else:
        spec = {"replicas": 1, **spec}
    return {**new, "spec": shared(spec, given), "status": compact(new.get("status"), f"{type}Status")}


def _updates(strategy: Json) -> Json:
    """Fill in how pods are updated; a strategy that is named without details has none."""
    if not strategy.get("type"):
        strategy = {"rollingUpdate": {}, **strategy, "type": _ROLLING}
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] != _ROLLING or rolling is None:
        return strategy
    # Of an alpha feature, which is off.
    known = {key: value for key, value in rolling.items() if key != "maxUnavailable"}
    return shared({**strategy, "rollingUpdate": shared({"partition": 0, **known}, rolling)}, strategy)


def _validate(new: Json, old: Json | None) -> list[Cause]:
    """List what is wrong; a spec that has not changed is good."""
    spec, before = new["spec"], None if old is None else old["spec"]
    if spec == before:
        return []
    found: list[Cause] = []
    for key in _COUNTS:
        found += at_least_zero(f"spec.{key}", spec.get(key))
    found += _selection_problems(spec) + template_problems(spec["template"], "spec.template")
    if new["kind"] == "StatefulSet":
        return found + _stateful_set_problems(spec, before)
    if before is not None and spec.get("selector") != before.get("selector"):
        found.append(invalid("spec.selector", spec.get("selector"), IMMUTABLE))
    return found + (_strategy_problems(spec["strategy"]) if "strategy" in spec else [])


def _selection_problems(spec: Json) -> list[Cause]:
    """List what is wrong with the selector: it must match the template."""
    selector, labels = spec.get("selector"), spec["template"]["metadata"].get("labels")
    mismatch = invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    if selector is None:
        return [required("spec.selector"), mismatch]
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        return [invalid("spec.selector", {}, "empty selector is invalid")]
    try:
        return [] if from_label_selector(selector).matches(labels or {}) else [mismatch]
    except ApiError as error:
        return [invalid("spec.selector", selector, error.message)]


def _strategy_problems(strategy: Json) -> list[Cause]:
    rolling, field = strategy.get("rollingUpdate"), "spec.strategy.rollingUpdate"
    if strategy["type"] == "Recreate" and rolling is not None:
        return [forbidden(field, "may not be specified when strategy `type` is 'Recreate'")]
    if strategy["type"] == "Recreate":
        return []
    if strategy["type"] != _ROLLING or rolling is None:
        return [not_supported("spec.strategy", strategy["type"], ("Recreate", _ROLLING))]
    found: list[Cause] = []
    for key in _QUARTERS:  # a number of pods, or a percentage
        found += at_least_zero(f"{field}.{key}", rolling[key])
        if isinstance(rolling[key], str) and not re.fullmatch(_PERCENT, rolling[key]):
            found.append(invalid(f"{field}.{key}", rolling[key], f"must match {_PERCENT}"))
    if rolling["maxUnavailable"] in (0, "0%") and rolling["maxSurge"] in (0, "0%"):
        found.append(invalid(f"{field}.maxUnavailable", rolling["maxUnavailable"], "may not be 0 when `maxSurge` is 0"))
    return found


def _stateful_set_problems(spec: Json, before: Json | None) -> list[Cause]:
    if spec.get("volumeClaimTemplates"):
        raise not_implemented("StatefulSets with volumeClaimTemplates")
    strategy, service = spec["updateStrategy"], spec.get("serviceName")
    found = []
    for field, value, allowed in (
        ("podManagementPolicy", spec["podManagementPolicy"], ("OrderedReady", "Parallel")),
        ("updateStrategy", strategy["type"], ("OnDelete", _ROLLING)),
    ):
        found += [] if value in allowed else [invalid(f"spec.{field}", value, f"must be one of {', '.join(allowed)}")]
    if strategy["type"] == "OnDelete" and (rolling := strategy.get("rollingUpdate")) is not None:
        found.append(invalid("spec.updateStrategy.rollingUpdate", rolling, f"only allowed for '{_ROLLING}'"))
    if before is None and service:
        found += unlike("spec.serviceName", service, dns_label(service))
    if before is not None and any(spec.get(key) != before.get(key) for key in (spec | before).keys() - {*_MUTABLE}):
        why = f"updates to statefulset spec for fields other than {', '.join(_MUTABLE)} are forbidden"
        found.append(forbidden("spec", why))
    return found


DEPLOYMENT: Final[Strategy] = with_subresource(_default, _validate, first_status={}, kept_on_status=("labels",))
REPLICA_SET: Final[Strategy] = with_subresource(_default, _validate, first_status={"replicas": 0})
STATEFUL_SET: Final[Strategy] = with_subresource(_default, _validate, first_status={})
