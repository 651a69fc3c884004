"""Pure: rules between the fields of a specification.

`RULES` are those that the API server keeps to as well, in CEL: a field that the schema has a default for is always
there. The functions below them have what CEL cannot say, each with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from pydantic import BaseModel

from memcached_operator.api.arguments import judge_arguments
from memcached_operator.api.complaints import shown
from memcached_operator.api.memcached_flags import CHUNK_KIB
from memcached_operator.api.names import CONTAINER, RESTART_CONTAINER
from memcached_operator.api.quantities import canonical, kibibytes, mebibytes, value, whole_bytes, whole_mebibytes
from memcached_operator.api.reserved_pod_fields import of_pod_template
from memcached_operator.api.sizing import least_volume_mib, memory_of_server_mib
from memcached_operator.api.v1alpha1 import QUANTITY_MAX, Model, Spec

_ONE_POD_MODE: Final = "ReadWriteOncePod"
# -c is how many files memcached may have open. Measured of 1.6.45 with 1, 2, 4, 8 and 64 threads: with so many it turns
# the first client away, with two less it ends at once. 1.6.18 keeps 4 for each thread.
_OWN: Final = 9
_OWN_OF_A_THREAD: Final = 5
# The file of a disk, and of a memory that outlives a restart.
_OWN_FILE: Final = 1
# The same with its proxy, which hands over.
_PROXY: Final = 16
_PROXY_OF_A_THREAD: Final = 7
# Connections to and from another server while they fill themselves from each other; measured with one to three.
_PEER_OF_A_THREAD: Final = 2


M = TypeVar("M", bound=Model)


class Rule(NamedTuple):
    """A rule over several fields.

    Attributes:
        field: the one that a message names, as a path below `spec`.
        message: what it must be.
        holds: whether a specification keeps to the rule.
        cel: the same for the API server, which has `spec` as `self`: one of these is true.
        reason: how the API server classes what breaks it.
    """

    field: str
    message: str
    holds: Callable[[Spec], bool]
    cel: tuple[str, ...]
    reason: str = "FieldValueInvalid"


def as_memcached_takes_it(spec: Spec) -> Spec:
    """A specification with its sizes rounded down: to whole Mi, Ki or bytes, and `maxItemSize` to a multiple of what
    memcached divides large items into, and to half of the memory.

    Of one that keeps to the rules. They are about sizes as they were written, which the API server sees, too.
    """
    memory = whole_mebibytes(spec.memory)
    scaling, extstore = spec.memoryScaling, spec.extstore
    return _with(
        spec,
        memory=memory,
        maxItemSize=canonical(f"{_item_kib(spec)}Ki"),
        memoryScaling=scaling and _with(scaling, max=whole_mebibytes(scaling.max)),
        extstore=extstore
        and _with(extstore, size=whole_mebibytes(extstore.size), itemSizeMin=whole_bytes(extstore.itemSizeMin)),
    )


def _with(part: M, **values: object) -> M:
    """A part of a specification with these values; fields that have them already count as before as left out."""
    changed = {name: new for name, new in values.items() if getattr(part, name) != new}
    return part.model_copy(update=changed) if changed else part


def _item_kib(spec: Spec) -> int:
    """KiB of the largest item that memcached takes; of a smaller one than it can divide, that."""
    kib = min(kibibytes(spec.maxItemSize), mebibytes(spec.memory) * 512)
    return kib - kib % judge_arguments(spec.extraArgs, spec.threads).item_step_kib(kib) or kib


def complaints(spec: Spec) -> list[str]:
    """Complaints of each rule that a specification breaks: the field, what it must be, and what it is."""
    broken = (each for each in RULES if not each.holds(spec))
    return [
        *(f"spec.{rule.field}: {rule.message}, got {shown(_at(spec, rule.field))}" for rule in broken),
        *_of_arguments(spec),
        *_of_extstore(spec),
        *_of_resources(spec),
        *of_pod_template(spec.podTemplate.given()),
    ]


def cel_rules() -> list[dict[str, Any]]:
    """The rules as `x-kubernetes-validations` of `spec`."""
    return [
        {
            "rule": " || ".join(rule.cel),
            "message": rule.message,
            "fieldPath": f".{rule.field}",
            "reason": rule.reason,
        }
        for rule in RULES
    ]


def _at(part: Any, path: str) -> object:
    for name in path.split("."):
        part = getattr(part, name)
    return part.model_dump(exclude_unset=True) if isinstance(part, BaseModel) else part


def own_connections(spec: Spec) -> int:
    """Connections of `spec.maxConnections` that memcached keeps for itself, and for other servers."""
    if spec.handover is None:
        return _OWN + _OWN_OF_A_THREAD * spec.threads + _OWN_FILE * ((spec.extstore is not None) + spec.warmRestart)
    return _PROXY + spec.threads * (_PROXY_OF_A_THREAD + _PEER_OF_A_THREAD * max(spec.size - 1, 0))


def _is_left_out(field: str, spec: Spec) -> bool:
    return getattr(spec.rollout, field) is None


def _replaces_none(spec: Spec) -> bool:
    """Report whether the pace of a Deployment's rolling update lets no server be replaced."""
    return spec.rollout.maxUnavailable in (0, "0%") and spec.rollout.maxSurge in (None, 0, "0%")


