"""Predicates: which changes of an object are worth a reconcile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from operator_runtime.objects.api_objects import ApiObject

T = TypeVar("T")

Predicate = Callable[[T | None, T | None], bool]
"""Choice of the changes that are worth a reconcile, as controller-runtime's predicates make it.

It is called with the object before and after a change: None before means that it is new (or that the operator has just
begun), None after that it is gone. A change of nothing but the resourceVersion enqueues nothing anyway. Predicates only
spare work: a reconcile reads the state itself, so that one in vain does no harm.
"""


def always(before: object | None, after: object | None) -> bool:
    """Let every change pass."""
    return True


def generation_changed(before: ApiObject | None, after: ApiObject | None) -> bool:
    """The specification changed, or the deletion began, which counts the generation up as well.

    The API server counts `metadata.generation` for custom resources with a status subresource and for most kinds with a
    specification, but not for Pods, ConfigMaps, Secrets and Services: of these no change would count.
    """
    return _differ(before, after, lambda each: (each.generation, each.deleting))


def labels_changed(before: ApiObject | None, after: ApiObject | None) -> bool:
    """Report whether a label was set, changed or removed."""
    return _differ(before, after, lambda each: each.labels)


def annotations_changed(before: ApiObject | None, after: ApiObject | None) -> bool:
    """Report whether an annotation was set, changed or removed."""
    return _differ(before, after, lambda each: each.annotations)


def any_of(*predicates: Predicate[T]) -> Predicate[T]:
    """Hold where at least one of them does."""
    return lambda before, after: any(each(before, after) for each in predicates)


def all_of(*predicates: Predicate[T]) -> Predicate[T]:
    """Let a change pass where all of the predicates do."""
    return lambda before, after: all(each(before, after) for each in predicates)


def none_of(*predicates: Predicate[T]) -> Predicate[T]:
    """Hold where none of them does."""
    return lambda before, after: not any(each(before, after) for each in predicates)


def _differ(before: ApiObject | None, after: ApiObject | None, aspect: Callable[[ApiObject], object]) -> bool:
    """Report whether `aspect` changed; an object that comes or goes always counts."""
    return before is None or after is None or aspect(before) != aspect(after)
