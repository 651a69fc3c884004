"""The API server's audit log: what to write into it, and what it says."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# The control plane's own requests, which would drown those of a client under test.
_CONTROL_PLANE_USERS = ("system:apiserver", "system:kube-controller-manager", "system:kube-scheduler")
_CONTROL_PLANE_GROUPS = ("system:serviceaccounts:kube-system",)


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One request as the API server saw it; ``code`` is 0 while it has not been answered."""

    audit_id: str
    stage: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    user: str
    code: int
    user_agent: str
    uri: str
    received_at: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment, and how long the log was then: what the API server received from then on comes after it.

    Not the length alone: a line is written when a request is answered, a moment after others may have seen what came of
    it. So the line of an earlier request may follow, or be half written.
    """

    at: str
    size: int


START = Mark("", 0)
"""Before all requests."""


def policy(users: Sequence[str] | None) -> str:
    """An audit policy at level Metadata for these users, or for all but the control plane itself."""
    rules: list[dict[str, Any]]
    if users is None:
        rules = [
            {"level": "None", "users": list(_CONTROL_PLANE_USERS)},
            {"level": "None", "userGroups": list(_CONTROL_PLANE_GROUPS)},
            {"level": "Metadata"},
        ]
    else:
        rules = [{"level": "Metadata", "users": list(users)}] if users else [{"level": "None"}]
    return json.dumps(
        {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules}
    )


def mark(path: Path) -> Mark:
    """The present moment, for a log that an API server on this machine writes."""
    # First the size: of a request that is received after the moment no line lies before it.
    size = path.stat().st_size
    return Mark(datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"), size)


def read(
    path: Path, since: Mark = START, *, user: str | None = None, user_agent: str | None = None
) -> list[AuditEvent]:
    """Every request in the log that was received after the mark, once, at its latest stage.

    A watch is there from its first byte (stage ``ResponseStarted``), other requests when they are answered.

    Args:
        user: whose requests, None for everybody's.
        user_agent: how the User-Agent begins, None for any.
    """
    latest: dict[str, AuditEvent] = {}
    for event in _events(path, since.size):
        is_asked_for = user in (None, event.user) and event.user_agent.startswith(user_agent or "")
        if is_asked_for and event.received_at >= since.at:
            latest[event.audit_id] = event
    return list(latest.values())


def _events(path: Path, since: int) -> Iterator[AuditEvent]:
    with path.open("rb") as file:
        if since:
            file.seek(since - 1)
            file.readline()  # the rest of a line that was half written then, or the end of a whole one
        for line in file:
            if line.endswith(b"\n"):  # the last one may be half written
                yield _parse(json.loads(line))


def _parse(record: dict[str, Any]) -> AuditEvent:
    target = record.get("objectRef", {})
    return AuditEvent(
        audit_id=record["auditID"],
        stage=record["stage"],
        verb=record["verb"],
        resource=target.get("resource", ""),
        subresource=target.get("subresource", ""),
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        user=record["user"].get("username", ""),
        code=record.get("responseStatus", {}).get("code", 0),
        user_agent=record.get("userAgent", ""),
        uri=record["requestURI"],
        received_at=record["requestReceivedTimestamp"],
    )
