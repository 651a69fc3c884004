"""StatefulSets: defaults and rules.

Differs from Kubernetes: `volumeClaimTemplates` are answered with 501, as there are no claims; any counts may be written
into a status; and what is to become of claims is not looked at.
"""

from __future__ import annotations

from typing import Final

from kube_simulator.errors import Cause, not_implemented
from kube_simulator.kinds.compaction import APPS_V1, compact
from kube_simulator.kinds.field_causes import at_least_zero, forbidden, invalid, unlike
from kube_simulator.kinds.kind_strategy import Strategy, with_subresource
from kube_simulator.kinds.name_validation import dns_label
from kube_simulator.kinds.pod_defaults import defaulted_template
from kube_simulator.kinds.pod_specs import template_problems
from kube_simulator.kinds.selectors import selection_problems
from kube_simulator.kinds.sharing import completed, shared
from kube_simulator.values import Json

_ROLLING: Final = "RollingUpdate"
_ON_DELETE: Final = "OnDelete"
_MANAGEMENT: Final = ("OrderedReady", "Parallel")
_RETAINED: Final = {"whenDeleted": "Retain", "whenScaled": "Retain"}
_MUTABLE: Final = frozenset(
    {
        *("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"),
        *("persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
    }
)
_IMMUTABLE: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def _default(new: Json) -> Json:
    spec = compact(new.get("spec") or {}, f"{APPS_V1}StatefulSetSpec")
    defaults = {"podManagementPolicy": "OrderedReady", "replicas": 1, "revisionHistoryLimit": 10}
    retention = completed(spec.get("persistentVolumeClaimRetentionPolicy") or {}, _RETAINED)
    template = defaulted_template(spec["template"])
    own = {"updateStrategy": _updates(spec["updateStrategy"]), "template": template}
    spec = shared({**defaults, **spec, **own, "persistentVolumeClaimRetentionPolicy": retention}, spec)
    return {**new, "spec": spec, "status": compact(new.get("status") or {}, f"{APPS_V1}StatefulSetStatus")}


def _updates(strategy: Json) -> Json:
    """Fill in how pods are updated; a strategy that is named without details has none."""
    if not strategy.get("type"):
        strategy = {"rollingUpdate": {}, **strategy, "type": _ROLLING}
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] != _ROLLING or rolling is None:
        return strategy
    # Of an alpha feature, which is off.
    known = {key: value for key, value in rolling.items() if key != "maxUnavailable"}
    return shared({**strategy, "rollingUpdate": shared(completed(known, {"partition": 0}), rolling)}, strategy)


def _validate(new: Json, old: Json | None) -> list[Cause]:
    spec = new["spec"]
    if old is not None and spec == old["spec"]:
        return []
    if spec.get("volumeClaimTemplates"):
        raise not_implemented("StatefulSets with volumeClaimTemplates")
    found = _spec_problems(spec, named=old is None)
    if old is not None and _lasting(spec) != _lasting(old["spec"]):
        found.append(forbidden("spec", _IMMUTABLE))
    return found


def _lasting(spec: Json) -> Json:
    return {key: value for key, value in spec.items() if key not in _MUTABLE}


def _spec_problems(spec: Json, *, named: bool) -> list[Cause]:
    """List what is wrong with a spec; `named`: also with the name of its Service, which lasts once it is there."""
    found: list[Cause] = []
    management = spec["podManagementPolicy"]
    if management not in _MANAGEMENT:
        why = f"must be '{_MANAGEMENT[0]}' or '{_MANAGEMENT[1]}'"
        found.append(invalid("spec.podManagementPolicy", management, why))
    found += _strategy_problems(spec["updateStrategy"])
    for key in ("replicas", "minReadySeconds"):
        found += at_least_zero(f"spec.{key}", spec.get(key))
    found += at_least_zero("spec.ordinals.start", (spec.get("ordinals") or {}).get("start"))
    if named and spec.get("serviceName"):
        found += unlike("spec.serviceName", spec["serviceName"], dns_label(spec["serviceName"]))
    found += selection_problems(spec, "statefulset")
    return found + template_problems(spec["template"], "spec.template")


def _strategy_problems(strategy: Json) -> list[Cause]:
    kind, rolling = strategy["type"], strategy.get("rollingUpdate")
    if kind == _ON_DELETE and rolling is not None:
        return [invalid("spec.updateStrategy.rollingUpdate", rolling, f"only allowed for updateStrategy '{_ROLLING}'")]
    if kind == _ROLLING:
        return at_least_zero("spec.updateStrategy.rollingUpdate.partition", (rolling or {}).get("partition"))
    if kind != _ON_DELETE:
        shown = {"Type": kind, "RollingUpdate": rolling}
        return [invalid("spec.updateStrategy", shown, f"must be '{_ROLLING}' or '{_ON_DELETE}'")]
    return []


STRATEGY: Strategy = with_subresource(_default, _validate, first_status={})
