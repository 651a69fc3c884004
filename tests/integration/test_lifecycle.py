"""One Memcached from its creation to its deletion, as the users of kubectl see it.

There is no kubelet: pods stay Pending until a test says how they fare.
"""

from __future__ import annotations

import signal

import pytest

from tests.integration.conftest import memcached
from tests.integration.oracle import (
    catch_up,
    complete,
    condition,
    create_memcached,
    deployment_writes,
    patch_pods,
    pods_of,
    wait,
    wait_condition,
    writes,
)
from tests.integration.requests import taken
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess

pytestmark = [pytest.mark.core, pytest.mark.usefixtures("operator")]

STATUS = {"memcacheds/status 200"}


@pytest.mark.parametrize("mode", ["background", "foreground"])
def test_deletion_takes_the_deployment_along_and_the_operator_writes_no_object(kubectl: Kubectl, mode: str) -> None:
    create_memcached(kubectl, "shop", 2)
    mark = kubectl.cluster.audit_mark()
    kubectl("delete", "mcd/shop", f"--cascade={mode}", "--timeout=60s")
    kubectl.wait("deployment/shop", "delete")
    catch_up(kubectl, pods=True)
    assert pods_of(kubectl, "shop") == []
    assert taken(writes(kubectl, "shop", mark)) <= STATUS


def test_an_orphaned_deployment_stays_and_a_new_memcached_takes_it_only_when_told(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 1)
    pods, deployment = pods_of(kubectl, "shop"), kubectl.uid("deployment/shop")
    mark = kubectl.cluster.audit_mark()
    kubectl("delete", "mcd/shop", "--cascade=orphan", "--timeout=60s")
    catch_up(kubectl)
    assert "ownerReferences" not in kubectl.get("deployment", "shop")["metadata"]
    assert taken(writes(kubectl, "shop", mark)) == set()

    kubectl.apply(memcached("shop", 2), create=True)
    uid = kubectl.uid("mcd/shop")
    degraded = wait_condition(kubectl, "shop", "Degraded", "NotControlled")
    assert "annotate it with cache.example.com/memcached-uid=UID, this Memcached's metadata.uid" in degraded["message"]
    assert kubectl.get("mcd", "shop")["status"]["nodes"] == []
    assert kubectl.get("deployment", "shop")["spec"]["replicas"] == 1

    assert "A Service named shop exists and has no owner: it is not changed." in degraded["message"]

    handed_over = ("deployment/shop", "service/shop")
    kubectl("annotate", "--overwrite", *handed_over, f"cache.example.com/memcached-uid={uid}")
    wait(kubectl, "mcd/shop", ".status.replicas", 2)
    now = kubectl.get("deployment", "shop")["metadata"]
    assert now["uid"] == deployment
    assert [owner["uid"] for owner in now["ownerReferences"]] == [uid]
    assert set(pods) < set(kubectl.get("mcd", "shop")["status"]["nodes"])
    wait_condition(kubectl, "shop", "Degraded", "AsExpected")


def test_a_deployment_survives_its_orphaning_also_when_the_operator_learns_of_it_late(
    kubectl: Kubectl, operator: OperatorProcess
) -> None:
    # What came meanwhile arrives in no certain order: the lost ownerReference may come before the deletion. An operator
    # that put it back would hand the Deployment to the garbage collector.
    names = [f"shop-{number}" for number in range(4)]
    kubectl.apply(*(memcached(name, 0) for name in names), create=True)
    for name in names:
        wait_condition(kubectl, name, "Progressing", "Complete")
    uids = deployment_uids(kubectl)
    mark = kubectl.cluster.audit_mark()
    operator.send(signal.SIGSTOP)
    try:
        kubectl("delete", "mcd", *names, "--cascade=orphan", "--timeout=60s")
    finally:
        operator.send(signal.SIGCONT)
    catch_up(kubectl)
    now = deployment_uids(kubectl)
    assert {name: now[name] for name in names} == uids
    assert {write for name in names for write in taken(writes(kubectl, name, mark))} == set()


def deployment_uids(kubectl: Kubectl) -> dict[str, str]:
    """The uid of each Deployment by its name."""
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in kubectl.get("deployments")["items"]}


def test_deletion_and_creation_at_once_under_one_name_gives_a_new_deployment(kubectl: Kubectl) -> None:
    create_memcached(kubectl, "shop", 2)
    before = {what: kubectl.uid(f"{what}/shop") for what in ("mcd", "deployment")}
    pods = pods_of(kubectl, "shop")
    mark = kubectl.cluster.audit_mark()

    kubectl("delete", "mcd/shop", "--wait=false")
    create_memcached(kubectl, "shop", 3)

    after = kubectl.uid("mcd/shop")
    assert after != before["mcd"]
    made = kubectl.get("deployment", "shop")
    assert made["metadata"]["uid"] != before["deployment"]
    assert [owner["uid"] for owner in made["metadata"]["ownerReferences"]] == [after]
    assert not set(pods) & set(kubectl.get("mcd", "shop")["status"]["nodes"])
    catch_up(kubectl)
    assert "deployments 201" in deployment_writes(kubectl, "shop", mark)
    assert condition(kubectl, "shop", "Degraded")["status"] == "False"


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
