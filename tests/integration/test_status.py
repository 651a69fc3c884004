"""The status of a Memcached: what `kubectl get` and `kubectl wait` tell of its servers, fresh and true.

There is no kubelet: pods stay Pending until a test says how they fare.
"""

from __future__ import annotations

import pytest

from tests.integration.oracle import (
    catch_up,
    complete,
    condition,
    create_memcached,
    make_ready,
    patch_pods,
    pods_of,
    wait,
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


def test_ready_replicas_and_available_follow_the_pods(kubectl: Kubectl) -> None:
    create_memcached(kubectl, "shop", 3, rollout={"minReadySeconds": 0})
    assert kubectl.get("mcd", "shop")["status"]["readyReplicas"] == 0
    pods = pods_of(kubectl, "shop")
    for ready, available in ((1, "False"), (2, "False"), (3, "True")):
        make_ready(kubectl, [pods[ready - 1]])
        wait(kubectl, "mcd/shop", ".status.readyReplicas", ready)
        found = condition(kubectl, "shop", "Available")
        assert (found["status"], found["message"]) == (available, f"{ready} of 3 servers are ready.")
    wait(kubectl, "deployment/shop", '.status.conditions[?(@.type=="Progressing")].reason', "NewReplicaSetAvailable")
    patch_pods(kubectl, pods[:2], conditions=[{"type": "Ready", "status": "False"}])
    wait(kubectl, "mcd/shop", ".status.readyReplicas", 1)
    assert condition(kubectl, "shop", "Available")["reason"] == "MinimumReplicasUnavailable"
    # A server that is lost is no rollout.
    assert condition(kubectl, "shop", "Progressing")["reason"] == "Complete"


def test_a_whole_life_costs_one_create_of_each_object_and_no_write_at_rest(kubectl: Kubectl) -> None:
    mark = kubectl.cluster.audit_mark()
    complete(kubectl, "shop", 3)
    catch_up(kubectl, pods=True)
    made = {"deployments 201", "poddisruptionbudgets 201", "services 201"}
    assert taken(writes(kubectl, "shop", mark)) == {*made, "memcacheds/status 200"}
    version = kubectl.get("mcd", "shop")["metadata"]["resourceVersion"]
    catch_up(kubectl, pods=True)
    assert kubectl.get("mcd", "shop")["metadata"]["resourceVersion"] == version
