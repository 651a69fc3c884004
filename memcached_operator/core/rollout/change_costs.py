"""Pure: costs of the differences between two specifications, and the messages on them.

What a difference costs is read off the templates that the operator would make of both: by their annotations it is
decided, too, whether servers are replaced or changed while they run. So the costs are those of what is done.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

from memcached_operator.api.names import USER_ID
from memcached_operator.api.quantities import mebibytes
from memcached_operator.api.reserved_pod_fields import Keys, keyed
from memcached_operator.api.v1alpha1 import Spec, Workload
from memcached_operator.core.objects.applied_spec import json_of, spec_of
from memcached_operator.core.objects.labels import RESTART_ANNOTATION
from memcached_operator.core.objects.memory_annotation import memory_of
from memcached_operator.core.objects.passed_options import unequal
from memcached_operator.core.objects.pod_template import SLEEP_S, fingerprint, template
from memcached_operator.core.objects.pod_template_overlay import merged
from memcached_operator.core.objects.workload_types import PodTemplateSpec
from memcached_operator.core.rollout.in_place_restart import are_alike
from memcached_operator.servers.transport import NO_CREDENTIALS, Transport, transport
from operator_runtime import Difference, Entry

NO_RESIZE: Final = "this cluster cannot resize pods in place (Kubernetes 1.33 and newer can)"
RESTARTS: Final = "the resizePolicy of the container memcached is RestartContainer for memory"
"""A resize would have the node start the container again, without its keys."""


class Means(NamedTuple):
    """Means for a resize, on the operator's and on the cluster's side; None where that is not known."""

    credentials: bool | None = None
    resizes: bool | None = None


def why_not_live(transport: Transport, means: Means, *, restarts: str = "", unreachable: str = "") -> str:
    """Explain why servers cannot be given other memory while they run, in words after "as"; "" where nothing is known.

    Args:
        restarts: why a resize would have their containers start again, "" where it would not, as far as is known.
        unreachable: why no server could be connected to, "" where some could, or none was queried.
    """
    if means.resizes is False:
        return NO_RESIZE
    if restarts:
        return restarts
    if means.credentials is False and transport.client_certificate:
        return f"the servers require a client certificate, and {NO_CREDENTIALS}"
    if means.credentials is False and transport.passwords:
        return f"the servers require a password, and {NO_CREDENTIALS}"
    return f"the operator cannot connect to the servers ({unreachable})" if unreachable else ""


class Cost(Enum):
    """Cost of a difference, the dearest first."""

    MOVING = "moving"
    """All servers are made anew, by another kind of workload."""
    ROLLING = "rolling"
    """Servers are replaced."""
    SCALING = "scaling"
    """Servers come or go."""
    IN_PLACE = "in-place"
    """Servers start again in their pods, with their items."""
    LIVE = "live"
    """Servers get other memory while they run."""
    AUXILIARY = "auxiliary"
    """Nothing of the servers changes."""


class CostedChange(NamedTuple):
    """The differences of one cost.

    Attributes:
        fields: of the specification; one that was left out has its default.
        words: what is done about them, and about how long it takes.
    """

    cost: Cost
    fields: tuple[Difference, ...]
    words: str

    def __str__(self) -> str:
        return f"{self.cost.value}: {', '.join(each.path for each in self.fields)}: {self.words}"


class Basis(NamedTuple):
    """Basis of a decision besides the specification: the operator's settings and its cluster."""

    image: str
    user_id: int | None = USER_ID
    means: Means = Means()

    def template(self, spec: Spec, restart: str = "") -> PodTemplateSpec:
        return template("", spec.image or self.image, self.user_id, spec, restart).template

    def why_not_live(self, spec: Spec) -> str:
        restarts = RESTARTS if spec.podTemplate.restarts_for_memory else ""
        return why_not_live(transport(spec.tls, spec.auth), self.means, restarts=restarts)


