"""Servers that keep their names: which are listed, in which order, and how they come and go."""

from __future__ import annotations

import pytest

from tests.integration.named import (
    LONG_S,
    all_caught_up,
    drain_soon,
    names,
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
