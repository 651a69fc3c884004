"""What an operator asked of the API server, counted from the audit log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from lab.audit import AuditEvent

_READS = frozenset({"get", "list", "watch"})


def count(events: Iterable[AuditEvent]) -> dict[str, int]:
    """Number of requests by "verb resource[/subresource] code", the most frequent first."""
    counted = Counter(f"{event.verb} {_target(event)} {event.code}" for event in events)
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))


def creates(events: Iterable[AuditEvent]) -> int:
    """Deployments that came to be: answered 201, whether by POST or by an apply of what was not there."""
    return sum(event.code == 201 and _target(event) == "deployments" for event in events)


def status_writes(events: Iterable[AuditEvent]) -> int:
    """Writes of a Memcached's status that the API server took."""
    return sum(
        _is_write(event) and _target(event) == "memcacheds/status" and 200 <= event.code < 300 for event in events
    )


def writes(events: Iterable[AuditEvent]) -> int:
    """Requests that would change something, whatever came of them."""
    return sum(_is_write(event) for event in events)


def watched(events: Iterable[AuditEvent]) -> set[str]:
    """The resources that a watch was opened for."""
    return {event.resource for event in events if event.verb == "watch" and event.code == 200}


def _is_write(event: AuditEvent) -> bool:
    # Discovery and the like name no resource; some of them are POSTs that change nothing.
    return event.verb not in _READS and event.resource != ""


def _target(event: AuditEvent) -> str:
    if not event.resource:
        return event.uri.split("?", 1)[0]
    return f"{event.resource}/{event.subresource}" if event.subresource else event.resource
