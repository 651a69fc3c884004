"""Fields that controllers read in objects and write into them: owners, conditions, times. Pure: changes are copies."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from kube_simulator.values import Json

TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def stamp(moment: datetime) -> str:
    """A time as metav1.Time: whole seconds, UTC."""
    return moment.strftime(TIME_FORMAT)


def seconds_since(text: str, now: datetime) -> float:
    """Return how long ago a metav1.Time was; it has whole seconds, so it may be up to a second too much."""
    return (now - datetime.strptime(text, TIME_FORMAT).replace(tzinfo=UTC)).total_seconds()


def labels_of(found: Json) -> dict[str, str]:
    """The labels; empty if there are none."""
    return found["metadata"].get("labels") or {}


def annotations_of(found: Json) -> dict[str, str]:
    """The annotations; empty if there are none."""
    return found["metadata"].get("annotations") or {}


def references_of(found: Json) -> list[Json]:
    """The owner references; empty if there are none."""
    return found["metadata"].get("ownerReferences") or []


def finalizers_of(found: Json) -> list[str]:
    """The finalizers; empty if there are none."""
    return found["metadata"].get("finalizers") or []


def is_deleting(found: Json) -> bool:
    """Report whether the deletion was requested, and something still holds the object."""
    return "deletionTimestamp" in found["metadata"]


def controller_of(found: Json | None) -> Json | None:
    """The reference to the one owner that controls it."""
    references = [] if found is None else references_of(found)
    return next((each for each in references if each.get("controller")), None)


def controller_reference(owner: Json) -> Json:
    """A reference by which an owner controls what it makes."""
    identity = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    kind = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    return {**kind, **identity, "controller": True, "blockOwnerDeletion": True}


def by_age(objects: Iterable[Json]) -> list[Json]:
    """The oldest first, and by name where that does not tell."""
    return sorted(objects, key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["name"]))


def status_of(found: Json) -> Json:
    """The status; empty if there is none."""
    return found.get("status") or {}


def conditions_of(found: Json) -> list[Json]:
    """The conditions in its status; empty if there are none."""
    return status_of(found).get("conditions") or []


def condition_of(found: Json, kind: str) -> Json | None:
    """The condition of this type in its status."""
    return next((each for each in conditions_of(found) if each["type"] == kind), None)


def replicas_of(found: Json) -> int:
    """`spec.replicas`, which Kubernetes defaults to 1."""
    desired = found["spec"].get("replicas")
    return 1 if desired is None else int(desired)


def counted(found: Json, field: str) -> int:
    """A count in its status; 0 if it is left out."""
    return int(status_of(found).get(field) or 0)


def with_metadata(found: Json, **fields: object) -> Json:
    """A copy with these fields of the metadata; None leaves one out."""
    changed = {**found["metadata"], **fields}
    return {**found, "metadata": {key: value for key, value in changed.items() if value is not None}}


def with_spec(found: Json, **fields: object) -> Json:
    """A copy with these fields of the spec."""
    return {**found, "spec": {**found["spec"], **fields}}


def is_finished(pod: Json) -> bool:
    """A pod that has ended for good."""
    return status_of(pod).get("phase") in ("Succeeded", "Failed")


def is_active(pod: Json) -> bool:
    """A pod that counts: neither finished nor being deleted."""
    return not is_deleting(pod) and not is_finished(pod)


def is_ready(pod: Json) -> bool:
    """The pod's condition Ready is true."""
    return (condition_of(pod, "Ready") or {}).get("status") == "True"


def available_in_s(pod: Json, minimum_s: float, now: datetime) -> float:
    """Return how long a pod has yet to be ready before it is available: infinite if it is not ready, 0 if it is."""
    if not is_ready(pod):
        return float("inf")
    since = (condition_of(pod, "Ready") or {}).get("lastTransitionTime")
    return max(0.0, minimum_s - seconds_since(since, now)) if minimum_s and since else 0.0
