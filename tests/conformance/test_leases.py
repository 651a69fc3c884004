"""Leases, as leader election uses them: who replaces which version, and what a Lease may say."""

import pytest

from tests.cluster import Cluster
from tests.conformance.api import Answer, Api, Json, statuses_at_once, version
from tests.conformance.sample_objects import lease, path

TIME = "2026-01-01T00:00:00.123456Z"
HELD = {
    "holderIdentity": "first",
    "leaseDurationSeconds": 15,
    "acquireTime": TIME,
    "renewTime": TIME,
    "leaseTransitions": 0,
}


def held(holder: str, **metadata: str) -> Json:
    return lease("lock", {**HELD, "holderIdentity": holder}, **metadata)


@pytest.fixture
def lock(namespace: str) -> str:
    """The path of a Lease that is not there yet."""
    return path("leases", namespace, "lock")


def test_of_many_who_take_a_lease_by_its_version_one_succeeds(
    cluster: Cluster, api: Api, namespace: str, lock: str
) -> None:
    created = api.post(path("leases", namespace), held("first")).expect(201)
    desired = created["metadata"]["resourceVersion"]

    def take(client: Api, number: int) -> Answer:
        return client.put(lock, held(f"candidate-{number}", resourceVersion=desired))

    assert statuses_at_once(cluster, 8, take) == [200] + [409] * 7
    lost = api.put(lock, held("late", resourceVersion=desired))
    status = lost.expect(409, "Conflict")
    assert status["details"] == {"name": "lock", "group": "coordination.k8s.io", "kind": "leases"}
    assert "Retry-After" not in lost.headers
    assert version(api.get(lock).json) > version(created)


def test_put_needs_a_version(api: Api, namespace: str, lock: str) -> None:
    api.post(path("leases", namespace), held("first")).expect(201)
    unversioned = api.put(lock, held("second")).expect(422, "Invalid")
    assert [cause["field"] for cause in unversioned["details"]["causes"]] == ["metadata.resourceVersion"]
