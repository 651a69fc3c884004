"""Conditions: what a status reports of an object in the form that `kubectl wait` and people know."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import Meta


class Condition(msgspec.Struct, frozen=True):
    """One aspect of an object's state: whether it holds, since when, and why."""

    type: Annotated[
        str,
        Meta(
            description="Type of the condition; each writer owns some.",
            extra_json_schema={
                "maxLength": 316,
                "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
                r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
            },
        ),
    ]
    status: Annotated[
        str,
        Meta(
            description="Status of the condition: True, False or Unknown.",
            extra_json_schema={"enum": ["True", "False", "Unknown"]},
        ),
    ] = ""
    reason: Annotated[
        str,
        Meta(
            description="Machine-readable reason for the last transition or update, in one CamelCase word.",
            extra_json_schema={
                "minLength": 1,
                "maxLength": 1024,
                "pattern": r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            },
        ),
    ] = ""
    message: Annotated[
        str,
        Meta(description="Human-readable message with details. Can be empty.", extra_json_schema={"maxLength": 32768}),
    ] = ""
    lastTransitionTime: Annotated[
        str | msgspec.UnsetType,
        Meta(
            description="Last time the condition changed from one status to another.",
            extra_json_schema={"format": "date-time"},
        ),
    ] = msgspec.UNSET
    observedGeneration: Annotated[
        int | msgspec.UnsetType,
        Meta(
            description="The metadata.generation for which the condition was set.",
            extra_json_schema={"format": "int64", "minimum": 0},
        ),
    ] = msgspec.UNSET


_BY_TYPE = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"], "maxItems": 100}
# What Kubernetes' own conditions (metav1.Condition) have; a record of one reads less.
_WHOLE = {"required": ["type", "status", "reason", "message", "lastTransitionTime"]}

Conditions = Annotated[
    tuple[Annotated[Condition, Meta(extra_json_schema=_WHOLE)], ...],
    Meta(description="What holds, by type.", extra_json_schema=_BY_TYPE),
]
"""The type of `status.conditions` in a struct: of which each writer keeps those of its own types."""


def condition_of(conditions: Iterable[Condition] | None, type_: str) -> Condition | None:
    """The condition of that type, if there is one."""
    return next((condition for condition in conditions or () if condition.type == type_), None)


def set_conditions(
    live: Iterable[Condition] | None, desired: Iterable[Condition], *, generation: int, now: str | None = None
) -> tuple[Condition, ...]:
    """The conditions of a status with the desired ones in their places, or at the end; others stay as they are.

    `lastTransitionTime` is kept for as long as a condition's status stays the same, so that a status in which nothing
    changed is equal to the former.

    Args:
        generation: of the specification for which they were observed.
        now: the time of a transition, from `rfc3339`; None for the present one.
    """
    now = now or rfc3339()
    merged = {condition.type: condition for condition in live or ()}
    for condition in desired:
        before = merged.get(condition.type)
        since = (before.lastTransitionTime or now) if before is not None and before.status == condition.status else now
        merged[condition.type] = msgspec.structs.replace(
            condition, lastTransitionTime=since, observedGeneration=generation
        )
    return tuple(merged.values())


def rfc3339(moment: datetime | None = None) -> str:
    """A time of the API, to the second; None for the present one."""
    # strftime takes four times as long, and a reconcile needs this each time.
    return (moment or datetime.now(UTC)).astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
