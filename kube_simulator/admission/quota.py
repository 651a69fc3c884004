"""Resource quotas: how much a namespace may hold, how much it holds, and the refusal of what would be too much.

What is used is counted anew whenever it is asked for, so that it is never out of date.

Differs from Kubernetes: scopes, and quotas on node ports, load balancers, storage and extended resources are refused
with 501; so is a pod with resources of its own (`spec.resources`) where a quota counts cpu or memory; of changes only
resizes of pods are held against a quota, and a new quota is counted at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

from kube_simulator.admission.request import AdmissionRequest
from kube_simulator.errors import forbidden, not_implemented
from kube_simulator.kinds.quantities import amount, canonical
from kube_simulator.resources import Registry
from kube_simulator.store.store import Store
from kube_simulator.values import Json

COLLECTION = "resourcequotas"
_COUNT = "count/"
# Kinds that a quota may name without `count/`.
_COUNTED = frozenset(
    {
        *("configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "resourcequotas", "secrets"),
        "services",
    }
)
# What a quota calls it, and where a container says it.
_MEASURED: Mapping[str, tuple[str, str]] = {
    "cpu": ("requests", "cpu"),
    "memory": ("requests", "memory"),
    "requests.cpu": ("requests", "cpu"),
    "requests.memory": ("requests", "memory"),
    "limits.cpu": ("limits", "cpu"),
    "limits.memory": ("limits", "memory"),
}
_FINISHED = ("Succeeded", "Failed")
_BINARY = 1024


def admit(store: Store, registry: Registry, request: AdmissionRequest) -> None:
    """Raises ApiError: 403 for what would be too much, 501 for a quota that cannot be kept."""
    new = request.new
    resized = request.resource_name == "pods" and request.target.subresource == "resize"
    if new is None or not (request.whole or resized):
        return
    if request.resource_name == COLLECTION:
        _check_known(new)
    if request.operation != "CREATE" and not resized:
        return
    for quota in store.list(COLLECTION, request.namespace) if request.namespace else ():
        _hold_against(quota, store, registry, request, new)


def _hold_against(quota: Json, store: Store, registry: Registry, request: AdmissionRequest, new: Json) -> None:
    hard = _hard(quota)
    cost = _costs(hard, request.resource_name, new)
    if not cost:
        return
    name, resource = quota["metadata"]["name"], request.target.resource
    if request.resource_name == "pods" and (missing := list(_missing(cost, new))):
        raise forbidden(resource, request.name, f"failed quota: {name}: must specify {'; '.join(missing)}")
    if request.old is not None:
        before = _costs(hard, request.resource_name, request.old)
        cost = {key: _beyond(each, before[key]) for key, each in cost.items()}
    used = {key: _used(key, store, registry, request.namespace) or "0" for key in cost}
    over = [key for key in cost if _number(cost[key]) and _number(used[key]) + _number(cost[key]) > _number(hard[key])]
    if over:
        sums = (
            f"{what}: {','.join(f'{key}={canonical(values[key])}' for key in over)}"
            for what, values in (("requested", cost), ("used", used), ("limited", hard))
        )
        raise forbidden(resource, request.name, f"exceeded quota: {name}, {', '.join(sums)}")


def status_of(quota: Json, store: Store, registry: Registry) -> Json:
    """What the `status` of a quota should be now; kinds that are not served are not counted."""
    hard = _hard(quota)
    namespace = quota["metadata"]["namespace"]
    used = {key: _used(key, store, registry, namespace) for key in sorted(hard)}
    return {"hard": hard, "used": {key: each for key, each in used.items() if each is not None}} if hard else {}


def _hard(quota: Json) -> dict[str, str]:
    return dict((quota.get("spec") or {}).get("hard") or {})


def _check_known(quota: Json) -> None:
    spec = quota.get("spec") or {}
    if spec.get("scopes") or spec.get("scopeSelector"):
        raise not_implemented("the scopes of a ResourceQuota")
    for key in _hard(quota):
        if not (key.startswith(_COUNT) or key in _COUNTED or key in _MEASURED):
            raise not_implemented(f"a ResourceQuota on {key}")


def _collection(key: str) -> str | None:
    """The objects that a quota counts, if it counts any."""
    if key.startswith(_COUNT):
        return key.removeprefix(_COUNT)
    return key if key in _COUNTED else None


def _costs(hard: Mapping[str, str], collection: str, new: Json) -> dict[str, str]:
    """What an object costs of all that a quota limits."""
    found = {key: _cost(key, collection, new) for key in sorted(hard)}
    return {key: each for key, each in found.items() if each is not None}


def _cost(key: str, collection: str, new: Json) -> str | None:
    """What a new object costs; None if it is no business of that quota."""
    if key in _MEASURED:
        return measured(key, new) if collection == "pods" else None
    return "1" if _collection(key) == collection else None


def _used(key: str, store: Store, registry: Registry, namespace: str) -> str | None:
    """How much there is; None if the kind is not served."""
    if key in _MEASURED:
        return _sum(measured(key, pod) for pod in store.list("pods", namespace) if _occupies(pod))
    collection = _collection(key)
    if key.startswith(_COUNT):
        plural, _, group = (collection or "").partition(".")
        if registry.of(group, plural) is None:
            return None
    found = store.list(collection or "", namespace)
    return str(sum(_occupies(each) for each in found) if key == "pods" else len(found))


def _occupies(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") not in _FINISHED


def _missing(cost: Mapping[str, str | None], pod: Json) -> Iterator[str]:
    """What a quota counts, and the containers that do not say how much of it they want."""
    for key in sorted(cost):
        if key in _MEASURED:
            containers = (*(pod["spec"].get("containers") or ()), *(pod["spec"].get("initContainers") or ()))
            silent = [each["name"] for each in containers if _wanted(key, each) is None]
            if silent:
                yield f"{key} for: {','.join(sorted(silent))}"


def _wanted(key: str, container: Json) -> str | None:
    which, what = _MEASURED[key]
    resources = container.get("resources") or {}
    # A limit is a request where there is none, as Kubernetes defaults it.
    return (resources.get(which) or {}).get(what) or (resources.get("limits") or {}).get(what)


def _counted(key: str, pod: Json, container: Json) -> str:
    """What a container takes: the most of what it wants and, while a resize is not done, of what it has."""
    which, what = _MEASURED[key]
    status = pod.get("status") or {}
    statuses: list[Json] = status.get("containerStatuses") or []
    had: Json = next((each for each in statuses if each["name"] == container["name"]), {})
    amounts = [((had.get("resources") or {}).get(which) or {}).get(what)]
    if which == "requests":
        amounts.append((had.get("allocatedResources") or {}).get(what))
    if not (any(amounts) and _never_fits(status)):
        amounts.append(_wanted(key, container))
    return max((each for each in amounts if each is not None), key=_number, default="0")


def _never_fits(status: Json) -> bool:
    """Its node has said that it never can have what it wants."""
    conditions = status.get("conditions") or ()
    return any(each["type"] == "PodResizePending" and each.get("reason") == "Infeasible" for each in conditions)


def measured(key: str, pod: Json) -> str:
    """What a pod takes: all its containers together or, if that is more, what it takes to start them in turn.

    Source: https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/#resource-sharing-within-containers.
    """
    spec = pod["spec"]
    if spec.get("resources"):
        raise not_implemented("resources of a pod as a whole, in a namespace with a ResourceQuota on cpu or memory")
    running = [_counted(key, pod, each) for each in spec.get("containers") or ()]
    sidecars: list[str] = []
    starting = "0"
    for each in spec.get("initContainers") or ():
        wanted = _wanted(key, each) or "0"
        needed = _sum((*sidecars, wanted))
        if each.get("restartPolicy") == "Always":
            sidecars.append(wanted)
        starting = max(starting, needed, key=_number)
    overhead = (spec.get("overhead") or {}).get(_MEASURED[key][1]) or "0"
    return _sum((max(_sum((*running, *sidecars)), starting, key=_number), overhead))


def _sum(quantities: Iterator[str] | tuple[str, ...]) -> str:
    """Written in powers of 1024 or of 10 as the first of them that is not nothing."""
    total, binary = Decimal(0), None
    for each in quantities:
        number = _number(each)
        total += number
        if binary is None and number:
            binary = str(each).endswith("i")
    return _written(total, binary=bool(binary))


def _beyond(quantity: str, before: str) -> str:
    """How much more that is, if it is."""
    more = max(_number(quantity) - _number(before), Decimal(0))
    return _written(more, binary=str(quantity).endswith("i"))


def _written(number: Decimal, *, binary: bool) -> str:
    return str(canonical(f"{number / _BINARY:f}Ki" if binary else f"{number:f}"))


def _number(quantity: object) -> Decimal:
    return amount(quantity) or Decimal(0)
