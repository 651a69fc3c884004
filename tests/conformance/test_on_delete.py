"""A StatefulSet whose pods are replaced when somebody deletes them: revisions, status, and what kubectl says."""

import pytest

from operator_runtime.testing.waiting import eventually
from tests.conformance.api import Api
from tests.conformance.sample_objects import path
from tests.conformance.workload_pods import (
    await_new,
    await_pods,
    await_status,
    change_image,
    create,
    mark,
    pods,
    revision_of,
    serving,
    uids,
)

ON_DELETE = {"type": "OnDelete"}


def test_pods_wait_for_their_deletion(api: Api, namespace: str) -> None:
    before = serving(api, namespace, updateStrategy=ON_DELETE)
    revision = change_image(api, namespace, "2")
    api.delete(path("pods", namespace, "web-0")).expect(200)
    new = await_new(api, namespace, "web-0", before)
    assert revision_of(new) == revision != revision_of(before["web-0"])
    mark(api, namespace, "web-0").expect(200)
    status = await_status(api, namespace, readyReplicas=2, updatedReplicas=1, currentReplicas=1)
    assert status["currentRevision"] == revision_of(before["web-1"])
    assert uids(pods(api, namespace))["web-1"] == uids(before)["web-1"]


@pytest.mark.parametrize("management", ["Parallel", "OrderedReady"])
def test_a_new_pod_is_of_the_present_template_below_pods_of_the_old(api: Api, namespace: str, management: str) -> None:
    before = serving(api, namespace, updateStrategy=ON_DELETE, podManagementPolicy="Parallel")
    api.delete(path("statefulsets", namespace, "web"), {"propagationPolicy": "Orphan"}).expect(200)
    eventually(lambda: api.get(path("statefulsets", namespace, "web")).status, lambda status: status == 404)
    create(api, namespace, updateStrategy=ON_DELETE, podManagementPolicy=management)
    await_status(api, namespace, readyReplicas=2)
    revision = change_image(api, namespace, "2")
    api.merge(path("statefulsets", namespace, "web"), {"spec": {"replicas": 3}}).expect(200)
    added = await_pods(api, namespace, "web-0", "web-1", "web-2")
    assert revision_of(added["web-2"]) == revision
    assert uids(before).items() <= uids(added).items()
