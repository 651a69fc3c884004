"""The status of a Memcached: what `kubectl get` and `kubectl wait` tell of its servers, fresh and true.

There is no kubelet: pods stay Pending until a test says how they fare.
"""

from __future__ import annotations

import json

import pytest

from memcached_operator.api.quantities import mebibytes
from memcached_operator.memcached.spec import Spec
from memcached_operator.memcached.wanted.resources import resources_of
from tests.integration.conftest import memcached
from tests.integration.oracle import (
    catch_up,
    complete,
    condition,
    create_memcached,
    deployment_writes,
    make_ready,
    patch_pods,
    pods_of,
    wait,
    wait_condition,
    writes,
)
from tests.integration.requests import taken
from tests.kubectl_in_namespace import Kubectl

pytestmark = [pytest.mark.core, pytest.mark.usefixtures("operator")]


def quota(kubectl: Kubectl, hard: dict[str, str]) -> None:
    """Let the namespace have so much of some resources, and wait until that is in force."""
    kubectl.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": hard}})
    for resource, amount in hard.items():
        wait(kubectl, "resourcequota/few", f".status.hard['{resource.replace('.', chr(92) + '.')}']", amount)


def test_nodes_are_the_sorted_names_of_its_own_pods_that_live(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 4)
    pods = pods_of(kubectl, "shop")
    assert kubectl.get("mc", "shop")["status"]["nodes"] == pods

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

    status = kubectl.get("mc", "shop")["status"]
    assert len(pods_of(kubectl, "shop")) == 7  # our four, two in place of the first two, and the foreign one
    assert status["nodes"] == sorted(status["nodes"])
    assert {pods[2], pods[3]} < set(status["nodes"])
    assert not {pods[0], pods[1], "foreign"} & set(status["nodes"])
    assert (status["replicas"], len(status["nodes"]), status["readyReplicas"]) == (4, 4, 2)
    kubectl("patch", "pod", pods[0], "--type=merge", "-p", '{"metadata":{"finalizers":null}}')


def test_a_foreign_replica_sets_pods_with_our_labels_are_not_ours(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 1)
    catch_up(kubectl, pods=True)
    labels = {"app": "memcached", "memcached_cr": "shop", "tier": "foreign"}
    kubectl.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "shop-foreign"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "main", "image": "main"}]},
                },
            },
        },
        create=True,
    )
    wait(kubectl, "replicaset/shop-foreign", ".status.replicas", 2)
    mark = kubectl.cluster.audit_mark()
    catch_up(kubectl, pods=True)
    assert kubectl.get("mc", "shop")["status"]["replicas"] == 1
    assert taken(writes(kubectl, "shop", mark)) == set()


def test_ready_replicas_and_available_follow_the_pods(kubectl: Kubectl) -> None:
    create_memcached(kubectl, "shop", 3, rollout={"pauseSeconds": 0})
    assert kubectl.get("mc", "shop")["status"]["readyReplicas"] == 0
    pods = pods_of(kubectl, "shop")
    for ready, available in ((1, "False"), (2, "False"), (3, "True")):
        make_ready(kubectl, [pods[ready - 1]])
        wait(kubectl, "mc/shop", ".status.readyReplicas", ready)
        found = condition(kubectl, "shop", "Available")
        assert (found["status"], found["message"]) == (available, f"{ready} of 3 servers are ready.")
    wait(kubectl, "deployment/shop", '.status.conditions[?(@.type=="Progressing")].reason', "NewReplicaSetAvailable")
    patch_pods(kubectl, pods[:2], conditions=[{"type": "Ready", "status": "False"}])
    wait(kubectl, "mc/shop", ".status.readyReplicas", 1)
    assert condition(kubectl, "shop", "Available")["reason"] == "MinimumReplicasUnavailable"
    # A server that is lost is no rollout.
    assert condition(kubectl, "shop", "Progressing")["reason"] == "Complete"


def test_kubectl_wait_and_get_tell_when_it_is_available(kubectl: Kubectl) -> None:
    create_memcached(kubectl, "shop", 2)
    assert kubectl("get", "mc", "--no-headers").split()[:4] == ["shop", "2", "0", "False"]
    make_ready(kubectl, pods_of(kubectl, "shop"))
    kubectl.wait_existing("mc/shop", "condition=Available")
    assert kubectl("get", "mc", "--no-headers").split()[:4] == ["shop", "2", "2", "True"]
    namespaced = f"/apis/cache.example.com/v1alpha1/namespaces/{kubectl.namespace}/memcacheds/shop/scale"
    scale = json.loads(kubectl("get", "--raw", namespaced))
    assert scale["status"] == {"replicas": 2, "selector": "app=memcached,memcached_cr=shop"}


