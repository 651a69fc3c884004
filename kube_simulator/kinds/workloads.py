"""Deployments, ReplicaSets and StatefulSets, and the pods that they make: defaults and rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kube_simulator.errors import ApiError, Cause, not_implemented
from kube_simulator.kinds.compaction import compact
from kube_simulator.kinds.defaults import Within, defaulted_spec, defaulted_template, filled
from kube_simulator.kinds.kind_strategy import Strategy, with_subresource
from kube_simulator.kinds.metadata import label_problems
from kube_simulator.schema.causes import IMMUTABLE, at_least_zero, forbidden, invalid, required
from kube_simulator.store.selection import from_label_selector
from kube_simulator.values import Json, completed, mapped, shared

_ROLLING: Final = "RollingUpdate"
_QUARTERS: Final = {"maxUnavailable": "25%", "maxSurge": "25%"}
_COUNTS: Final = ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
_DEPLOYMENT: Final = {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}
_RETAINED: Final = {"whenDeleted": "Retain", "whenScaled": "Retain"}
_STATEFUL_SET: Final = {
    "serviceName": "",
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
    given = compact(new.get("spec"))
    spec = {**given, "template": defaulted_template(given.get("template") or {})}
    if new["kind"] == "Deployment":
        sent = given.get("strategy") or {}
        strategy = filled(sent, {"type": _ROLLING})
        if strategy["type"] == _ROLLING:
            strategy = filled({"rollingUpdate": {}, **strategy}, {"rollingUpdate": Within(_QUARTERS)})
        spec = {**_DEPLOYMENT, **spec, "strategy": shared(strategy, sent)}
    elif new["kind"] == "StatefulSet":
        spec = {**_STATEFUL_SET, **spec, "updateStrategy": _updates(given.get("updateStrategy") or {})}
        spec = filled(spec, {"persistentVolumeClaimRetentionPolicy": Within(_RETAINED)})
    else:
        spec = {"replicas": 1, **spec}
    return {**new, "spec": shared(spec, given), "status": compact(new.get("status"))}


def _updates(strategy: Json) -> Json:
    """Fill in how pods are updated; a strategy that is named without details has none."""
    if not strategy.get("type"):
        strategy = {"rollingUpdate": {}, **strategy, "type": _ROLLING}
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] != _ROLLING or rolling is None:
        return strategy
    return shared({**strategy, "rollingUpdate": filled(rolling, {"partition": 0})}, strategy)


def _validate(new: Json, old: Json | None) -> list[Cause]:
    """List what is wrong; a spec that has not changed is good."""
    spec, before = new["spec"], None if old is None else old["spec"]
    if spec == before:
        return []
    if spec.get("volumeClaimTemplates"):
        raise not_implemented("StatefulSets with volumeClaimTemplates")
    found: list[Cause] = []
    for key in _COUNTS:
        found += at_least_zero(f"spec.{key}", spec.get(key))
    template = spec["template"]
    found += label_problems(template["metadata"].get("labels") or {}, "spec.template.labels")
    found += _selection_problems(spec)
    if before is not None and spec.get("selector") != before.get("selector"):
        found.append(invalid("spec.selector", spec.get("selector"), IMMUTABLE))
    lasting = {**spec, **(before or {})}.keys() - {*_MUTABLE} if new["kind"] == "StatefulSet" else set()
    if before is not None and any(spec.get(key) != before.get(key) for key in lasting):
        return [forbidden("spec", f"updates for fields other than {', '.join(_MUTABLE)} are forbidden")]
    return found


def _selection_problems(spec: Json) -> list[Cause]:
    """List what is wrong with the selector: it must match the template."""
    selector, labels = spec.get("selector"), spec["template"]["metadata"].get("labels")
    if selector is None:
        return [required("spec.selector")]
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        return [invalid("spec.selector", {}, "it must not be empty")]
    try:
        matches = from_label_selector(selector).matches(labels or {})
    except ApiError as error:
        return [invalid("spec.selector", selector, error.message)]
    why = "`selector` does not match template `labels`"
    return [] if matches else [invalid("spec.template.metadata.labels", labels, why)]


DEPLOYMENT: Final[Strategy] = with_subresource(_default, _validate, first_status={}, kept_on_status=("labels",))
REPLICA_SET: Final[Strategy] = with_subresource(_default, _validate, first_status={"replicas": 0})
STATEFUL_SET: Final[Strategy] = with_subresource(
    _default, _validate, first_status={"replicas": 0, "availableReplicas": 0}
)


def _default_pod(new: Json) -> Json:
    given = compact(new.get("spec"))
    spec = {"enableServiceLinks": True, **defaulted_spec(given)}
    spec |= {key: mapped(_requesting, spec[key]) for key in ("initContainers", "containers") if spec.get(key)}
    status = compact(new.get("status"))
    return {**new, "spec": shared(spec, given), **({"status": status} if status else {})}


def _requesting(container: Json) -> Json:
    """Request up to its limit what is limited and not requested."""
    resources = container["resources"]
    requests = completed(resources.get("requests", {}), resources.get("limits") or {})
    if not requests:
        return container
    return shared({**container, "resources": shared({**resources, "requests": requests}, resources)}, container)


def _complete_pod(new: Json, old: Json | None) -> Json:
    """Add what the admission plugin ServiceAccount puts in."""
    account = new["spec"].get("serviceAccountName") or "default"
    more = {"serviceAccountName": account, "serviceAccount": account} if old is None else {}
    return {**new, "spec": completed(new["spec"], more)}


_POD: Final = with_subresource(_default_pod, first_status={"phase": "Pending"}, kept_on_status=("ownerReferences",))
POD: Final[Strategy] = replace(
    _POD, prepare_create=lambda new: _default_pod(_POD.prepare_create(new)), complete=_complete_pod
)
