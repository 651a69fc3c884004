"""Pure: differences of the parts that are passed through, between a desired object and a live one.

Such a part is compared as the user wrote it: what the API server fills in around or within it is no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from memcached_operator.api.reserved_pod_fields import MERGE_KEYS, find, keyed, steps
from memcached_operator.memcached.desired.applied_options import applied_options, digests
from memcached_operator.memcached.desired.object_types import Manifest
from operator_runtime import Difference, Entry, Steps

# Lists that admission adds to, and would again after each write of the operator.
_EXTENSIBLE: Final = ("tolerations",)


def of_parts(desired: Manifest, live: Manifest, *, whole: bool = True) -> Iterator[Difference]:
    """Yield the differences of the parts of either.

    Args:
        whole: a part that was changed in the specification differs as a whole, so that nothing of it is left behind.
    """
    was, is_ = (digests(applied_options(each)) for each in (live, desired))
    whole_desired, whole_live = keyed(desired.body()), keyed(live.body())
    gone: list[Steps] = []
    for path in was | is_:
        mine, there, at = find(whole_desired, path), find(whole_live, path), steps_to(path)
        if is_.get(path) == "" == was.get(path, "") or is_within(at, gone):
            continue  # the former is compared with all that the operator makes
        if whole and is_.get(path) and was.get(path) != is_[path]:
            if unkeyed(mine) != unkeyed(there):
                yield Difference(at, unkeyed(mine), unkeyed(there))
            continue
        if mine is None:
            gone.append(at)
        yield from drift(mine, there, at)


def with_parts(desired: Manifest, found: Sequence[Difference], passed: Sequence[Steps]) -> list[Difference]:
    """Differences, of which those around a part want it as the user has it, and not as the operator made it.

    Args:
        found: in what the operator makes.
        passed: paths to the parts.
    """
    around = [
        each for each in found if each.desired is not None and any(is_within(path, [each.steps]) for path in passed)
    ]
    whole = keyed(desired.body()) if around else {}
    return [
        each._replace(desired=unkeyed(find(whole, each.path), _field(each.steps))) if each in around else each
        for each in found
    ]


def passed_through(*manifests: Manifest) -> list[Steps]:
    return [steps_to(path) for each in manifests for path, digest in digests(applied_options(each)).items() if digest]


def is_within(at: Steps, others: Iterable[Steps]) -> bool:
    """Report whether one of the others leads to what these steps lead to, or to something around it."""
    return any(at[: len(each)] == each for each in others)


def steps_to(path: str) -> Steps:
    found: Steps = ()
    for name in steps(path):
        found = _below(found, name)
    return found


def drift(desired: object, live: object, at: Steps) -> Iterator[Difference]:
    """Yield where a part is not as desired; more in the live one's objects and merged lists is no difference.

    Args:
        desired, live: both `keyed`.
        at: where they stand.
    """
    match desired, live:
        case Mapping(), Mapping():
            for name, value in desired.items():
                yield from drift(value, live.get(name), _below(at, name))
        case list(), list() if _field(at) in _EXTENSIBLE:
            if not all(any(_is(each, other) for other in live) for each in desired):
                yield Difference(at, unkeyed(desired), unkeyed(live))
        case list(), list() if len(desired) == len(live) and all(map(_is, desired, live)):
            return
        case _ if desired != live:
            yield Difference(at, unkeyed(desired, _field(at)), unkeyed(live, _field(at)))


def unkeyed(value: Any, of: str = "") -> Any:
    """Convert what is `keyed` to JSON's form."""
    if isinstance(value, Mapping):
        if of in MERGE_KEYS:
            return [unkeyed(each) for each in value.values()]
        return {field: unkeyed(each, field) for field, each in value.items() if each or field not in MERGE_KEYS}
    return [unkeyed(each) for each in value] if isinstance(value, list) else value


def _is(desired: object, live: object) -> bool:
    return not any(drift(desired, live, ()))


def _below(at: Steps, name: str) -> Steps:
    key = MERGE_KEYS.get(_field(at))
    return (*at, Entry(key, name) if key else name)


def _field(at: Steps) -> str:
    return at[-1] if at and isinstance(at[-1], str) else ""
