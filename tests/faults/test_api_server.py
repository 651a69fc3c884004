"""The operator while the API server crashes, hangs, refuses, or has forgotten what was before."""

from __future__ import annotations

import itertools

import pytest

from lab.control_plane import ControlPlane
from operator_runtime.testing.waiting import DEADLINE_S, eventually, until
from tests.faults.conftest import Starter
from tests.faults.fault_workload import FaultWorkload
from tests.faults.proxy import FaultProxy, every, writes_on
from tests.integration.load import Load
from tests.integration.requests import WATCHED
from tests.kubectl_in_namespace import Kubectl

KINDS = tuple(WATCHED.values())
CRASHES = 10
REFUSED_S = 30.0
# What the workload's changes have the operator write on Deployments: of `resized`, `bared` and `new`.
WRITES = 3


@pytest.mark.timeout(300)  # each takes a real API server some seconds
def test_ten_crashes_of_the_api_server_under_load_lose_nothing_and_create_nothing_twice(
    kubectl: Kubectl, workload: FaultWorkload, start: Starter
) -> None:
    watched = start()
    workload.begin()
    with Load(kubectl) as load:
        for number in range(CRASHES):
            load.await_steps(5)
            kubectl.cluster.kill_apiserver()
            load.await_refusal()
            if number == CRASHES - 1:  # the others may be too short for a word
                watched.process.wait_for_log("cannot watch", after=watched.since)
            kubectl.cluster.start_apiserver()
        load.await_steps(5)
    workload.await_sizes(load.alive, load.gone)
    workload.change()
    workload.await_healed()
    twice = {name: number for name, number in workload.creations().items() if number > 1}
    assert twice == {}, workload.history(twice)
    figures = watched.figures.read()
    assert all(figures.restarts("unreachable", kind) >= 2 for kind in KINDS)
    assert figures.requests("<error>") > 0
    watched.process.wait_for_log("watching", "again", after=watched.since)
    assert watched.logged("Traceback") == []


@pytest.mark.cluster("kubernetes")
def test_while_etcd_hangs_writes_are_tried_again_and_the_one_that_was_due_is_made_when_it_goes_on(
    kubectl: Kubectl, workload: FaultWorkload, proxy: FaultProxy, start: Starter
) -> None:
    watched = start("--request-timeout-s=5")
    workload.begin()
    cluster = kubectl.cluster
    assert isinstance(cluster, ControlPlane)
    of_deployments = writes_on("deployments")
    with proxy.holding(of_deployments):
        workload.change()
        proxy.await_count("held", WRITES)
        hang = cluster.hanging_etcd()
        hang.__enter__()
        hung = len(proxy.requests)
    try:
        watched.process.wait_for_log("attempt", "no answer in time", after=watched.since)
        until("not all is tried again", lambda: sum(map(of_deployments, proxy.requests[hung:])) >= WRITES)
    finally:
        hang.__exit__(None, None, None)
    workload.await_healed()
    warned = {line.partition(f"{kubectl.namespace}/")[2].partition(":")[0] for line in watched.logged("attempt")}
    assert warned <= {"resized", "bared", "new"}
    for name in warned:
        watched.process.wait_for_log(f"/{name}: recovered after", after=watched.since)
    assert watched.logged("Traceback") == []


@pytest.mark.timeout(300)
@pytest.mark.cluster("kubernetes")
@pytest.mark.parametrize(("code", "retry_after_s"), [(429, 2), (500, None), (503, 1)])
def test_while_everything_is_refused_it_asks_no_sooner_than_it_may_and_goes_on_after_it(
    workload: FaultWorkload, proxy: FaultProxy, start: Starter, code: int, retry_after_s: int | None
) -> None:
    watched = start()
    workload.begin()
    requests_before = len(proxy.requests)
    with proxy.refusing(code, retry_after_s=retry_after_s, which=every):
        proxy.cut()
        workload.change()
        for kind in KINDS:
            watched.process.wait_for_log(f"cannot watch {kind}", str(code), after=watched.since)
        first = proxy.requests[requests_before]
        until(
            "it asks no more",
            lambda: proxy.requests[-1].at_s - first.at_s >= REFUSED_S,
            deadline_s=2 * DEADLINE_S,  # it asks ever more seldom
        )
        refused = proxy.requests[requests_before:]
    assert len(refused) >= 2 * len(KINDS)
    for target in {each.target.partition("?")[0] for each in refused}:
        times = [each.at_s for each in refused if each.target.partition("?")[0] == target]
        assert all(later - sooner >= (retry_after_s or 0) for sooner, later in itertools.pairwise(times)), target
    workload.await_healed()
    figures = watched.figures.read()
    assert figures.requests(str(code)) >= len(refused)
    for kind in KINDS:
        assert figures.restarts("throttled" if code == 429 else "server_error", kind) >= 2
        watched.process.wait_for_log(f"watching {kind}", "again", after=watched.since)
        assert len(watched.logged(f"cannot watch {kind}")) == 1, "it is said once"


def test_when_the_api_server_has_forgotten_what_happened_meanwhile_all_is_listed_anew(
    kubectl: Kubectl, workload: FaultWorkload, proxy: FaultProxy, start: Starter
) -> None:
    watched = start()
    workload.begin()
    before = watched.figures.read()
    with proxy.unreachable():
        proxy.await_count("closed", len(KINDS))
        workload.change()
        kubectl("delete", "pods", "-l", "memcached_cr=resized", "--wait=false")
        kubectl.cluster.restart_apiserver()
        refresh_controllers(kubectl)
    workload.await_healed()
    # A kind of which nothing has changed may be listed last.
    after = eventually(
        watched.figures.read, lambda now: all(now.relists(kind) > before.relists(kind) for kind in KINDS), what="lists"
    )
    assert [kind for kind in KINDS if after.restarts("expired", kind) == before.restarts("expired", kind)] == []
    assert watched.logged("cannot watch", " 410 ") == [], "it is routine"
    assert watched.logged("Traceback") == []


def refresh_controllers(kubectl: Kubectl) -> None:
    """Kubernetes' own controllers wait for up to a minute after an API server has come back, and pods with them."""
    kubectl.cluster.stop_controller_manager()
    kubectl.cluster.start_controller_manager()
