"""Pure: whether a live object already has all that is wanted of it, both as JSON has them.

An apply that changes nothing costs the API server as much as a write. So a reconcile compares first:

    if not covers(deployment.spec, wanted["spec"]):
        await client.apply(DEPLOYMENTS, wanted)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def covers(live: object, wanted: object) -> bool:
    """Whether `live` has every field of `wanted` with its value; what it has besides is somebody else's.

    Entries of a list that all have a `name` (containers, variables, volumes, ownerReferences) are found by it, as
    server-side apply does, and others may stand between them. Any other list must be the same, entry by entry. None in
    `wanted` is a field that nothing is said about.

    Write values as the API server gives them back, or they never cover: `cpu: "1"` and not `1000m`.

    Args:
        live: an object or a part of it, from a store or the client.
        wanted: the same part of a body for `Client.apply`.
    """
    match wanted:
        case None:
            return True
        case Mapping():
            return isinstance(live, Mapping) and all(covers(live.get(name), part) for name, part in wanted.items())
        case str():
            return live == wanted
        case Sequence():
            if not isinstance(live, Sequence) or isinstance(live, str):
                return False
            held, asked = _by_name(live), _by_name(wanted)
            if held is not None and asked is not None:
                return covers(held, asked)
            return len(live) == len(wanted) and all(map(covers, live, wanted))
        case _:
            return live == wanted and isinstance(live, bool) == isinstance(wanted, bool)


def _by_name(entries: Sequence[object]) -> Mapping[object, object] | None:
    """A list's entries by their names, None where one has no name of its own."""
    named = {each["name"]: each for each in entries if isinstance(each, Mapping) and "name" in each}
    return named if len(named) == len(entries) else None
