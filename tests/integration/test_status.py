"""The status of a Memcached: what `kubectl get` and `kubectl wait` tell of its servers, fresh and true.

There is no kubelet: pods stay Pending until a test says how they fare.
"""

from __future__ import annotations

import pytest

from tests.integration.oracle import (
    catch_up,
    complete,
    patch_pods,
    pods_of,
    writes,
)
from tests.integration.requests import taken
from tests.kubectl_in_namespace import Kubectl

pytestmark = [pytest.mark.core, pytest.mark.usefixtures("operator")]


def test_nodes_are_the_sorted_names_of_its_own_pods_that_live(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 4)
    pods = pods_of(kubectl, "shop")
    assert kubectl.get("mcd", "shop")["status"]["nodes"] == pods

    # One that terminates and is held, one that has failed, and one that merely looks like ours.
    kubectl("patch", "pod", pods[0], "--type=merge", "-p", '{"metadata":{"finalizers":["example.com/hold"]}}')
    kubectl("delete", "pod", pods[0], "--wait=false")
    patch_pods(kubectl, [pods[1]], phase="Failed")
    template = kubectl.get("pod", pods[2])
    foreign = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "foreign", "labels": {"app": "memcached", "memcached_cr": "shop"}},
        "spec": {"containers": template["spec"]["containers"], "automountServiceAccountToken": False},
    }
    kubectl.apply(foreign, create=True)
    catch_up(kubectl, pods=True)

    status = kubectl.get("mcd", "shop")["status"]
    assert len(pods_of(kubectl, "shop")) == 7  # our four, two in place of the first two, and the foreign one
    assert status["nodes"] == sorted(status["nodes"])
    assert {pods[2], pods[3]} < set(status["nodes"])
    assert not {pods[0], pods[1], "foreign"} & set(status["nodes"])
    assert (status["replicas"], len(status["nodes"]), status["readyReplicas"]) == (4, 4, 2)
    kubectl("patch", "pod", pods[0], "--type=merge", "-p", '{"metadata":{"finalizers":null}}')


def test_a_whole_life_costs_one_create_of_each_object_and_no_write_at_rest(kubectl: Kubectl) -> None:
    mark = kubectl.cluster.audit_mark()
    complete(kubectl, "shop", 3)
    catch_up(kubectl, pods=True)
    made = {"deployments 201", "poddisruptionbudgets 201", "services 201"}
    assert taken(writes(kubectl, "shop", mark)) == {*made, "memcacheds/status 200"}
    version = kubectl.get("mcd", "shop")["metadata"]["resourceVersion"]
    catch_up(kubectl, pods=True)
    assert kubectl.get("mcd", "shop")["metadata"]["resourceVersion"] == version
