"""What is counted from the audit log."""

import pytest

from benchmarks import requests
from lab.audit import AuditEvent


def event(verb: str, resource: str, code: int, subresource: str = "", uri: str = "/") -> AuditEvent:
    return AuditEvent(
        audit_id="",
        stage="ResponseComplete",
        verb=verb,
        resource=resource,
        subresource=subresource,
        namespace="default",
        name="one",
        user="system:serviceaccount:default:operator",
        code=code,
        user_agent="test",
        uri=uri,
        received_at="2026-01-01T00:00:00.000000Z",
    )


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


def test_a_request_that_names_no_resource_is_counted_by_its_path_without_the_query() -> None:
    assert requests.count([event("get", "", 200, uri="/apis?timeout=32s")]) == {"get /apis 200": 1}


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (event("create", "deployments", 201), 1),
        (event("patch", "deployments", 201), 1),  # an apply of what was not there
        (event("patch", "deployments", 200), 0),
        (event("create", "deployments", 409), 0),
        (event("create", "events", 201), 0),
    ],
)
def test_a_create_is_a_deployment_answered_201(made: AuditEvent, expected: int) -> None:
    assert requests.creates([made]) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (event("patch", "memcacheds", 200, "status"), 1),
        (event("update", "memcacheds", 200, "status"), 1),
        (event("patch", "memcacheds", 200), 0),
        (event("get", "memcacheds", 200, "status"), 0),
        (event("patch", "memcacheds", 409, "status"), 0),
    ],
)
def test_a_status_write_is_one_that_the_api_server_took(written: AuditEvent, expected: int) -> None:
    assert requests.status_writes([written]) == expected


def test_writes_are_all_attempts_to_change_something_and_no_reads() -> None:
    reads = [event(verb, "pods", 200) for verb in ("get", "list", "watch")]
    discovery = [event("create", "", 200, uri="/apis")]
    attempts = [event("create", "events", 201), event("delete", "deployments", 404), event("patch", "pods", 409)]
    assert requests.writes([*reads, *discovery, *attempts]) == len(attempts)


def test_a_resource_counts_as_watched_when_the_watch_was_granted() -> None:
    events = [event("watch", "pods", 200), event("watch", "deployments", 403), event("list", "memcacheds", 200)]
    assert requests.watched(events) == {"pods"}
