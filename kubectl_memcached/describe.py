"""`list`, `describe` and `slabs`: Memcacheds as the API server has them, and what their servers report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import Any, Final

from msgspec.structs import asdict, astuple

from kubectl_memcached.cluster import NoServers, Results, UserCluster
from kubectl_memcached.objects import ServerPod, ShownMemcached
from kubectl_memcached.server import ServerConnection
from kubectl_memcached.words import (
    CommandOutput,
    count_text,
    seconds_text,
    share_text,
    size_text,
    table,
)
from memcached_operator.servers.stats_answer import StatsAnswer

_FIGURES: Final = (
    *("uptime", "curr_connections", "max_connections", "rejected_connections", "get_hits", "get_misses", "cmd_set"),
    *("bytes", "limit_maxbytes", "curr_items", "evictions"),
)
# What `slabs` calls them, by what `stats slabs` and `stats items` do.
_OF_CLASS: Final = {
    **{"chunkBytes": "chunk_size", "pages": "total_pages"},
    **{"chunks": "total_chunks", "usedChunks": "used_chunks"},
}
_OF_ITEMS: Final = {
    **{"items": "items", "requestedBytes": "mem_requested", "evicted": "evicted"},
    **{"evictedSeconds": "evicted_time", "outOfMemory": "outofmemory"},
}


async def list_memcacheds(cluster: UserCluster, *, everywhere: bool) -> CommandOutput:
    """List the Memcacheds of a namespace, or of all."""
    found = await cluster.memcacheds(everywhere=everywhere)
    if not found:
        where = "" if everywhere else f" in {cluster.namespace}; -A shows those of all namespaces"
        return CommandOutput(f"no Memcached{where}\n", {"memcacheds": []})
    rows = []
    for each in found:
        status, place = each.status, (each.namespace,) if everywhere else ()
        notable = ", ".join(f"{one.type}={one.status} ({one.reason})" for one in status.notable)
        ready = f"{status.readyReplicas}/{each.spec.size}"
        seen = (status.version, status.memory, str(status.handover))
        rows.append((*place, each.name, ready, *(one or "-" for one in seen), notable))
    columns = ("NAME", "READY", "VERSION", "MEMORY", "HAND-OVER", "CONDITIONS TO READ")
    text = table((("NAMESPACE", *columns) if everywhere else columns), rows)
    return CommandOutput(text, {"memcacheds": [_document(each) for each in found]})


def _document(memcached: ShownMemcached) -> dict[str, Any]:
    status = memcached.status
    return {
        **{"namespace": memcached.namespace, "name": memcached.name, "size": memcached.spec.size},
        **{"ready": status.readyReplicas, "version": status.version or None, "memory": status.memory or None},
        **{"handover": str(status.handover) or None, "serverList": status.serverList},
        "conditions": [asdict(each) for each in status.conditions],
    }


async def describe_memcached(cluster: UserCluster, memcached: ShownMemcached) -> CommandOutput:
    """One Memcached, with what each server reports now."""
    try:
        results = await cluster.each(memcached, lambda _, connection: connection.stats())
    except NoServers as error:
        results = Results({}, {memcached.name: str(error)})
    rows, servers = [], []
    for name, answer in results.found.items():
        number = answer.number
        hits, misses = number("get_hits"), number("get_misses")
        rows.append(
            (
                *(name, answer.version or "-"),
                f"{size_text(number('bytes'))} of {size_text(number('limit_maxbytes'))}",
                *(count_text(number("curr_items")), share_text(hits, hits + misses), count_text(number("evictions"))),
                seconds_text(retention_s(answer)) if number("evictions") else "all",
                f"{count_text(number('curr_connections'))} of {count_text(number('max_connections'))}",
                seconds_text(number("uptime")),
            )
        )
        figures = {figure: _figure(number(figure)) for figure in _FIGURES}
        retained = {"retentionSeconds": _figure(retention_s(answer))}
        servers.append({"server": name, "version": answer.version, **figures, **retained})
    status = memcached.status
    head = [
        ("Name:", memcached.name),
        ("Namespace:", memcached.namespace),
        ("Servers:", f"{status.readyReplicas} of {memcached.spec.size} ready"),
        ("List:", ", ".join(status.serverList) or "none yet"),
        ("Hand-over:", str(status.handover) or "none"),
    ]
    columns = ("SERVER", "VERSION", "MEMORY", "ITEMS", "HIT RATIO", "EVICTIONS", "RETENTION", "CONNECTIONS", "UPTIME")
    text = "".join(f"{name:<12}{value}\n" for name, value in head)
    text += "\n" + table(("CONDITION", "STATUS", "REASON", "MESSAGE"), map(astuple, status.conditions))
    text += "\n" + (table(columns, rows) if rows else "")
    return CommandOutput(text, _document(memcached) | {"servers": servers}).with_failures(results.failures)


def retention_s(answer: StatsAnswer) -> float:
    """Seconds for which the size class that evicts soonest kept an item that nobody used; NaN without evictions."""
    return min((each.evicted_time for each in answer.size_classes() if each.evicted > 0), default=nan)


def _figure(number: float) -> int | None:
    return None if isnan(number) else int(number)


async def slabs(cluster: UserCluster, memcached: ShownMemcached) -> CommandOutput:
    """Size classes of each server: where its memory is, and where it is short."""

    async def both(_pod: ServerPod, connection: ServerConnection) -> tuple[Mapping[bytes, bytes], StatsAnswer]:
        return await connection.stats_lines("slabs"), await connection.stats()

    results = await cluster.each(memcached, both)
    text, servers = "", []
    for name, answer in results.found.items():
        classes = size_classes(*answer)
        rows = [
            (
                *(str(each["class"]), size_text(each["chunkBytes"]), count_text(each["pages"])),
                *(count_text(each["items"]), share_text(each["usedChunks"], each["chunks"])),
                share_text(each["requestedBytes"], each["usedChunks"] * each["chunkBytes"]),
                *(count_text(each["evicted"]), seconds_text(each["evictedSeconds"] if each["evicted"] else nan)),
                count_text(each["outOfMemory"]),
            )
            for each in classes
        ]
        columns = ("CLASS", "CHUNK", "PAGES", "ITEMS", "CHUNKS USED", "BYTES USED", "EVICTED", "RETENTION", "NO MEMORY")
        text += f"{name}\n" + (table(columns, rows) if rows else "no items so far\n") + "\n"
        servers.append({"server": name, "classes": classes})
    return CommandOutput(text.removesuffix("\n"), {"servers": servers}).with_failures(results.failures)


def size_classes(slabs: Mapping[bytes, bytes], answer: StatsAnswer) -> Sequence[dict[str, Any]]:
    """Figures of the size classes that have pages, by `stats slabs` and `stats items`."""
    items = {each.number: each for each in answer.size_classes()}
    found: list[dict[str, Any]] = []
    for number in range(1, 64):
        figures = {name: int(slabs.get(f"{number}:{field}".encode(), b"0")) for name, field in _OF_CLASS.items()}
        if figures["pages"]:
            each = items.get(number)
            of_items = {name: _figure(getattr(each, field, nan)) or 0 for name, field in _OF_ITEMS.items()}
            found.append({"class": number, **figures, **of_items})
    return found