def changes(old: Spec, new: Spec, basis: Basis, restart: Difference | None = None) -> tuple[CostedChange, ...]:
    """List the costs of giving a Memcached of that specification another one, the dearest first.

    Args:
        restart: what requests that each server starts again, None where nothing does; see `restart_requested`.
    """
    found: dict[Cost, list[Difference]] = {}
    total = _effect(old, new, basis, "" if restart is None else str(restart.desired))
    before, spec = json_of(old), old
    for each in differing(old, new):
        after = merged(before, [(_in_spec(each), each.desired)])
        cost = Cost.MOVING if each.path == "spec.workload" else _effect(spec, spec_of(after), basis)
        found.setdefault(_in_all(cost, total, old, new), []).append(each)
        before, spec = after, spec_of(after)
    if restart is not None:
        found.setdefault(_in_all(total, total, old, new), []).append(restart)
    return tuple(
        CostedChange(cost, tuple(found[cost]), _in_words(cost, old, new, basis)) for cost in Cost if cost in found
    )


def _in_spec(difference: Difference) -> Keys:
    """The place of a difference in a specification that is `keyed`."""
    return tuple(str(step.key if isinstance(step, Entry) else step) for step in difference.steps[1:])


def differing(old: Spec, new: Spec) -> list[Difference]:
    """The fields in which two specifications differ; one that was left out has its default."""
    return [*unequal(keyed(json_of(new)), keyed(json_of(old)), ("spec",))]


def restart_requested(old: str | None, new: str | None) -> Difference | None:
    """Find whether a restart of each server is requested anew, by the texts that request one."""
    return Difference(("metadata", "annotations", RESTART_ANNOTATION), new, old) if new != old else None


def cost_of(old: PodTemplateSpec, new: PodTemplateSpec, workload: Workload, why_not_live: str) -> Cost | None:
    """Return the cost of giving servers another template; None where it does not concern them.

    Args:
        why_not_live: they cannot be given memory while they run; "" where they can, as far as is known.
    """
    before, after = fingerprint(old), fingerprint(new)
    if after.template_hash != before.template_hash:
        return Cost.IN_PLACE if are_alike(old, new) else Cost.ROLLING
    if after.memory != before.memory:
        return Cost.ROLLING if workload == "Deployment" or why_not_live else Cost.LIVE
    return None


def _effect(old: Spec, new: Spec, basis: Basis, restart: str = "") -> Cost:
    cost = cost_of(basis.template(old), basis.template(new, restart), new.workload, basis.why_not_live(new))
    return cost or (Cost.SCALING if old.size != new.size else Cost.AUXILIARY)


def _in_all(cost: Cost, total: Cost, old: Spec, new: Spec) -> Cost:
    """Return the cost of a difference among the others."""
    if cost not in (paced := (Cost.ROLLING, Cost.IN_PLACE, Cost.LIVE)):
        return cost
    if old.workload != new.workload:
        return Cost.MOVING  # the new servers are made so
    # All differences are made at the highest cost among them, as a new pod has its new memory, too. Two differences can
    # also cancel each other out, as where one raises what the other lowers.
    return total if total in paced else Cost.AUXILIARY


def _in_words(cost: Cost, old: Spec, new: Spec, basis: Basis) -> str:
    servers = min(old.size, new.size)
    before, after = (fingerprint(basis.template(each)) for each in (old, new))
    match cost:
        case Cost.MOVING:
            return changing_workload(old, new)
        case Cost.ROLLING:
            memory_alone = before.template_hash == after.template_hash and before.memory != after.memory
            why = basis.why_not_live(new) if memory_alone and new.workload == "StatefulSet" else ""
            return rolling(new, servers, moves=old.moves) + (instead_of_live(why) if why else "")
        case Cost.SCALING:
            return scaling(old, new)
        case Cost.IN_PLACE:
            return in_place(new, servers)
        case Cost.LIVE:
            known = basis.means.resizes is not None or not servers
            return live(before.memory, after.memory, servers) + ("" if known else BEFORE_RESIZE)
        case Cost.AUXILIARY:
            return NO_SERVER_AFFECTED


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
