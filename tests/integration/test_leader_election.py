"""Two operators, one of which works: who writes when, read from the API server's audit log.

Of time only what the protocol forbids is asserted. How soon it acts is shown on a fake clock.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kubernetes_asyncio.client import CoordinationV1Api

from kube_simulator.access.pki import Authority
from lab.audit import Mark
from operator_runtime.testing.waiting import eventually
from tests.faults.proxy import FaultProxy, Request
from tests.integration.accounts import LOCK, account_with_role, operator_rules
from tests.integration.admission import SlowAdmission
from tests.integration.conftest import Operators, memcached
from tests.integration.load import Load
from tests.integration.other_client import called
from tests.integration.replicas import LEADS, LEASE_S, LONG_LEASE, NOT_RENEWED, STANDS_BY, Replicas
from tests.integration.requests import received_at
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import logged_at

pytestmark = pytest.mark.core


@pytest.fixture
def replicas(kubectl: Kubectl, operators: Operators) -> Replicas:
    return Replicas(kubectl, operators)


def lease(kubectl: Kubectl) -> Any:
    """The lock as kubernetes-asyncio reads it, a V1Lease."""
    return called(kubectl.cluster, lambda api: CoordinationV1Api(api).read_namespaced_lease(LOCK, kubectl.namespace))


def test_the_lease_says_who_leads_since_when_and_how_often_that_changed(kubectl: Kubectl, replicas: Replicas) -> None:
    first, second = replicas.pair()
    held = lease(kubectl).spec
    assert held.holder_identity.startswith("first_")
    assert (held.lease_duration_seconds, held.lease_transitions) == (LEASE_S, 0)
    kubectl("label", "lease", LOCK, "team=caches")
    assert first.stop() == 0
    assert f"released Lease {kubectl.namespace}/{LOCK}" in first.log
    second.wait_for_log(LEADS)
    taken = lease(kubectl)
    assert taken.metadata.labels == {"team": "caches"}, "what others put on it stays"
    assert taken.spec.holder_identity.startswith("second_")
    assert taken.spec.lease_transitions == 1
    assert taken.spec.acquire_time > held.acquire_time
    assert second.stop() == 0
    freed = lease(kubectl).spec
    assert (freed.holder_identity or "", freed.lease_duration_seconds) == ("", 1)
    assert freed.acquire_time == taken.spec.acquire_time


def test_a_replica_that_cannot_watch_leaves_the_lease_to_one_that_can(kubectl: Kubectl, replicas: Replicas) -> None:
    weak = account_with_role(kubectl, operator_rules(without=[("*", "pods")]))
    first = replicas.start("first", account_dir=weak)
    first.wait_for_log("cannot watch pods")
    second = replicas.start("second").ready()
    second.wait_for_log(LEADS)
    kubectl.apply(memcached("one", 1))
    kubectl.wait("deployment/one", "create")
    assert STANDS_BY not in first.log
    assert LEADS not in first.log


def test_after_sigterm_of_the_leader_the_other_does_not_wait_for_the_lease_to_run_out(
    kubectl: Kubectl, replicas: Replicas
) -> None:
    first, second = replicas.pair(*LONG_LEASE)
    with Load(kubectl):
        first.wait_for_log("created Deployment")
        mark, requested_at = kubectl.cluster.audit_mark(), datetime.now(UTC)
        assert first.stop() == 0
        second.wait_for_log("created Deployment")
    began = replicas.first_write_after("second", requested_at, mark)
    assert all(received_at(each) < began for each in replicas.writes("first", mark))


def test_after_sigkill_of_the_leader_the_other_writes_once_the_lease_has_run_out(
    kubectl: Kubectl, replicas: Replicas
) -> None:
    first, second = replicas.pair()
    with Load(kubectl):
        first.wait_for_log("created Deployment")
        mark, killed = kubectl.cluster.audit_mark(), datetime.now(UTC)
        first.kill()
        second.wait_for_log("created Deployment")
    assert replicas.first_write_after("second", killed, mark) - replicas.renewed("first") >= timedelta(seconds=LEASE_S)


@pytest.mark.cluster("kubernetes")  # the simulator has no webhooks
def test_a_leader_that_was_stopped_with_a_full_queue_writes_nothing_after_the_other_began(
    kubectl: Kubectl, replicas: Replicas, tmp_path: Path
) -> None:
    workers = 2
    first = replicas.start("first", f"--workers={workers}").ready()
    first.wait_for_log(LEADS)
    second = replicas.start("second").ready()
    second.wait_for_log(STANDS_BY, "first_")
    mark = kubectl.cluster.audit_mark()
    many = {f"one-of-many-{number}": 1 for number in range(40)}
    with SlowAdmission(kubectl, "deployments", tmp_path) as admission:
        # Its workers wait for the API server to take the first ones, and all the others wait for the workers.
        kubectl.apply(*(memcached(name, size) for name, size in many.items()))
        admission.wait_for_request("one-of-many-0")
        first.send(signal.SIGSTOP)
        admission.release()
        second.wait_for_log("created Deployment")
        first.send(signal.SIGCONT)
        assert first.wait() == 1
        assert f"lost Lease {kubectl.namespace}/{LOCK}" in first.log
        eventually(lambda: deployment_sizes(kubectl), lambda sizes: sizes == many)
    began = received_at(replicas.writes("second", mark)[0])
    written = [received_at(each) for each in replicas.writes("first", mark)]
    assert 0 < len(written) <= workers, "what was under way when it was stopped, and nothing since"
    assert all(each < began for each in written)
    assert_each_created_once(replicas, ["first", "second"], mark)


def of_the_lease(request: Request) -> bool:
    """Whether a request reads or writes the Lease."""
    return "/leases" in request.target


CUTS: dict[str, Callable[[FaultProxy], AbstractContextManager[None]]] = {
    "everything": lambda front: front.losing(),
    "its Lease alone": lambda front: front.holding(of_the_lease),
}


@pytest.mark.parametrize(
    "lost",
    ["everything", pytest.param("its Lease alone", marks=[pytest.mark.slow, pytest.mark.cluster("kubernetes")])],
)
def test_a_leader_that_is_cut_off_stops_writing_before_the_other_may_begin(
    kubectl: Kubectl, replicas: Replicas, tmp_path: Path, lost: str
) -> None:
    cluster = kubectl.cluster
    authority = Authority(tmp_path / "front")
    pair = authority.server("front", ["127.0.0.1"])
    folder = account_with_role(kubectl, operator_rules())
    (folder / "ca.crt").write_bytes(authority.certificate.read_bytes())
    with FaultProxy(int(cluster.server.rpartition(":")[2]), cluster.ca_path, pair) as front:
        first = replicas.start("first", account_dir=folder, KUBERNETES_SERVICE_PORT=str(front.port)).ready()
        first.wait_for_log(LEADS)
        second = replicas.start("second").ready()
        second.wait_for_log(STANDS_BY, "first_")
        with Load(kubectl):
            first.wait_for_log("created Deployment")
            mark = cluster.audit_mark()
            with CUTS[lost](front):
                assert first.wait() == 1
                ended = logged_at(first.wait_for_log(NOT_RENEWED))
                led = logged_at(second.wait_for_log(LEADS))
                second.wait_for_log("created Deployment")
    before, after = ([received_at(each) for each in replicas.writes(name, mark)] for name in ("first", "second"))
    # What passed last is on its way for a moment, proxy and server included: the margin of the lengths of the lease
    # (election/lease_decision.py) is there for it, and it must have arrived before another may begin.
    assert max([ended, *before]) < led < min(after)
    assert lost == "everything" or before != [], "nothing but the missing renewal kept it from writing"


HAND_OVERS = 20


@pytest.mark.cluster("kubernetes")
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_twenty_hand_overs_under_constant_changes_lose_nothing_and_create_nothing_twice(
    kubectl: Kubectl, replicas: Replicas
) -> None:
    mark = kubectl.cluster.audit_mark()
    names = [f"replica-{number}" for number in range(HAND_OVERS + 2)]
    leader, standby = replicas.start(names[0]).ready(), None
    leader.wait_for_log(LEADS)
    standby = replicas.start(names[1]).ready()
    with Load(kubectl) as load:
        for number, name in enumerate(names[2:]):
            standby.wait_for_log(STANDS_BY)
            if number % 5 == 4:
                leader.kill()
            else:
                assert leader.stop() == 0
            standby.wait_for_log(LEADS)
            leader, standby = standby, replicas.start(name).ready()
        load.end()
        eventually(lambda: deployment_sizes(kubectl), lambda sizes: sizes == load.alive)
    assert load.gone != []
    assert_each_created_once(replicas, names, mark)


def deployment_sizes(kubectl: Kubectl) -> dict[str, int]:
    return {each["metadata"]["name"]: each["spec"]["replicas"] for each in kubectl.get("deployments")["items"]}


def assert_each_created_once(replicas: Replicas, names: list[str], mark: Mark) -> None:
    created = [
        each.name
        for name in names
        for each in replicas.writes(name, mark)
        if each.resource == "deployments" and each.code == 201
    ]
    assert created != []
    assert sorted(created) == sorted(set(created))
