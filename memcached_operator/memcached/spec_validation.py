"""Reads the specification of a Memcached, and validates it: first field by field, then over several of them.

The models in `api` are what decides. But pydantic costs 13 MiB of resident memory, a quarter of the whole operator, and
the API server has nearly always checked a specification before it comes here. So a strict decoder that accepts nothing
that the models refuse reads the good ones; only for one that it does not accept are the models loaded, to say in words
what is wrong. A property test holds the two together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import msgspec

from memcached_operator.api.arguments import judge_remembered
from memcached_operator.api.disk_layout import least_volume_mib
from memcached_operator.api.memcached_flags import CHUNK_KIB
from memcached_operator.api.names import (
    CONTAINER,
    EXTSTORE_MODES,
    EXTSTORE_VOLUME,
    EXTSTORE_WARM,
    FILE_CONNECTIONS,
    HANDOVER_AUTH,
    HANDOVER_EXTSTORE,
    HANDOVER_TLS,
    HANDOVER_WARM,
    HANDOVER_WORKLOAD,
    ONE_POD_MODE,
    OWN_CONNECTIONS,
    OWN_CONNECTIONS_OF_A_THREAD,
    PEER_CONNECTIONS_OF_A_THREAD,
    PROXY_CONNECTIONS,
    PROXY_CONNECTIONS_OF_A_THREAD,
    QUANTITY_MAX,
    RESTART_CONTAINER,
    SCALING_WARM,
    SCALING_WORKLOAD,
    WARM_WORKLOAD,
    InvalidSpec,
    joined_complaints,
    shown,
)
from memcached_operator.api.quantities import canonical, kibibytes, mebibytes, value
from memcached_operator.api.reserved_pod_fields import of_pod_template
from memcached_operator.memcached.spec import Spec, memory_of_server_mib, restarts_for_memory
from operator_runtime import UNDECODABLE, shallow

# More levels than so many have no place in a pod, and at some hundreds what writes them into one has no stack left.
_LEVELS = 100
# A team's Memcacheds are mostly written alike. 200 different specifications take some 300 KiB.
_REMEMBERED: Final = 200

_decode = msgspec.json.Decoder(Spec).decode


@lru_cache(_REMEMBERED)
def read_spec(raw: bytes) -> Spec:
    """Read the JSON of `spec`, b"" where there is none.

    Raises:
        InvalidSpec: a field has the wrong type or is out of its limits, or two contradict each other; names each, what
            it holds, and the remedy.
    """
    if not raw:
        return Spec()
    if raw.count(b"{") + raw.count(b"[") > _LEVELS:
        raw = shallow(raw, _LEVELS)
    try:
        spec = _decode(raw)
    except UNDECODABLE:
        from memcached_operator.api.v1alpha1 import validate_spec

        # To the models null is as good as no field.
        spec = msgspec.convert(validate_spec(raw).model_dump(by_alias=True, exclude_none=True), Spec)
    refuse_contradictions(spec)
    return spec


def refuse_contradictions(spec: Spec) -> None:
    """Hold fields that are right by themselves to the rules over several of them.

    Raises:
        InvalidSpec: names each field that breaks one, what it must be, and what it is.
    """
    settings = _of_settings(spec.memory, spec.threads, spec.maxItemSize, spec.extraArgs)
    pods = of_pod_template(spec.podTemplate.given())
    if complaints := [
        *_of_workload(spec),
        *settings,
        *_of_scaling(spec),
        *_of_extstore(spec),
        *_of_handover(spec),
        *_of_auth(spec),
        *_of_connections(spec),
        *_of_resources(spec),
        *pods,
    ]:
        raise InvalidSpec(joined_complaints(complaints))


def _of_workload(spec: Spec) -> Iterator[str]:
    pace = {"maxUnavailable": spec.rollout.maxUnavailable, "maxSurge": spec.rollout.maxSurge}
    if spec.workload == "StatefulSet":
        if spec.service.type == "ClusterIP":
            yield (
                "spec.service.type: must be Headless when spec.workload is StatefulSet, as the DNS names of its "
                "servers come from the headless Service, or Disabled if you create that Service yourself, got "
                f"{json.dumps(spec.service.type)}"
            )
        for name, given in pace.items():
            if given is not None:
                yield (
                    f"spec.rollout.{name}: must be omitted when spec.workload is StatefulSet, whose servers are "
                    f"replaced one at a time, got {shown(given)}"
                )
    elif spec.rollout.maxUnavailable in (0, "0%") and spec.rollout.maxSurge in (None, 0, "0%"):
        yield (
            "spec.rollout.maxUnavailable: must be 1 or more when spec.rollout.maxSurge is 0 or omitted, as no server "
            f"could be replaced, got {shown(spec.rollout.maxUnavailable)}"
        )
    if spec.warmRestart and spec.workload != "StatefulSet":
        yield f"spec.warmRestart: {WARM_WORKLOAD}, got true"


@lru_cache(maxsize=64)
def _of_settings(memory: str, threads: int, item_size: str, extra_args: tuple[str, ...]) -> tuple[str, ...]:
    item_kib, half_kib = kibibytes(item_size), kibibytes(memory) // 2
    arguments = judge_remembered(extra_args, threads)
    complaints = []
    if item_kib > half_kib:
        complaints.append(
            f"spec.maxItemSize: must be at most {canonical(f'{half_kib}Ki')}, half of spec.memory {memory}; "
            f"lower it or raise the memory, got {shown(item_size)}"
        )
    if item_kib % (step_kib := arguments.item_step_kib(item_kib)):
        chosen = "or of N KiB with -o slab_chunk_max=N in" if step_kib == CHUNK_KIB else "by"
        complaints.append(
            f"spec.maxItemSize: must be a multiple of {step_kib}Ki, {chosen} spec.extraArgs, got {shown(item_size)}"
        )
    return (*complaints, *arguments.complaints)


def _of_scaling(spec: Spec) -> Iterator[str]:
    scaling = spec.memoryScaling
    if scaling is None:
        return
    got = shown(msgspec.to_builtins(scaling))
    if spec.workload != "StatefulSet":
        yield f"spec.memoryScaling: {SCALING_WORKLOAD}, got {got}"
    if spec.warmRestart:
        yield f"spec.memoryScaling: {SCALING_WARM}, got {got}"
    if not judge_remembered(spec.extraArgs, spec.threads).evicts:
        yield (
            "spec.extraArgs: must not contain -M with spec.memoryScaling, which follows what is evicted; omit one of "
            f"them, got {shown(list(spec.extraArgs))}"
        )
    if restarts_for_memory(spec):
        yield (
            f"spec.podTemplate.spec.containers[{CONTAINER}].resizePolicy: must not be {RESTART_CONTAINER} for memory "
            "with spec.memoryScaling, whose steps would empty the servers; omit one of them, got "
            f"{shown(RESTART_CONTAINER)}"
        )
    if mebibytes(scaling.max) < mebibytes(spec.memory):
        yield (
            f"spec.memoryScaling.max: must be at least spec.memory, {spec.memory}, which is the least, got "
            f"{shown(scaling.max)}"
        )


def _of_extstore(spec: Spec) -> Iterator[str]:
    extstore, item_kib = spec.extstore, kibibytes(spec.maxItemSize)
    if extstore is None:
        return
    if (extstore.volume.ephemeral is None) == (extstore.volume.emptyDir is None):
        got = shown(msgspec.to_builtins(extstore.volume))
        yield f"spec.extstore.volume: {EXTSTORE_VOLUME}, got {got}"
    modes = extstore.volume.ephemeral.accessModes if extstore.volume.ephemeral is not None else ()
    if ONE_POD_MODE in modes and len(set(modes)) > 1:
        yield f"spec.extstore.volume.ephemeral.accessModes: {EXTSTORE_MODES}, got {shown(list(modes))}"
    if spec.warmRestart:
        yield f"spec.extstore: {EXTSTORE_WARM}, got {shown(msgspec.to_builtins(extstore))}"
    if mebibytes(extstore.size) < (least := least_volume_mib(item_kib)):
        yield (
            f"spec.extstore.size: must be at least {least}Mi with spec.maxItemSize {spec.maxItemSize}; raise it or "
            f"lower that field, got {shown(extstore.size)}"
        )
    if extstore.itemSizeMin >= item_kib * 1024:
        yield (
            f"spec.extstore.itemSizeMin: must be less than the {item_kib * 1024} bytes of spec.maxItemSize "
            f"{spec.maxItemSize}, as no item would be moved to the disk, got {extstore.itemSizeMin}"
        )
    limit = spec.resources.limits.get("ephemeral-storage")
    if extstore.volume.emptyDir is not None and limit is not None and value(limit) < value(extstore.size):
        yield (
            f"spec.resources.limits.ephemeral-storage: must be at least spec.extstore.size {extstore.size}, as a pod "
            f"that uses more is evicted, got {shown(limit)}"
        )


def _of_handover(spec: Spec) -> Iterator[str]:
    if spec.handover is None:
        return
    broken = (
        (spec.workload != "StatefulSet", HANDOVER_WORKLOAD),
        (spec.tls is not None, HANDOVER_TLS),
        (spec.auth is not None, HANDOVER_AUTH),
        (spec.warmRestart, HANDOVER_WARM),
        (spec.extstore is not None, HANDOVER_EXTSTORE),
    )
    for breaks, rule in broken:
        if breaks:
            yield f"spec.handover: {rule}, got {shown(msgspec.to_builtins(spec.handover))}"
    if against := judge_remembered(spec.extraArgs, spec.threads).against_handover:
        yield (
            f"spec.extraArgs: must not contain {' and '.join(sorted(against))} with spec.handover, which needs CAS "
            f"numbers, the list of keys and evictions; omit it, got {shown(list(spec.extraArgs))}"
        )


def _of_auth(spec: Spec) -> Iterator[str]:
    if spec.auth is not None and judge_remembered(spec.extraArgs, spec.threads).protocol == "auto":
        yield (
            "spec.extraArgs: must not set -B to auto with spec.auth, whose passwords work with the text protocol "
            'only; omit it, got "auto"'
        )


def _of_connections(spec: Spec) -> Iterator[str]:
    threads, why = spec.threads, ""
    if spec.handover is not None:
        peers = max(spec.size - 1, 0)
        of_a_thread = PROXY_CONNECTIONS_OF_A_THREAD + PEER_CONNECTIONS_OF_A_THREAD * peers
        own, why = PROXY_CONNECTIONS + of_a_thread * threads, f" and to hand over between spec.size {spec.size} servers"
    else:
        files = FILE_CONNECTIONS * ((spec.extstore is not None) + spec.warmRestart)
        own = OWN_CONNECTIONS + OWN_CONNECTIONS_OF_A_THREAD * threads + files
    if spec.maxConnections <= own:
        yield (
            f"spec.maxConnections: must be more than {own}, which memcached keeps for itself with spec.threads "
            f"{threads}{why}, got {spec.maxConnections}"
        )


def _of_resources(spec: Spec) -> Iterator[str]:
    for kind, quantities in (("requests", spec.resources.requests), ("limits", spec.resources.limits)):
        for name, quantity in quantities.items():
            if value(quantity) > QUANTITY_MAX:
                yield f"spec.resources.{kind}[{name}]: must be at most {QUANTITY_MAX}, got {shown(quantity)}"
    if (limit := spec.resources.limits.get("memory")) is not None:
        # Of servers whose memory grows the limit does not.
        field, memory = ("memory", spec.memory)
        if spec.memoryScaling is not None:
            field, memory = ("memoryScaling.max", spec.memoryScaling.max)
        needed = memory_of_server_mib(msgspec.structs.replace(spec, memory=memory))
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
