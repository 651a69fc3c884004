"""StatefulSets: defaults and rules.

Differs from Kubernetes: `volumeClaimTemplates` are answered with 501, as there are no claims; any counts may be written
into a status; and what is to become of claims is not looked at.
"""

from __future__ import annotations

from typing import Final

from kube_simulator.errors import Cause, not_implemented
from kube_simulator.kinds.compaction import APPS_V1, compact
from kube_simulator.kinds.kind_strategy import Strategy, with_subresource
from kube_simulator.kinds.pod_defaults import defaulted_template
from kube_simulator.kinds.pod_specs import template_problems
from kube_simulator.kinds.selectors import selection_problems
from kube_simulator.kinds.sharing import completed, shared
from kube_simulator.names import dns_label
from kube_simulator.schema.causes import at_least_zero, forbidden, invalid, unlike
from kube_simulator.values import Json

_ROLLING: Final = "RollingUpdate"
_ON_DELETE: Final = "OnDelete"
_MANAGEMENT: Final = ("OrderedReady", "Parallel")
_RETAINED: Final = {"whenDeleted": "Retain", "whenScaled": "Retain"}
_MUTABLE: Final = (
    *("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"),
    *("persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
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
    strategy, service = spec["updateStrategy"], spec.get("serviceName")
    found = []
    for field, value, allowed in (
        ("podManagementPolicy", spec["podManagementPolicy"], _MANAGEMENT),
        ("updateStrategy", strategy["type"], (_ON_DELETE, _ROLLING)),
    ):
        found += [] if value in allowed else [invalid(f"spec.{field}", value, f"must be one of {', '.join(allowed)}")]
    if strategy["type"] == _ON_DELETE and (rolling := strategy.get("rollingUpdate")) is not None:
        found.append(invalid("spec.updateStrategy.rollingUpdate", rolling, f"only allowed for '{_ROLLING}'"))
    for key in ("replicas", "minReadySeconds"):
        found += at_least_zero(f"spec.{key}", spec.get(key))
    if old is None and service:
        found += unlike("spec.serviceName", service, dns_label(service))
    found += selection_problems(spec, "statefulset") + template_problems(spec["template"], "spec.template")
    if old is not None and _lasting(spec) != _lasting(old["spec"]):
        why = f"updates to statefulset spec for fields other than {', '.join(_MUTABLE)} are forbidden"
        found.append(forbidden("spec", why))
    return found


def _lasting(spec: Json) -> Json:
    return {key: value for key, value in spec.items() if key not in _MUTABLE}


STRATEGY: Final[Strategy] = with_subresource(_default, _validate, first_status={})
