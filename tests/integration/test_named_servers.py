"""Servers that keep their names: which are listed, in which order, and how they come and go."""

from __future__ import annotations

import pytest

from tests.integration.conftest import memcached
from tests.integration.named import (
    LONG_S,
    all_caught_up,
    drain_soon,
    names,
    ready_when_there,
    replicas,
    status,
    wait_list,
    written,
)
from tests.integration.oracle import OPERATOR_NAME, complete, wait, wait_condition
from tests.integration.requests import received_at, taken, writes_of
from tests.kubectl_in_namespace import Kubectl

pytestmark = [pytest.mark.core, pytest.mark.usefixtures("operator")]


def create(kubectl: Kubectl, size: int, **spec: object) -> None:
    """A Memcached named shop whose servers keep their names, and all of them serve."""
    complete(kubectl, "shop", size, workload="StatefulSet", **spec)
    wait_list(kubectl, *range(size))


def test_servers_are_listed_by_name_once_each_was_ready_and_in_the_order_of_their_numbers(kubectl: Kubectl) -> None:
    kubectl.apply(memcached("shop", 3, workload="StatefulSet"), create=True)
    ready_when_there(kubectl, 2)
    wait(kubectl, "mcd/shop", ".status.readyReplicas", 1)
    assert status(kubectl)["serverList"] == names(kubectl, 2)
    ready_when_there(kubectl, 0, 1)
    wait_condition(kubectl, "shop", "Ready", "AllServersReady")
    wait_list(kubectl, 0, 1, 2)

    found = status(kubectl)
    assert (found["workload"], found["service"], found.get("draining")) == ("StatefulSet", "shop", None)
    assert found["nodes"] == ["shop-0", "shop-1", "shop-2"]
    spec = kubectl.get("statefulset", "shop")["spec"]
    assert (spec["serviceName"], spec["podManagementPolicy"]) == ("shop", "Parallel")
    service = kubectl.get("service", "shop")["spec"]
    assert (service["clusterIP"], service["publishNotReadyAddresses"]) == ("None", True)


def test_a_server_that_is_lost_keeps_its_place(kubectl: Kubectl) -> None:
    create(kubectl, 3)
    mark = kubectl.cluster.audit_mark()
    lost = kubectl.uid("pod/shop-1")
    kubectl("delete", "pod/shop-1", "--grace-period=0", "--force", "--wait=false")
    kubectl("wait", "mcd/shop", "--for=jsonpath={.status.readyReplicas}=2", "--timeout=60s")
    assert status(kubectl)["serverList"] == names(kubectl, 0, 1, 2)
    not_ready = wait_condition(kubectl, "shop", "Ready", "ServersNotReady")
    assert not_ready["message"] == "2 of 3 servers are ready."

    ready_when_there(kubectl, 1)
    wait_condition(kubectl, "shop", "Ready", "AllServersReady")
    assert kubectl.uid("pod/shop-1") != lost
    assert status(kubectl)["serverList"] == names(kubectl, 0, 1, 2)
    all_caught_up(kubectl)
    assert taken(written(kubectl, mark)) == set()


def test_a_server_that_goes_leaves_the_list_first_and_runs_on_for_the_drain_seconds(kubectl: Kubectl) -> None:
    create(kubectl, 3, drainPeriodSeconds=LONG_S)
    mark = kubectl.cluster.audit_mark()
    kubectl("scale", "mcd/shop", "--replicas=1")
    wait_list(kubectl, 0)
    assert replicas(kubectl) == 3
    since, drain_s = drain_soon(kubectl)
    wait(kubectl, "statefulset/shop", ".spec.replicas", 1)
    wait_condition(kubectl, "shop", "Ready", "AllServersReady")

    assert taken(written(kubectl, mark)) == {"delete poddisruptionbudgets 200", "patch statefulsets 200"}
    (scaled,) = [
        received_at(each)
        for each in writes_of(kubectl.cluster, OPERATOR_NAME, since=mark)
        if (each.namespace, each.resource, each.name) == (kubectl.namespace, "statefulsets", "shop")
    ]
    assert (scaled - since).total_seconds() >= drain_s
    found = status(kubectl)
    assert (found["serverList"], found.get("draining")) == (names(kubectl, 0), None)


def test_a_stateful_set_that_is_deleted_is_made_again_and_the_list_stays(kubectl: Kubectl) -> None:
    create(kubectl, 2)
    mark = kubectl.cluster.audit_mark()
    before = kubectl.uid("statefulset/shop")
    kubectl("delete", "statefulset/shop", "--cascade=orphan")
    kubectl.wait_field("statefulset/shop", ".status.readyReplicas", 2)
    all_caught_up(kubectl)
    assert kubectl.uid("statefulset/shop") != before
    assert taken(written(kubectl, mark)) == {"create statefulsets 201"}
    assert status(kubectl)["serverList"] == names(kubectl, 0, 1)