def test_progressing_tells_deploying_scaling_updating_and_complete(kubectl: Kubectl) -> None:
    kubectl.apply(memcached("shop", 1, rollout={"pauseSeconds": 0}), create=True)
    assert wait_condition(kubectl, "shop", "Progressing", "Deploying")["status"] == "True"
    wait(kubectl, "mc/shop", ".status.replicas", 1)
    make_ready(kubectl, pods_of(kubectl, "shop"))
    assert wait_condition(kubectl, "shop", "Progressing", "Complete")["status"] == "False"

    kubectl("scale", "mc/shop", "--replicas=2")
    assert wait_condition(kubectl, "shop", "Progressing", "Scaling")["status"] == "True"
    wait(kubectl, "mc/shop", ".status.replicas", 2)
    make_ready(kubectl, pods_of(kubectl, "shop"))
    wait_condition(kubectl, "shop", "Progressing", "Complete")

    old = pods_of(kubectl, "shop")
    kubectl("patch", "mc/shop", "--type=merge", "-p", '{"spec":{"image":"memcached:1.6.44"}}')
    assert wait_condition(kubectl, "shop", "Progressing", "Updating")["status"] == "True"
    for replaced in (1, 2):
        wait(kubectl, "deployment/shop", ".status.updatedReplicas", replaced)
        make_ready(kubectl, [pod for pod in pods_of(kubectl, "shop") if pod not in old])
    wait_condition(kubectl, "shop", "Progressing", "Complete")
    status = kubectl.get("mc", "shop")["status"]
    assert status["replicas"] == status["readyReplicas"] == 2
    generation = kubectl.get("mc", "shop")["metadata"]["generation"]
    assert generation == 3
    assert (
        {each["observedGeneration"] for each in status["conditions"]} == {status["observedGeneration"]} == {generation}
    )


def test_available_names_the_commonest_reason_why_servers_are_not_ready(kubectl: Kubectl) -> None:
    create_memcached(kubectl, "shop", 3)
    pods = pods_of(kubectl, "shop")
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes fit."}
    patch_pods(kubectl, pods, conditions=[unscheduled])
    wait(
        kubectl,
        "mc/shop",
        '.status.conditions[?(@.type=="Available")].message',
        "0 of 3 servers are ready: Unschedulable: 0/3 nodes fit.",
    )
    for pod in pods[:2]:
        waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
        container = {
            "name": "memcached",
            "state": waiting,
            "ready": False,
            "restartCount": 0,
            "image": "",
            "imageID": "",
        }
        patch_pods(kubectl, [pod], containerStatuses=[container])
    wait(
        kubectl,
        "mc/shop",
        '.status.conditions[?(@.type=="Available")].message',
        "0 of 3 servers are ready: 2 with ImagePullBackOff",
    )


@pytest.mark.cluster("kubernetes")  # the simulator has no quotas
def test_a_quota_on_pods_degrades_it_until_there_is_room(kubectl: Kubectl) -> None:
    quota(kubectl, {"pods": "1"})
    kubectl.apply(memcached("shop", 2), create=True)
    degraded = wait_condition(kubectl, "shop", "Degraded", "QuotaExceeded")
    assert degraded["status"] == "True"
    assert "exceeded quota: few" in degraded["message"]
    assert "exceeded quota: few" in condition(kubectl, "shop", "Available")["message"]
    wait(kubectl, "mc/shop", ".status.replicas", 1)

    quota(kubectl, {"pods": "5"})
    kubectl("scale", "mc/shop", "--replicas=3")
    wait(kubectl, "mc/shop", ".status.replicas", 3)
    assert wait_condition(kubectl, "shop", "Degraded", "AsExpected")["status"] == "False"


@pytest.mark.cluster("kubernetes")  # the simulator has no quotas
def test_a_quota_on_memory_and_cpu_has_room_for_so_many_servers_as_their_settings_take(kubectl: Kubectl) -> None:
    requests, limits = resources_of(Spec())
    # For two and a half servers of the default settings.
    quota(kubectl, {"limits.memory": f"{mebibytes(limits['memory']) * 5 // 2}Mi", "requests.cpu": "1"})
    complete(kubectl, "shop", 2)
    pod = kubectl.get("pod", pods_of(kubectl, "shop")[0])
    assert pod["spec"]["containers"][0]["resources"] == {"requests": requests, "limits": limits}

    kubectl("scale", "mc/shop", "--replicas=3")
    degraded = wait_condition(kubectl, "shop", "Degraded", "QuotaExceeded")
    assert f"exceeded quota: few, requested: limits.memory={limits['memory']}" in degraded["message"]
    assert len(pods_of(kubectl, "shop")) == 2

    kubectl("patch", "mc/shop", "--type=merge", "-p", '{"spec":{"size":2}}')
    wait_condition(kubectl, "shop", "Degraded", "AsExpected")


