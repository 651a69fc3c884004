"""Conditions: what a status reports of an object in the form that `kubectl wait` and people know."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import Meta


class Condition(msgspec.Struct, frozen=True):
    """One aspect of an object's state: whether it holds, since when, and why."""

    type: Annotated[str, Meta(description="Which aspect of the state.")]
    status: Annotated[str, Meta(description="Whether it holds: True, False or Unknown.")] = ""
    reason: Annotated[str, Meta(description="Why, in one word for programs.")] = ""
    message: Annotated[str, Meta(description="Why, in words for people.")] = ""
    lastTransitionTime: Annotated[str | msgspec.UnsetType, Meta(description="When status last changed.")] = (
        msgspec.UNSET
    )
    observedGeneration: Annotated[
        int | msgspec.UnsetType, Meta(description="The metadata.generation for which it was observed.")
    ] = msgspec.UNSET


_BY_TYPE = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}

Conditions = Annotated[tuple[Condition, ...], Meta(description="What holds, by type.", extra_json_schema=_BY_TYPE)]
"""The type of `status.conditions` in a struct: of which each writer keeps those of its own types."""


def condition_of(conditions: Iterable[Condition] | None, type_: str) -> Condition | None:
    """The condition of that type, if there is one."""
    for condition in conditions or ():
        if condition.type == type_:
            return condition
    return None


def set_conditions(
    live: Iterable[Condition] | None, desired: Iterable[Condition], *, generation: int, now: str | None = None
) -> tuple[Condition, ...]:
    """The conditions of a status with the desired ones in their places, or at the end; others stay as they are.

    `lastTransitionTime` is kept for as long as a condition's status stays the same, so that a status in which nothing
    changed is equal to the former.

    Args:
        live: the conditions as they are, None where there are none.
        desired: those to set.
        generation: of the specification for which they were observed.
        now: the time of a transition, from `rfc3339`; None for the present one.
    """
    now = now or rfc3339()
    merged = {condition.type: condition for condition in live or ()}
    for condition in desired:
        before = merged.get(condition.type)
        if before is not None and before.lastTransitionTime and _is_as_desired(before, condition, generation):
            continue
        since = before.lastTransitionTime if before is not None and before.status == condition.status else now
        merged[condition.type] = msgspec.structs.replace(
            condition, lastTransitionTime=since or now, observedGeneration=generation
        )
    return tuple(merged.values())


def rfc3339(moment: datetime | None = None) -> str:
    """A time of the API, to the second; None for the present one."""
    # strftime takes four times as long, and a reconcile needs this each time.
    return (moment or datetime.now(UTC)).astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def _is_as_desired(live: Condition, desired: Condition, generation: int) -> bool:
    """Report whether a live condition already has the desired content."""
    content = live.status, live.reason, live.message, live.observedGeneration
    return content == (desired.status, desired.reason, desired.message, generation)