def _modes(spec: Spec) -> set[str]:
    claim = spec.extstore.volume.ephemeral if spec.extstore is not None else None
    return set(claim.accessModes) if claim is not None else set()


class _Condition(NamedTuple):
    """Condition on a specification, for the reader and in CEL."""

    holds: Callable[[Spec], bool]
    cel: str


_NAMED: Final = _Condition(lambda spec: spec.workload == "StatefulSet", "self.workload == 'StatefulSet'")
_NO_STATEFUL_SET: Final = _Condition(lambda spec: spec.workload != "StatefulSet", "self.workload != 'StatefulSet'")
_COLD: Final = _Condition(lambda spec: not spec.warmRestart, "!self.warmRestart")
_NO_SCALING: Final = _Condition(lambda spec: spec.memoryScaling is None, "!has(self.memoryScaling)")
_NO_EXTSTORE: Final = _Condition(lambda spec: spec.extstore is None, "!has(self.extstore)")
# May be null where server-side apply has taken its last field.
_NO_HANDOVER: Final = _Condition(lambda spec: spec.handover is None, "!has(self.handover) || self.handover == null")
_NO_TLS: Final = _Condition(lambda spec: spec.tls is None, "!has(self.tls)")
_NO_AUTH: Final = _Condition(lambda spec: spec.auth is None, "!has(self.auth)")


def _either(
    field: str, message: str, conditions: tuple[_Condition, _Condition], reason: str = "FieldValueForbidden"
) -> Rule:
    """A rule by which one of two conditions holds."""
    one, other = conditions
    return Rule(field, message, lambda spec: one.holds(spec) or other.holds(spec), (one.cel, other.cel), reason)


_EPHEMERAL: Final = "(has(self.extstore.volume.ephemeral) && self.extstore.volume.ephemeral != null)"
_EMPTY_DIR: Final = "(has(self.extstore.volume.emptyDir) && self.extstore.volume.emptyDir != null)"
_PEERS: Final = "(self.size > 1 ? self.size - 1 : 0)"


def _quantity(path: str) -> str:
    return f"quantity(string({path}))"


def _malformed(*paths: str) -> str:
    """Report whether the schema refuses a quantity, of which a rule could make no number: one error is enough."""
    return " || ".join(f"!isQuantity(string({path}))" for path in paths)


_ITEM: Final = _quantity("self.maxItemSize")
_MEMORY: Final = _quantity("self.memory")

