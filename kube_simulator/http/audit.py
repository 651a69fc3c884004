"""The audit log: a JSON line for each request, in the shape of audit.k8s.io/v1 at level Metadata.

Lines are written before the answer is sent, so that a client finds its line. In-process controllers make no
requests over HTTP and are not in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

import orjson

from kube_simulator.http.routes import Route
from kube_simulator.requests.types import User
from kube_simulator.values import Json


@dataclass(slots=True)
class Record:
    """One request on its way: what is known of it so far."""

    audit_id: str
    route: Route
    uri: str
    received: datetime
    user_agent: str
    source: str
    user: User | None = None
    name: str = ""
    """Of a new object, which its path does not have."""


class AuditLog:
    """Appends to a file, a line at once."""

    def __init__(self, path: Path, now: Callable[[], datetime]) -> None:
        self._now = now
        self._file = path.open("ab", buffering=0)

    def write(self, record: Record, stage: Literal["ResponseStarted", "ResponseComplete"], code: int) -> None:
        """One stage of a request, with the HTTP status of its answer."""
        if self._file.closed:  # a stream that ends after its simulator did
            return
        user, route = record.user, record.route
        event: Json = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": record.audit_id,
            "stage": stage,
            "requestURI": record.uri,
            "verb": route.verb,
            "user": {} if user is None else {"username": user.name, "groups": sorted(user.groups)},
            "sourceIPs": [record.source],
            "userAgent": record.user_agent,
            "responseStatus": {"metadata": {}, "code": code},
            "requestReceivedTimestamp": _micro_time(record.received),
            "stageTimestamp": _micro_time(self._now()),
        }
        if route.resource:
            reference = {
                "resource": route.resource,
                "namespace": route.namespace,
                "name": route.name or record.name,
                "apiGroup": route.group,
                "apiVersion": route.version,
                "subresource": route.subresource,
            }
            event["objectRef"] = {key: value for key, value in reference.items() if value}
        self._file.write(orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE))

    def close(self) -> None:
        """Write no more."""
        self._file.close()


def _micro_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
