"""The operator while the ground is taken from under it: its permissions, and the namespace that it works in."""

from __future__ import annotations

import pytest

from operator_runtime.testing.waiting import eventually, until
from tests.faults.conftest import Starter
from tests.faults.fault_workload import FaultWorkload
from tests.faults.proxy import FaultProxy
from tests.integration.accounts import account_with_role, grant, operator_rules
from tests.integration.permissions_optional import KINDS as OPTIONAL_KINDS
from tests.integration.requests import requests_of
from tests.kubectl_in_namespace import Kubectl

pytestmark = pytest.mark.cluster("kubernetes")

KINDS = ("memcacheds.cache.example.com", "deployments.apps", "pods", *(each.full_name for each in OPTIONAL_KINDS))


def test_permissions_that_are_taken_away_end_nothing_and_when_they_are_back_the_rest_is_done(
    kubectl: Kubectl, workload: FaultWorkload, proxy: FaultProxy, start: Starter
) -> None:
    watched = start(account=account_with_role(kubectl, operator_rules()))
    workload.begin()
    grant(kubectl, [])
    proxy.cut()  # a watch that runs outlives the permission to it
    for kind in KINDS:
        line = watched.process.wait_for_log(f"cannot watch {kind}", "403 Forbidden", after=watched.since)
        assert f"Grant list and watch on {kind} to the operator's account." in line
    workload.change()
    assert workload.listed(workload.deployments).keys() >= {"calm", "resized"}, "what it cannot see it does not touch"
    eventually(
        watched.figures.read,
        lambda now: all(now.restarts("forbidden", kind) >= 2 for kind in KINDS),
        what="it goes on asking for each kind",
    )
    grant(kubectl, operator_rules())
    workload.await_healed()
    figures = watched.figures.read()
    for kind in KINDS:
        assert figures.relists(kind) == 1, "it goes on where it was"
        watched.process.wait_for_log(f"watching {kind}", "again", after=watched.since)
    for kind in KINDS:
        assert len(watched.logged(f"cannot watch {kind}")) == 1, "it is said once"
    assert watched.logged("Traceback") == []


def test_in_a_namespace_that_is_being_deleted_nothing_is_created_complained_of_or_tried_again_and_again(
    kubectl: Kubectl, workload: FaultWorkload, start: Starter
) -> None:
    watched = start()
    workload.begin()
    kubectl.cluster.stop_controller_manager()  # which empties the namespace
    try:
        kubectl.cluster.kubectl("delete", "namespace", kubectl.namespace, "--wait=false")
        workload.delete_deployment("bared")
        until("no create was refused", lambda: bool(refused(kubectl, workload)))
        kubectl.cluster.kubectl("annotate", "mcd/bared", "note=changed", "--namespace", kubectl.namespace)
        workload.resize("resized", 2)
        until(
            "what is still there is not kept",
            lambda: workload.listed(workload.deployments)["resized"]["spec"]["replicas"] == 2,
        )
        assert refused(kubectl, workload) == ["bared"], "once, and what is annotated says nothing new"
        assert workload.reason("bared", "Degraded") == "AsExpected"
    finally:
        kubectl.cluster.start_controller_manager()
    eventually(
        lambda: watched.figures.read().sum("watch_stream_cached_objects"), lambda left: left == 0, what="empty caches"
    )
    assert watched.troubles() == []
    assert watched.figures.read().sum("controller_runtime_reconcile_errors_total") == 0


def refused(kubectl: Kubectl, workload: FaultWorkload) -> list[str]:
    """The Deployments whose creation the API server refused."""
    return [
        each.name
        for each in requests_of(kubectl.cluster, kubectl.namespace, since=workload.mark)
        if (each.resource, each.subresource, each.code) == ("deployments", "", 403)
    ]
