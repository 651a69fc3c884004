"""Strategies of kinds for an object that is written to them: the shape of one, and the parts that most share.

Metadata comes out as Kubernetes' types write it: what is null or empty is left out. The request has by then kept what
the server alone may say (uid, resourceVersion, generation, ...) from the object that was there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kube_simulator.errors import Cause
from kube_simulator.values import Json

Default = Callable[[Json], Json]
Validate = Callable[[Json, Json | None], list[Cause]]


def as_it_is(new: Json, _old: Json | None) -> Json:
    """Return an object as it is: nothing is to be found out."""
    return new


def nothing_wrong(_new: Json, _old: Json | None) -> list[Cause]:
    """Return no causes: there are no rules besides those for metadata."""
    return []


@dataclass(frozen=True, slots=True)
class Strategy:
    """Strategy by which objects of a kind come to be; all functions are pure and give new objects."""

    prepare_create: Callable[[Json], Json]
    """Drops what a client may not say, such as a status, and fills in what the server says instead."""
    prepare_update: Callable[[Json, Json, str], Json]
    """New, old and subresource (empty for the object itself): keeps what this write may not touch, and counts the
    generation on."""
    default: Default
    """Fills in what the client left out; a second time it changes nothing."""
    validate: Validate = nothing_wrong
    """What is wrong with a new object, or with an old one's successor."""
    complete: Callable[[Json, Json | None], Json] = as_it_is
    """New, and old if there is one: fills in what is nobody's own, because the server finds it out after it has
    recorded whose fields are whose: addresses, what admission plugins put in. A second time it changes nothing."""


_EMPTY_MEANS_ABSENT = ("labels", "annotations", "finalizers", "ownerReferences", "generateName", "namespace")


def tidy(new: Json) -> Json:
    """Drop from metadata what is null or empty, and references that say the same twice."""
    metadata = {
        key: value
        for key, value in (new.get("metadata") or {}).items()
        if value is not None and (value or key not in _EMPTY_MEANS_ABSENT) and (key, value) != ("generation", 0)
    }
    if references := metadata.get("ownerReferences"):
        metadata["ownerReferences"] = [each for at, each in enumerate(references) if each not in references[:at]]
    return {**new, "metadata": metadata}


def with_generation(new: Json, generation: int) -> Json:
    """Set `metadata.generation`."""
    return {**new, "metadata": {**new["metadata"], "generation": generation}}


def with_status(new: Json, status: object) -> Json:
    """Set the status; None for none."""
    rest = {key: value for key, value in new.items() if key != "status"}
    return rest if status is None else {**rest, "status": status}


def counted(new: Json, old: Json, *, besides: tuple[str, ...] = ("metadata", "status")) -> Json:
    """Keep the old generation, or set the next one if more than metadata and status changed."""
    changed = any(new.get(key) != old.get(key) for key in (new.keys() | old.keys()) - {*besides})
    return with_generation(new, old["metadata"].get("generation", 0) + changed)


def plain(default: Default, validate: Validate = nothing_wrong, *, generation: bool = False) -> Strategy:
    """A kind without a status, such as ConfigMap; some count a generation nevertheless."""

    def prepare_create(new: Json) -> Json:
        return with_generation(tidy(new), 1) if generation else tidy(new)

    def prepare_update(new: Json, old: Json, _subresource: str) -> Json:
        new = default(tidy(new))
        return counted(new, old, besides=("metadata",)) if generation else new

    return Strategy(prepare_create, prepare_update, default, validate)


def with_subresource(
    default: Default,
    validate: Validate = nothing_wrong,
    *,
    first_status: object = None,
    generation: bool = True,
    kept_on_status: tuple[str, ...] = (),
) -> Strategy:
    """A built-in kind with a status subresource.

    Args:
        first_status: the status of a new object; None for none.
        generation: whether the kind counts one.
        kept_on_status: fields of metadata that a write to the status may not touch; what the others are is taken from
            it, as Kubernetes does with its own kinds.
    """

    def prepare_create(new: Json) -> Json:
        new = with_status(tidy(new), first_status)
        return with_generation(new, 1) if generation else new

    def prepare_update(new: Json, old: Json, subresource: str) -> Json:
        new = tidy(new)
        if subresource == "status":
            kept = {**new["metadata"], **{key: old["metadata"].get(key) for key in kept_on_status}}
            return tidy(with_status({**old, "metadata": kept}, new.get("status", first_status)))
        new = default(with_status(new, old.get("status")))
        return counted(new, old) if generation else new

    return Strategy(prepare_create, prepare_update, default, validate)