RULES: Final = (
    _either(
        "service.type",
        "must be Headless when spec.workload is StatefulSet, as the DNS names of its servers come from the headless "
        "Service, or Disabled if you create that Service yourself",
        (
            _NO_STATEFUL_SET,
            _Condition(lambda spec: spec.service.type != "ClusterIP", "self.service.type != 'ClusterIP'"),
        ),
        "FieldValueInvalid",
    ),
    *(
        _either(
            f"rollout.{field}",
            "must be omitted when spec.workload is StatefulSet, whose servers are replaced one at a time",
            (_NO_STATEFUL_SET, _Condition(partial(_is_left_out, field), f"!has(self.rollout.{field})")),
        )
        for field in ("maxUnavailable", "maxSurge")
    ),
    Rule(
        "rollout.maxUnavailable",
        "must be 1 or more when spec.rollout.maxSurge is 0 or omitted, as no server could be replaced",
        lambda spec: spec.workload == "StatefulSet" or not _replaces_none(spec),
        (
            _NAMED.cel,
            "!has(self.rollout.maxUnavailable)",
            "!(self.rollout.maxUnavailable == 0 || self.rollout.maxUnavailable == '0%')",
            "(has(self.rollout.maxSurge) && !(self.rollout.maxSurge == 0 || self.rollout.maxSurge == '0%'))",
        ),
    ),
    _either(
        "warmRestart",
        "must be false or omitted unless spec.workload is StatefulSet, as a Deployment replaces pods to change them",
        (_COLD, _NAMED),
        "FieldValueInvalid",
    ),
    Rule(
        "maxItemSize",
        "must be at most half of spec.memory; lower it or raise the memory",
        lambda spec: 2 * value(spec.maxItemSize) <= value(spec.memory),
        (_malformed("self.maxItemSize", "self.memory"), f"{_ITEM}.add({_ITEM}).compareTo({_MEMORY}) <= 0"),
    ),
    Rule(
        "maxItemSize",
        f"must be at least {CHUNK_KIB}Ki, or N KiB with -o slab_chunk_max=N in spec.extraArgs",
        lambda spec: bool(spec.extraArgs) or kibibytes(spec.maxItemSize) >= CHUNK_KIB,
        (
            _malformed("self.maxItemSize"),
            "has(self.extraArgs) && size(self.extraArgs) > 0",
            f"{_ITEM}.compareTo(quantity('{CHUNK_KIB}Ki')) >= 0",
        ),
    ),
    _either(
        "memoryScaling",
        "must be omitted unless spec.workload is StatefulSet, as a Deployment replaces pods to change their memory",
        (_NO_SCALING, _NAMED),
    ),
    _either(
        "memoryScaling",
        "must be omitted when spec.warmRestart is true, as a memory file keeps its size",
        (_NO_SCALING, _COLD),
    ),
    Rule(
        "memoryScaling.max",
        "must be at least spec.memory",
        lambda spec: spec.memoryScaling is None or value(spec.memoryScaling.max) >= value(spec.memory),
        (
            _NO_SCALING.cel,
            _malformed("self.memoryScaling.max", "self.memory"),
            f"{_quantity('self.memoryScaling.max')}.compareTo({_MEMORY}) >= 0",
        ),
    ),
    Rule(
        "extstore.volume",
        "must contain either ephemeral or emptyDir",
        lambda spec: (
            spec.extstore is None or (spec.extstore.volume.ephemeral is None) != (spec.extstore.volume.emptyDir is None)
        ),
        (_NO_EXTSTORE.cel, f"{_EPHEMERAL} != {_EMPTY_DIR}"),
    ),
    Rule(
        "extstore.volume.ephemeral.accessModes",
        f"must be {_ONE_POD_MODE} alone, which excludes other modes, or not contain it",
        lambda spec: _ONE_POD_MODE not in _modes(spec) or len(_modes(spec)) == 1,
        (
            _NO_EXTSTORE.cel,
            f"!{_EPHEMERAL}",
            f"!('{_ONE_POD_MODE}' in self.extstore.volume.ephemeral.accessModes)",
            f"self.extstore.volume.ephemeral.accessModes.all(each, each == '{_ONE_POD_MODE}')",
        ),
    ),
    _either(
        "extstore",
        "must be omitted when spec.warmRestart is true, as a memcached with a disk restores no items",
        (_NO_EXTSTORE, _COLD),
    ),
    Rule(
        "extstore.itemSizeMin",
        "must be less than spec.maxItemSize, as no item would be moved to the disk",
        lambda spec: spec.extstore is None or value(spec.extstore.itemSizeMin) < value(spec.maxItemSize),
        (
            _NO_EXTSTORE.cel,
            _malformed("self.extstore.itemSizeMin", "self.maxItemSize"),
            f"{_quantity('self.extstore.itemSizeMin')}.compareTo({_ITEM}) < 0",
        ),
    ),
    _either(
        "handover",
        "must be omitted unless spec.workload is StatefulSet, as the list of a Deployment changes with each of its "
        "pods",
        (_NO_HANDOVER, _NAMED),
    ),
    _either(
        "handover",
        "must be omitted when spec.tls is set, as memcached's proxy does not verify the servers that it queries",
        (_NO_HANDOVER, _NO_TLS),
    ),
    _either(
        "handover",
        "must be omitted when spec.auth is set, as memcached has no passwords with its proxy",
        (_NO_HANDOVER, _NO_AUTH),
    ),
    _either(
        "handover",
        "must be omitted when spec.warmRestart is true, as a server that restarts with its items has values that other "
        "servers have replaced meanwhile",
        (_NO_HANDOVER, _COLD),
    ),
    _either(
        "handover",
        "must be omitted when spec.extstore is set, as memcached sets the time of last use when it moves a value to "
        "the disk: outdated values could not be distinguished from used ones",
        (_NO_HANDOVER, _NO_EXTSTORE),
    ),
    Rule(
        "discovery.autoDiscovery.inServers",
        "must be false or omitted when spec.handover is set, as memcached's proxy closes the connection of a client "
        "that asks a server for the list, and the client does not read the item",
        lambda spec: spec.handover is None or not spec.lists_in_servers,
        (
            _NO_HANDOVER.cel,
            "!has(self.discovery) || self.discovery == null",
            "!has(self.discovery.autoDiscovery) || self.discovery.autoDiscovery == null",
            "!self.discovery.autoDiscovery.inServers",
        ),
    ),
    Rule(
        "maxConnections",
        f"must be more than {_OWN} + {_OWN_OF_A_THREAD} * spec.threads, which memcached keeps for itself, and "
        f"{_OWN_FILE} more with spec.extstore or spec.warmRestart; with spec.handover more than {_PROXY} + "
        f"{_PROXY_OF_A_THREAD} * spec.threads + {_PEER_OF_A_THREAD} * spec.threads * (spec.size - 1)",
        lambda spec: spec.maxConnections > own_connections(spec),
        (
            f"self.maxConnections > ({_NO_HANDOVER.cel} ? {_OWN} + {_OWN_OF_A_THREAD} * self.threads + "
            f"(has(self.extstore) ? {_OWN_FILE} : 0) + (self.warmRestart ? {_OWN_FILE} : 0) : "
            f"{_PROXY} + self.threads * ({_PROXY_OF_A_THREAD} + {_PEER_OF_A_THREAD} * {_PEERS}))",
        ),
    ),
)


