"""Pure: messages on a change of a specification: what is done, what that costs, and about how long it takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from memcached_operator.api.quantities import mebibytes
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.memory_annotation import memory_of
from memcached_operator.core.objects.pod_template import SLEEP_S

SERVER_S: Final = 2 * SLEEP_S
"""What a server takes to end and the next one to be ready, in seconds: it sleeps before it ends, and the first probe of
the new one comes as late."""
MOVE_S: Final = 20
"""What the move of a server without items takes: a holder gets ready, and goes, and so does the server."""
NO_SERVER_AFFECTED: Final = "no server is affected"
BEFORE_RESIZE: Final = (
    ", as on Kubernetes before 1.33, or where a webhook gives their pods the resizePolicy RestartContainer for memory"
)
"""After the words of `live`, where neither the cluster nor the pods are known."""
_ONE_BY_ONE: Final = "servers are replaced one at a time, and lose their keys"


def rolling(spec: Spec, servers: int, until: str = "", *, moves: bool = False) -> str:
    """Describe the replacement of so many servers.

    Args:
        spec: whose workload and rollout decide on the pace.
        until: what that waits for, "" where the specification alone decides.
        moves: their items move with them.
    """
    if moves and spec.moves:
        whose = "its keys move with it" if servers == 1 else "the keys of each move with it"
        keeps = f"{whose}, but for those that nobody used since the last change of the list"
        return _one_by_one(spec, servers, until, "replaced", keeps, MOVE_S + _of_items_s(spec))
    loses = ("it loses its keys" if servers == 1 else "each loses its keys") + (
        "" if spec.workload == "StatefulSet" else " and its address"
    )
    return _one_by_one(spec, servers, until, "replaced", loses)


def in_place(spec: Spec, servers: int, until: str = "") -> str:
    """Describe the restart of so many servers in their pods; the arguments are those of `rolling`."""
    return _one_by_one(spec, servers, until, "restarted in place", "caches are kept")


def _of_items_s(spec: Spec) -> int:
    """Seconds for which the items of a full server are copied, there and back: 1 GiB of values of 1 KB takes 70."""
    return round(70 * mebibytes(spec.memory) / 1024)


def _one_by_one(spec: Spec, servers: int, until: str, done: str, keys: str, server_s: int = SERVER_S) -> str:
    until = ", once spec.rollout.paused is false" if spec.rollout.paused else until and f", {until}"
    if not servers:
        return f"no server runs, so none is {done}{until}"
    pause_s, named = spec.rollout.minReadySeconds, spec.workload == "StatefulSet"
    together = 1 if named else min(_at_a_time(spec), servers)
    rounds = -(-servers // together)
    pace = f", {'one' if together == 1 else together} at a time" if rounds > 1 else ""
    order = ", from the highest ordinal" if named and rounds > 1 else ""
    pauses = f" ({pause_s} s pause and a few seconds each)" if rounds > 1 and pause_s else ""
    took = _about((rounds - 1) * pause_s + rounds * server_s)
    return f"{_are(servers)} {done}{pace}{order}{until}; {keys}; {took}{pauses}"


def of_mirrored(servers: int) -> str:
    """Explain why so many servers cannot be changed in place, after the words of `in_place` or `rolling`."""
    made = "was replaced when its pod was" if servers == 1 else "was replaced when their pods were"
    return (
        f"; the image of {servers} {made} created, as by an admission webhook, which cannot be repeated in place: "
        f"{_are(servers)} replaced, and {'loses its keys' if servers == 1 else 'lose their keys'}"
    )


def of_former(servers: int) -> str:
    """Explain why so many servers cannot be changed in place, after the words of `in_place` or `rolling`."""
    return (
        f"; an earlier change that needs new pods has not reached {servers} yet: {_are(servers)} replaced, and "
        f"{'loses its keys' if servers == 1 else 'lose their keys'}"
    )


def instead_of_live(why: str) -> str:
    """Explain why servers are replaced for a change that could be made while they run, after the words of `rolling`."""
    return f"; their memory cannot be changed while they run, as {why}"


def live(before: str, after: str, servers: int) -> str:
    """Describe a change of memory of so many servers of a StatefulSet while they run.

    Args:
        before, after: as `labels.MEMORY_ANNOTATION` has it.
    """
    was, memory = memory_of(before), memory_of(after)
    if not servers:
        return "no server runs, so none is changed"
    if was is not None and memory is not None and was._replace(disk_from=memory.disk_from) == memory != was:
        return f"{_are(servers)} set to {memory} while they run, and no key is lost; if they cannot be, {_ONE_BY_ONE}"
    if was is None or memory is None or was.mib == memory.mib:
        return (
            f"{_are(servers)} given different memory resources while they run, and no key is lost; if they "
            f"cannot be, {_ONE_BY_ONE}"
        )
    resized = f"{_are(servers)} set to {memory.mib} MiB while they run"
    if memory.mib > was.mib:
        return f"{resized}, and no key is lost; if they cannot be, as where a node has no room, {_ONE_BY_ONE}"
    return (
        f"{resized}, and evict items that no longer fit; a full server frees little memory, so its node may refuse: "
        f"then {_ONE_BY_ONE}"
    )


def scaling(old: Spec, new: Spec) -> str:
    """Describe a change of the number of servers."""
    more = new.size - old.size
    if more > 0:
        return f"{_are(more)} added, without keys; clients look there for some of the keys that other servers have"
    if new.workload == "StatefulSet":
        return (
            f"{_are(-more)} removed from the list, from the highest ordinal, and deleted with {_its(-more)} keys "
            f"{new.drainPeriodSeconds} s later"
        )
    return f"{_are(-more)} deleted with {_its(-more)} keys"


def changing_workload(old: Spec, new: Spec) -> str:
    """Describe a change of the workload that runs the servers."""
    return (
        f"{_are(new.size)} created by a {new.workload}, without keys; once all are ready they become the list, and "
        f"those of the {old.workload} are deleted {new.drainPeriodSeconds} s later"
    )


def _are(servers: int) -> str:
    return "1 server is" if servers == 1 else f"{servers} servers are"


def _its(servers: int) -> str:
    return "its" if servers == 1 else "their"


def _at_a_time(spec: Spec) -> int:
    """Count the pods that a Deployment's controller replaces at once, by its own rules for shares."""
    most, surge = spec.rollout.maxUnavailable, spec.rollout.maxSurge
    unavailable = 1 if most is None else _count(most, spec.size, math.floor)
    return max(unavailable + _count(surge or 0, spec.size, math.ceil), 1)


def _count(given: int | str, servers: int, whole: Callable[[float], int]) -> int:
    if isinstance(given, int):
        return given
    return whole(int(given.removesuffix("%")) * servers / 100)


def _about(seconds: int) -> str:
    if seconds < 100:
        return f"about {seconds} s"
    if seconds < 100 * 60:
        return f"about {round(seconds / 60)} min"
    return f"about {round(seconds / 3600)} h"
