"""The subresource `resize` of pods: cpu and memory of the containers of a pod that is there already.

What else a body changes is dropped without a word, besides what is refused. The rules are those of
`k8s.io/kubernetes/pkg/apis/core/validation` (ValidatePodResize); a limit of memory may be lowered too.

Differs from Kubernetes: resources of a pod as a whole cannot be changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kube_simulator.errors import Cause, not_implemented
from kube_simulator.kinds import pods
from kube_simulator.kinds.base import Strategy, counted, tidy
from kube_simulator.kinds.causes import forbidden, invalid
from kube_simulator.kinds.pod_specs import spec_problems
from kube_simulator.values import Json

_LISTS: Final = ("containers", "initContainers")
_SERVERS_OWN: Final = ("labels", "annotations", "finalizers", "ownerReferences")
_RESIZABLE: Final = ("cpu", "memory")
_KINDS: Final = ("requests", "limits")
_ONLY: Final = "only cpu and memory resources are mutable"


def _prepare_update(new: Json, old: Json, _subresource: str) -> Json:
    kept = {key: value for key, value in new["metadata"].items() if key not in _SERVERS_OWN}
    kept |= {key: old["metadata"][key] for key in _SERVERS_OWN if key in old["metadata"]}
    given, spec = new.get("spec") or {}, dict(old["spec"])
    if given.get("resources") != spec.get("resources"):
        raise not_implemented("a resize of resources of a pod as a whole")
    for key in _LISTS:
        if key in given:
            spec[key] = _resized(given.get(key) or [], old["spec"].get(key) or [])
        else:
            spec.pop(key, None)
    return counted(pods.STRATEGY.default(tidy({**old, "metadata": kept, "spec": spec})), old)


def _resized(new: Sequence[Json], old: Sequence[Json]) -> list[Json]:
    """The containers as they were, with the new resources; the new ones, where they are not the same containers."""
    if _names(new) != _names(old):
        return list(new)
    return [
        _with(before, resources=each.get("resources"), policy=each.get("resizePolicy"))
        for each, before in zip(new, old, strict=True)
    ]


def _with(container: Json, *, resources: Json | None, policy: list[Json] | None) -> Json:
    rest = {key: value for key, value in container.items() if key not in ("resources", "resizePolicy")}
    return {**rest, "resources": resources or {}, **({"resizePolicy": policy} if policy else {})}


def _names(containers: Sequence[Json]) -> list[str]:
    return [each.get("name") or "" for each in containers]


def _validate(new: Json, old: Json | None) -> list[Cause]:
    assert old is not None, "nothing is made by a resize"
    found = spec_problems(new["spec"], "spec")
    quality = (old.get("status") or {}).get("qosClass") or pods.quality_of_service(old["spec"])
    if pods.quality_of_service(new["spec"]) != quality:
        found.append(invalid("spec", quality, "Pod QOS Class may not change as a result of resizing"))
    if not _node_resizes(old):
        found.append(forbidden("spec", "Pod running on node without support for resize"))
    if moved := [cause for key in _LISTS for cause in _order_problems(new["spec"], old["spec"], key)]:
        return found + moved
    for key in reversed(_LISTS):
        found += _removal_problems(new["spec"].get(key) or [], old["spec"].get(key) or [], f"spec.{key}")
    found += [
        forbidden("spec", _ONLY)
        for each, before in zip(new["spec"]["containers"], old["spec"]["containers"], strict=True)
        if _lasting(each) != _lasting(before)
    ]
    firsts = zip(new["spec"].get("initContainers") or [], old["spec"].get("initContainers") or [], strict=True)
    for index, (each, before) in enumerate(firsts):
        if _lasting(each) != _lasting(before):
            why = "only cpu and memory resources for init or sidecar containers are mutable"
            found.append(forbidden(f"spec.initContainers[{index}]", why))
    return found


def _node_resizes(pod: Json) -> bool:
    """A node that can resize says what resources a container has that runs; of one that runs none nothing is known."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    running = (each for each in statuses if (each.get("state") or {}).get("running") is not None)
    first = next(running, None)
    return first is None or first.get("resources") is not None


def _order_problems(new: Json, old: Json, key: str) -> list[Cause]:
    names, before = _names(new.get(key) or []), _names(old.get(key) or [])
    if len(names) != len(before):
        return [forbidden(f"spec.{key}", f"{key} may not be added or removed on resize")]
    why = f"{key} may not be renamed or reordered on resize"
    pairs = enumerate(zip(names, before, strict=True))
    return [forbidden(f"spec.{key}[{index}].name", why) for index, (name, was) in pairs if name != was]


def _removal_problems(new: Sequence[Json], old: Sequence[Json], field: str) -> list[Cause]:
    found: list[Cause] = []
    for index, (each, before) in enumerate(zip(new, old, strict=True)):
        for kind in _KINDS:
            had, has = before["resources"].get(kind) or {}, each["resources"].get(kind) or {}
            if had.keys() - has.keys():
                found.append(forbidden(f"{field}[{index}].resources.{kind}", f"resource {kind} cannot be removed"))
    return found


def _lasting(container: Json) -> Json:
    """A container without what may change."""
    resources = container["resources"]
    kept = {
        kind: {name: value for name, value in (resources.get(kind) or {}).items() if name not in _RESIZABLE}
        for kind in _KINDS
    }
    claims = resources.get("claims") or []
    return {**container, "resources": {**kept, "claims": claims}}


STRATEGY: Strategy = Strategy(
    pods.STRATEGY.prepare_create, _prepare_update, pods.STRATEGY.default, _validate, pods.STRATEGY.complete
)
