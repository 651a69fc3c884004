from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import orjson
import pytest

from operator_runtime.election.lease_decision import Lease, WriteLease
from operator_runtime.election.lease_election import lease_body, lease_of

NOON = datetime(2026, 1, 2, 12, 0, 0, 5, tzinfo=UTC)
LEASE = Lease("uid-1", "7", "them", 15.0, "2026-01-01T00:00:00.000000Z", 3)


def stored(**spec: object) -> bytes:
    metadata = {"name": "lock", "namespace": "ops", "uid": "uid-1", "resourceVersion": "7"}
    return orjson.dumps({"metadata": metadata, "spec": spec})


def test_a_lease_is_read() -> None:
    times = {"leaseDurationSeconds": 15, "acquireTime": LEASE.acquire_time}
    found = lease_of(stored(holderIdentity="them", leaseTransitions=3, other=1, **times), 99.0)
    assert (found.namespace, found.name) == ("ops", "lock")
    assert found == LEASE


@pytest.mark.parametrize("spec", [{}, {"holderIdentity": None, "leaseDurationSeconds": None, "leaseTransitions": None}])
def test_one_that_says_nothing_is_free_and_as_long_as_its_own(spec: dict[str, object]) -> None:
    assert lease_of(stored(**spec), 15.0) == Lease("uid-1", "7", "", 15.0, None, 0)


def test_a_length_that_no_setting_gives_keeps_nobody_waiting_for_longer_than_the_longest_that_one_gives() -> None:
    assert lease_of(stored(leaseDurationSeconds=2**31 - 1), 15.0).duration_s == 3600.0


@pytest.mark.parametrize(("before", "after"), [(3, 4), (2**31 - 2, 2**31 - 1), (2**31 - 1, 2**31 - 1)])
def test_changes_of_the_holder_are_counted_as_far_as_the_api_can(before: int, after: int) -> None:
    """One more would be refused, and nobody would lead."""
    lease = lease_of(stored(leaseTransitions=before), 15.0)
    spec = lease_body(WriteLease(lease, "me", 15, None, lease.transitions + 1), "lock", "ops", NOON)["spec"]
    assert isinstance(spec, dict)
    assert spec["leaseTransitions"] == after


def test_what_is_no_lease_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        lease_of(b'{"metadata":{"name":"lock"}}', 15.0)


@pytest.mark.parametrize(
    ("when", "text"),
    [
        (NOON, "2026-01-02T12:00:00.000005Z"),
        (NOON.replace(microsecond=0), "2026-01-02T12:00:00.000000Z"),
        (NOON.astimezone(timezone(timedelta(hours=-7))), "2026-01-02T12:00:00.000005Z"),
    ],
)
def test_times_are_in_utc_with_six_digits(when: datetime, text: str) -> None:
    spec = lease_body(WriteLease(None, "me", 15, None, 0), "lock", "ops", when)["spec"]
    assert isinstance(spec, dict)
    assert spec["renewTime"] == text


def test_a_new_lease_is_whole() -> None:
    assert lease_body(WriteLease(None, "me", 15, None, 0), "lock", "ops", NOON) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "lock", "namespace": "ops"},
        "spec": {
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-02T12:00:00.000005Z",
            "renewTime": "2026-01-02T12:00:00.000005Z",
            "leaseTransitions": 0,
        },
    }


def test_a_change_is_guarded_by_what_it_replaces_and_keeps_the_time_that_it_is_given() -> None:
    body = lease_body(WriteLease(LEASE, "them", 15, LEASE.acquire_time, 3), "lock", "ops", NOON)
    assert body["metadata"] == {"uid": "uid-1", "resourceVersion": "7"}
    spec = body["spec"]
    assert isinstance(spec, dict)
    assert (spec["acquireTime"], spec["renewTime"]) == (LEASE.acquire_time, "2026-01-02T12:00:00.000005Z")