def _of_arguments(spec: Spec) -> Iterator[str]:
    """CEL cannot read memcached's arguments, whose letters may be joined and whose names may be cut short."""
    arguments, got = judge_arguments(spec.extraArgs, spec.threads), shown(spec.extraArgs)
    item_kib = kibibytes(spec.maxItemSize)
    if spec.extraArgs and item_kib < (step_kib := arguments.item_step_kib(item_kib)):
        yield f"spec.maxItemSize: must be at least {step_kib}Ki with spec.extraArgs, got {shown(spec.maxItemSize)}"
    yield from arguments.complaints
    if spec.memoryScaling is not None and "-M" in arguments.last:
        yield (
            "spec.extraArgs: must not contain -M with spec.memoryScaling, which follows what is evicted; omit one of "
            f"them, got {got}"
        )
    if spec.handover is not None and (against := arguments.against_handover):
        yield (
            f"spec.extraArgs: must not contain {' and '.join(sorted(against))} with spec.handover, which needs CAS "
            f"numbers, the list of keys and evictions; omit it, got {got}"
        )
    if spec.auth is not None and arguments.last.get("-B") == "auto":
        yield (
            "spec.extraArgs: must not set -B to auto with spec.auth, whose passwords work with the text protocol "
            'only; omit it, got "auto"'
        )
    # The schema passes podTemplate on as it is: CEL sees nothing of it.
    if spec.memoryScaling is not None and spec.podTemplate.restarts_for_memory:
        yield (
            f"spec.podTemplate.spec.containers[{CONTAINER}].resizePolicy: must not be {RESTART_CONTAINER} for memory "
            "with spec.memoryScaling, whose steps would empty the servers; omit one of them, got "
            f"{shown(RESTART_CONTAINER)}"
        )


