"""Fields that controllers read in objects and write into them: owners, conditions, times. Pure: changes are copies."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from kube_simulator.values import Json

TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def stamp(moment: datetime) -> str:
    """A time as metav1.Time: whole seconds, UTC."""
    return moment.strftime(TIME_FORMAT)


def moment_of(text: str) -> datetime:
    """The moment that a metav1.Time names."""
    return datetime.strptime(text, TIME_FORMAT).replace(tzinfo=UTC)


def seconds_since(text: str, now: datetime) -> float:
    """Return how long ago that was; times have whole seconds, so it may be up to a second too much."""
    return (now - moment_of(text)).total_seconds()


def labels_of(found: Json) -> dict[str, str]:
    """The labels; empty if there are none."""
    return found["metadata"].get("labels") or {}


def annotations_of(found: Json) -> dict[str, str]:
    """The annotations; empty if there are none."""
    return found["metadata"].get("annotations") or {}


def references_of(found: Json) -> list[Json]:
    """The owner references; empty if there are none."""
    return found["metadata"].get("ownerReferences") or []


def is_deleting(found: Json) -> bool:
    """Report whether the deletion was requested, and something still holds the object."""
    return "deletionTimestamp" in found["metadata"]


def controller_of(found: Json) -> Json | None:
    """The reference to the one owner that controls it."""
    return next((each for each in references_of(found) if each.get("controller")), None)


def controller_uid(found: Json) -> str:
    """The uid of the owner that controls it; "" for none."""
    reference = controller_of(found)
    return "" if reference is None else str(reference["uid"])


def controller_reference(owner: Json) -> Json:
    """A reference by which an owner controls what it makes."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def by_age(objects: Iterable[Json]) -> list[Json]:
    """The oldest first, and by name where that does not tell."""
    return sorted(objects, key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["name"]))


def condition_of(found: Json, kind: str) -> Json | None:
    """The condition of this type in its status."""
    return next((each for each in conditions_of(found) if each["type"] == kind), None)


def conditions_of(found: Json) -> list[Json]:
    """The conditions in its status; empty if there are none."""
    return (found.get("status") or {}).get("conditions") or []


def replicas_of(found: Json) -> int:
    """`spec.replicas`, which Kubernetes defaults to 1."""
    desired = found["spec"].get("replicas")
    return 1 if desired is None else int(desired)


def counted(found: Json, field: str) -> int:
    """A count in its status; 0 if it is left out."""
    return int((found.get("status") or {}).get(field) or 0)


def with_metadata(found: Json, **fields: object) -> Json:
    """A copy with these fields of the metadata; None leaves one out."""
    changed = {**found["metadata"], **fields}
    return {**found, "metadata": {key: value for key, value in changed.items() if value is not None}}


def with_spec(found: Json, **fields: object) -> Json:
    """A copy with these fields of the spec."""
    return {**found, "spec": {**found["spec"], **fields}}


def is_active(pod: Json) -> bool:
    """A pod that counts: neither finished nor being deleted."""
    return not is_deleting(pod) and not is_finished(pod)


def is_finished(pod: Json) -> bool:
    """A pod that has ended for good."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def ready_since(pod: Json) -> str:
    """Return since when the pod is ready, by its condition; "" if it is not ready or the condition has no time."""
    ready = condition_of(pod, "Ready")
    return str(ready.get("lastTransitionTime") or "") if ready is not None and ready["status"] == "True" else ""


def is_ready(pod: Json) -> bool:
    """The pod's condition Ready is true."""
    ready = condition_of(pod, "Ready")
    return ready is not None and ready["status"] == "True"
