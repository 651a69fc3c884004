"""Which changes count."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from operator_runtime.controller.predicates import (
    Predicate,
    all_of,
    always,
    annotations_changed,
    any_of,
    generation_changed,
    labels_changed,
    none_of,
)
from operator_runtime.objects.api_objects import Metadata, PlainObject

BEFORE = PlainObject(Metadata(name="a", generation=1, labels={"app": "a"}, annotations={"note": "1"}), {})


def changed(**fields: Any) -> tuple[PlainObject, PlainObject]:
    return BEFORE, PlainObject(msgspec.structs.replace(BEFORE.metadata, **fields), {})


CHANGES: dict[str, tuple[PlainObject | None, PlainObject | None]] = {
    "new": (None, BEFORE),
    "gone": (BEFORE, None),
    "generation": changed(generation=2),
    "labels": changed(labels={"app": "b"}),
    "annotations": changed(annotations={}),
    "finalizers": changed(finalizers=("example.com/hold",)),
    "deletion": changed(deletion_timestamp="2026-11-21T12:00:00Z"),
}


def counted(predicate: Predicate[PlainObject]) -> set[str]:
    """The changes that count for it."""
    return {name for name, change in CHANGES.items() if predicate(*change)}


@pytest.mark.parametrize(
    ("predicate", "names"),
    [
        (always, set(CHANGES)),
        (generation_changed, {"new", "gone", "generation", "deletion"}),
        (labels_changed, {"new", "gone", "labels"}),
        (annotations_changed, {"new", "gone", "annotations"}),
        (any_of(generation_changed, labels_changed), {"new", "gone", "generation", "deletion", "labels"}),
        (all_of(generation_changed, labels_changed), {"new", "gone"}),
        (none_of(generation_changed, labels_changed), {"annotations", "finalizers"}),
        (any_of(), set()),
        (all_of(), set(CHANGES)),
    ],
    ids=["always", "generation", "labels", "annotations", "any", "all", "none", "any of none", "all of none"],
)
def test_a_predicate_counts_its_changes_and_no_others(predicate: Predicate[PlainObject], names: set[str]) -> None:
    assert counted(predicate) == names


def test_a_predicate_of_ones_own_is_a_function_of_before_and_after() -> None:
    def became_plain(before: PlainObject | None, after: PlainObject | None) -> bool:
        return after is not None and not after.annotations

    assert counted(all_of(became_plain, annotations_changed)) == {"annotations"}