def _of_extstore(spec: Spec) -> Iterator[str]:
    """CEL has no powers of two, in which a disk is divided, and does not know what an item is rounded to."""
    extstore, item_kib = spec.extstore, _item_kib(spec)
    if extstore is None:
        return
    if item_kib * 1024 <= value(extstore.itemSizeMin) < value(spec.maxItemSize):
        yield (
            f"spec.extstore.itemSizeMin: must be less than {item_kib}Ki, to which memcached rounds spec.maxItemSize "
            f"{spec.maxItemSize}; lower it or raise that field, got {shown(extstore.itemSizeMin)}"
        )
    if mebibytes(extstore.size) < (least := least_volume_mib(item_kib)):
        yield (
            f"spec.extstore.size: must be at least {least}Mi with spec.maxItemSize {spec.maxItemSize}; raise it or "
            f"lower that field, got {shown(extstore.size)}"
        )
    limit = spec.resources.limits.get("ephemeral-storage")
    if extstore.volume.emptyDir is not None and limit is not None and value(limit) < value(extstore.size):
        yield (
            f"spec.resources.limits.ephemeral-storage: must be at least spec.extstore.size {extstore.size}, as a pod "
            f"that uses more is evicted, got {shown(limit)}"
        )


def _of_resources(spec: Spec) -> Iterator[str]:
    """CEL has no names in its messages, and no formula of the memory that a server takes."""
    for kind, quantities in (("requests", spec.resources.requests), ("limits", spec.resources.limits)):
        for name, quantity in quantities.items():
            if value(quantity) > QUANTITY_MAX:
                yield f"spec.resources.{kind}[{name}]: must be at most {QUANTITY_MAX}, got {shown(quantity)}"
    if (limit := spec.resources.limits.get("memory")) is not None:
        # Of servers whose memory grows the limit does not.
        field, memory = ("memory", spec.memory)
        if spec.memoryScaling is not None:
            field, memory = ("memoryScaling.max", spec.memoryScaling.max)
        needed = memory_of_server_mib(spec.model_copy(update={"memory": memory}))
        if value(limit) < needed * 2**20:
            yield (
                f"spec.resources.limits.memory: must be at least {needed}Mi, which a server needs with spec.{field} "
                f"{memory}, spec.maxConnections {spec.maxConnections}{' by TLS' if spec.tls else ''} and "
                f"spec.threads {spec.threads}{' and a disk' if spec.extstore else ''}"
                f"{' and to hand over' if spec.handover else ''}; raise the limit or lower these "
                f"fields, got {shown(limit)}"
            )
    for name, most in spec.resources.limits.items():
        requested = spec.resources.requests.get(name)
        if requested is not None and value(requested) > value(most):
            yield (
                f"spec.resources.requests[{name}]: must be at most spec.resources.limits[{name}], {most}, "
                f"got {shown(requested)}"
            )
