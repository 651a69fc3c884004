"""Pure: options that users pass through: as the API server stores them, and differences of two parts that are `keyed`.

What the API server fills in around or within a part that is passed through is no drift.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from memcached_operator.api.quantities import canonical
from memcached_operator.api.reserved_pod_fields import MERGE_KEYS, SAID_BY_EMPTY
from operator_runtime import Difference, Entry, Order, Steps

_QUANTITIES: Final = ("limits", "requests", "overhead")
# Maps of texts, any of which may be empty.
NAMED_BY_PEOPLE: Final = (
    *("labels", "annotations", "nodeSelector", "matchLabels", "volumeAttributes", "userAnnotations"),
    *_QUANTITIES,
)
"""Fields whose keys are no fields."""
# Quantities, which the API server writes back in one form.
_QUANTITY: Final = ("sizeLimit", "divisor")
# What is left out where it is false or 0; of other fields that is something else than nothing.
_ZEROES: Final = (
    *("hostIPC", "hostNetwork", "hostPID", "readOnly", "stdin", "stdinOnce", "tty"),
    *("failureThreshold", "hostPort", "initialDelaySeconds", "periodSeconds", "successThreshold", "timeoutSeconds"),
    "partition",
)
# In them each field that is false is left out.
_OF_FALSE: Final = ("iscsi", "scaleIO")


def canonical_options(passed: Any, of: str = "") -> Any:
    """Return applied options as the API server stores them; else another client would seem to have changed them."""
    if isinstance(passed, Mapping):
        if of in _QUANTITIES:
            return {name: _quantity(value) for name, value in passed.items()}
        if of in NAMED_BY_PEOPLE:
            return dict(passed)
        # {} stays, as of a selector it means all, but for one of texts.
        kept = {field: canonical_options(value, field) for field, value in passed.items()}
        return {field: value for field, value in kept.items() if not _is_left_out(field, value, of)}
    if isinstance(passed, list | tuple):
        return [canonical_options(each) for each in passed]
    return _quantity(passed) if of in _QUANTITY else passed


def _is_left_out(field: str, value: object, of: str) -> bool:
    if value == "":
        return field not in SAID_BY_EMPTY
    empty = value in (None, []) or (value == {} and field in NAMED_BY_PEOPLE)
    return empty or (not value and field in _ZEROES) or (value is False and of in _OF_FALSE)


def _quantity(value: object) -> object:
    with suppress(ValueError):  # what is none is the API server's to refuse
        return canonical(str(value)) if isinstance(value, str | int | float) else value
    return value


# Lists that admission adds to, and would again after each write of the operator.
_EXTENSIBLE: Final = ("tolerations",)
# Dicts and lists of which each entry is a difference of its own, also where the other part has none.
_SHARED: Final = (*MERGE_KEYS, *NAMED_BY_PEOPLE)
_NAMES: Final = tuple((field,) for field in NAMED_BY_PEOPLE)
_IN_A_SPEC: Final = (*_SHARED, "podTemplate", "metadata", "spec")


def drift(desired: object, live: object, former: object, at: Steps = ()) -> Iterator[Difference]:
    """Yield where an object is not as desired; more in the live one's dicts and merged lists is no difference.

    Nor is more in another list or its entries, but where that list is another than the one which was applied before:
    an entry, or a field of one, may have been taken out.

    Args:
        desired, live, former: `keyed`; the latter is what was applied before, None where that is not known.
    """
    match desired, {} if live is None and _field(at) in _SHARED else live:
        case Mapping(), Mapping() as there:
            before = former if isinstance(former, Mapping) else {}
            for name, value in desired.items():
                yield from drift(value, there.get(name), before.get(name), _below(at, name))
        case list() as entries, list() as there if desired == former and _has_all(entries, there, _field(at)):
            return
        case _ if desired != live:
            yield Difference(at, unkeyed(desired, _field(at)), unkeyed(live, _field(at)))


def misplaced(desired: object, live: object, at: Steps = ()) -> Iterator[Difference]:
    """Yield the `Order` of each merged list in which the desired entries do not stand as desired."""
    if not isinstance(desired, Mapping) or not isinstance(live, Mapping):
        return
    if key := MERGE_KEYS.get(_field(at)):
        wanted, held = [*desired], [name for name in live if name in desired]
        if wanted != held and len(wanted) == len(held):
            yield Difference((*at, Order(key)), wanted, held)
    for name, value in desired.items():
        yield from misplaced(value, live.get(name), _below(at, name))


def unequal(desired: object, former: object, at: Steps = ()) -> Iterator[Difference]:
    """Yield all in which two parts differ, dict by dict and entry by entry."""
    if _field(at) in _IN_A_SPEC:
        desired, former = desired or {}, former or {}
    match desired, former:
        case Mapping(), Mapping():
            for name in {**former, **desired}:
                yield from unequal(desired.get(name), former.get(name), _below(at, name))
            # Containers start in their order, and variables are put into those below them.
            former_order = {name: desired[name] for name in (*former, *desired) if name in desired}
            if _field(at) in MERGE_KEYS and [*former_order] != [*desired]:
                yield Difference(at, unkeyed(desired, _field(at)), unkeyed(former_order, _field(at)))
        case _ if desired != former:
            yield Difference(at, unkeyed(desired, _field(at)), unkeyed(former, _field(at)))


def unkeyed(value: Any, of: str = "") -> Any:
    if isinstance(value, Mapping):
        if of in MERGE_KEYS:
            return [unkeyed(each) for each in value.values()]
        return {field: unkeyed(each, field) for field, each in value.items() if each or field not in MERGE_KEYS}
    return [unkeyed(each) for each in value] if isinstance(value, list) else value


def _below(at: Steps, name: str) -> Steps:
    key = MERGE_KEYS.get(_field(at))
    return (*at, Entry(key, name) if key else name)


def _has_all(desired: list[Any], live: list[Any], field: str) -> bool:
    if field in _EXTENSIBLE:
        return all(any(_is(each, other) for other in live) for each in desired)
    return len(desired) == len(live) and all(map(_is, desired, live))


def _is(desired: object, live: object) -> bool:
    return not any(drift(desired, live, desired))


def _field(at: Steps) -> str:
    """The field that stands there, "" for an entry, and for a key that is no field, as of a label."""
    return at[-1] if at and isinstance(at[-1], str) and at[-2:-1] not in _NAMES else ""