@pytest.mark.cluster("kubernetes")  # the simulator has no quotas
def test_a_quota_that_wants_a_number_which_servers_do_not_say_is_told_until_the_user_says_it(kubectl: Kubectl) -> None:
    quota(kubectl, {"limits.cpu": "4"})
    kubectl.apply(memcached("shop", 1), create=True)
    degraded = wait_condition(kubectl, "shop", "Degraded", "QuotaExceeded")
    assert "failed quota: few: must specify limits.cpu for: memcached" in degraded["message"]

    kubectl("patch", "mc/shop", "--type=merge", "-p", '{"spec":{"resources":{"limits":{"cpu":2}}}}')
    wait(kubectl, "mc/shop", ".status.replicas", 1)
    assert wait_condition(kubectl, "shop", "Degraded", "AsExpected")["status"] == "False"


@pytest.mark.cluster("kubernetes")
def test_a_limit_range_that_forbids_the_pods_is_no_quota(kubectl: Kubectl) -> None:
    limit = {"type": "Container", "max": {"memory": "100Mi"}}
    kubectl.apply(
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}, "spec": {"limits": [limit]}}
    )
    kubectl.apply(memcached("shop", 1), create=True)
    degraded = wait_condition(kubectl, "shop", "Degraded", "DeniedByPolicy")
    assert "maximum memory usage per Container is 100Mi, but limit is" in degraded["message"]


@pytest.mark.cluster("kubernetes")  # the simulator has no quotas
def test_a_quota_on_deployments_degrades_it_until_there_is_room(kubectl: Kubectl) -> None:
    quota(kubectl, {"count/deployments.apps": "0"})
    kubectl.apply(memcached("shop", 1), create=True)
    degraded = wait_condition(kubectl, "shop", "Degraded", "QuotaExceeded")
    assert "exceeded quota: few" in degraded["message"]
    status = kubectl.get("mc", "shop")["status"]
    assert (status["nodes"], status["replicas"]) == ([], 0)
    assert condition(kubectl, "shop", "Available")["status"] == "False"

    kubectl("delete", "resourcequota", "few")
    # Nothing tells the operator of a quota that went, but a change of the Memcached has it look at once.
    kubectl("scale", "mc/shop", "--replicas=2")
    wait(kubectl, "mc/shop", ".status.replicas", 2)
    assert condition(kubectl, "shop", "Degraded")["reason"] == "AsExpected"
    assert deployment_writes(kubectl, "shop")[-1] == "deployments 201"


def test_a_condition_of_somebody_elses_stays(kubectl: Kubectl) -> None:
    create_memcached(kubectl, "shop", 1)
    audited = {
        "type": "example.com/Audited",
        "status": "True",
        "reason": "Audited",
        "message": "all is well",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }
    applied = json.dumps(memcached("shop") | {"status": {"conditions": [audited]}})
    arguments = ("--server-side", "--subresource=status", "--field-manager=auditor")
    kubectl("apply", *arguments, "-f", "-", input=applied)
    make_ready(kubectl, pods_of(kubectl, "shop"))
    wait_condition(kubectl, "shop", "Progressing", "Complete")
    assert condition(kubectl, "shop", "example.com/Audited") == audited


def test_a_status_that_somebody_overwrote_is_put_right(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 1)
    right = kubectl.get("mc", "shop")["status"]
    lies: list[object] = [{"nodes": ["lie"], "replicas": 7}, {"conditions": []}, None]
    for lie in lies:
        body = json.dumps({"status": lie})
        kubectl("patch", "mc/shop", "--subresource=status", "--type=merge", "-p", body)
        wait_condition(kubectl, "shop", "Progressing", "Complete")
        wait(kubectl, "mc/shop", ".status.replicas", 1)
        healed = kubectl.get("mc", "shop")["status"]
        assert healed["nodes"] == right["nodes"]
        assert [each["type"] for each in healed["conditions"]] == [each["type"] for each in right["conditions"]]


def test_the_status_has_the_new_names_after_the_pods_were_deleted(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 2)
    before = pods_of(kubectl, "shop")
    kubectl("delete", "pods", *before)
    catch_up(kubectl, pods=True)
    status = kubectl.get("mc", "shop")["status"]
    assert status["nodes"] == pods_of(kubectl, "shop")
    assert not set(status["nodes"]) & set(before)
    assert (status["replicas"], status["readyReplicas"]) == (2, 0)


def test_a_whole_life_costs_one_create_of_each_object_and_no_write_at_rest(kubectl: Kubectl) -> None:
    mark = kubectl.cluster.audit_mark()
    complete(kubectl, "shop", 3)
    catch_up(kubectl, pods=True)
    made = {"deployments 201", "poddisruptionbudgets 201", "services 201"}
    assert taken(writes(kubectl, "shop", mark)) == {*made, "memcacheds/status 200"}
    version = kubectl.get("mc", "shop")["metadata"]["resourceVersion"]
    catch_up(kubectl, pods=True)
    assert kubectl.get("mc", "shop")["metadata"]["resourceVersion"] == version
