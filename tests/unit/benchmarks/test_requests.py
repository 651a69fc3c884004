"""What is counted from the audit log."""

import pytest

from benchmarks import requests
from lab.audit import AuditEvent


def event(verb: str, resource: str, code: int, subresource: str = "", uri: str = "/") -> AuditEvent:
    return AuditEvent(
        audit_id="", stage="ResponseComplete", verb=verb, resource=resource, subresource=subresource,
        namespace="default", name="one", user="system:serviceaccount:default:operator", code=code, user_agent="test",
        uri=uri, received_at="2026-01-01T00:00:00.000000Z",
    )  # fmt: skip


def test_requests_are_counted_by_verb_resource_and_answer_with_the_most_frequent_first() -> None:
    events = [
        event("create", "deployments", 201),
        event("patch", "memcacheds", 200, "status"),
        event("patch", "memcacheds", 200, "status"),
        event("patch", "memcacheds", 409, "status"),
    ]
    counted = requests.count(events)
    assert list(counted.items()) == [
        ("patch memcacheds/status 200", 2),
        ("create deployments 201", 1),
        ("patch memcacheds/status 409", 1),
    ]


@pytest.mark.parametrize(
    ("made", "creates", "status_writes"),
    [
        (event("create", "deployments", 201), 1, 0),
        (event("patch", "deployments", 201), 1, 0),  # an apply of what was not there
        (event("patch", "deployments", 200), 0, 0),
        (event("create", "deployments", 409), 0, 0),
        (event("patch", "memcacheds", 200, "status"), 0, 1),
        (event("patch", "memcacheds", 200), 0, 0),
        (event("patch", "memcacheds", 409, "status"), 0, 0),
    ],
)
def test_a_create_and_a_status_write_are_those_that_the_api_server_took(
    made: AuditEvent, creates: int, status_writes: int
) -> None:
    assert (requests.creates([made]), requests.status_writes([made])) == (creates, status_writes)
    assert requests.writes([made]) == 1, "each attempt"
    assert requests.writes([event("list", "pods", 200)]) == 0
