"""What an operator asked of the API server, by the audit log."""

from __future__ import annotations

from datetime import datetime

from lab.audit import START, AuditEvent, Mark
from tests.cluster import Cluster

WATCHED = {
    "configmaps": "configmaps",
    "deployments": "deployments.apps",
    "memcacheds": "memcacheds.cache.example.com",
    "networkpolicies": "networkpolicies.networking.k8s.io",
    "poddisruptionbudgets": "poddisruptionbudgets.policy",
    "pods": "pods",
    "services": "services",
    "statefulsets": "statefulsets.apps",
}
"""What the operator watches in each namespace, as the audit log and as its own log and metrics name it."""
READS = frozenset({"get", "list", "watch"})
"""The verbs that change nothing."""


def requests_of(cluster: Cluster, operator_name: str, *, since: Mark = START) -> list[AuditEvent]:
    """All requests of the operator of that name (`OPERATOR_NAME`), which its User-Agent begins with."""
    return cluster.audit_events(since=since, user_agent=f"{operator_name}/")


def writes_of(cluster: Cluster, operator_name: str, *, since: Mark = START) -> list[AuditEvent]:
    """Those that change something."""
    return [each for each in requests_of(cluster, operator_name, since=since) if each.verb not in READS]


def written(events: list[AuditEvent]) -> list[str]:
    """Each as `verb resource[/subresource] name`, in order; events of the recorder are left out."""
    return [
        f"{each.verb} {each.resource}{'/' + each.subresource if each.subresource else ''} {each.name}"
        for each in sorted(events, key=lambda each: each.received_at)
        if each.resource != "events"
    ]


def taken(writes: list[str]) -> set[str]:
    """Which of them the API server took, each once: what the operator does, and not how often.

    A write of the version that was read is done anew where somebody else's came first, such as of a status; what was
    created by one request is taken over by another before the first apply. Exact numbers are those of the unit tests.
    """
    return {each for each in writes if each.endswith((" 200", " 201"))}


def received_at(event: AuditEvent) -> datetime:
    """When the API server received a request."""
    return datetime.fromisoformat(event.received_at)
