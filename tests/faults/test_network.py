"""The operator behind a network that loses, breaks, delays and throttles what it should carry."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kube_simulator.access.pki import Authority
from operator_runtime.testing.waiting import eventually, until
from tests.conformance.api import Api
from tests.faults.conftest import Starter, Watched
from tests.faults.fault_workload import FaultWorkload
from tests.faults.figures import Reading
from tests.faults.proxy import FaultProxy, watch_of, writes_on
from tests.integration.accounts import LOCK, let_account_elect
from tests.integration.conftest import memcached
from tests.integration.permissions import another_leads
from tests.integration.requests import WATCHED
from tests.kubectl_in_namespace import Kubectl

pytestmark = pytest.mark.cluster("kubernetes")

# Far below the API server's bookmarks each minute, so that quiet watches are replaced all the time too.
IMPATIENT = ("--watch-silence-limit-s=4", "--request-timeout-s=4")
MANY = 2_000
CREATORS = 8
LEAST_BYTES = 500  # of a Memcached in a list, with room
# The list takes 14 s and more: longer than any silence that is borne, and a busy machine makes no such silence.
SLOW_BYTES_PER_S = 70_000
LESS_IMPATIENT = ("--watch-silence-limit-s=10", "--request-timeout-s=10")
# Of these there are events in each test.
KINDS = ("memcacheds", "deployments", "pods")


@pytest.mark.parametrize("kind", KINDS)
def test_a_watch_that_falls_silent_is_replaced_and_what_it_missed_is_done(
    workload: FaultWorkload, proxy: FaultProxy, start: Starter, kind: str
) -> None:
    watched = start(*IMPATIENT)
    workload.begin()
    before = watched.figures.read()
    with proxy.losing(watch_of(kind)):
        workload.change()
        # It was lost before anything changed, or the one after it was.
        await_silent(watched, before, WATCHED[kind])
    workload.await_healed()
    watched.process.wait_for_log(f"the watch of {kind}", "was silent", after=watched.since)
    assert watched.logged("Traceback") == []


def test_when_everything_falls_silent_it_is_not_ready_says_so_and_goes_on_when_bytes_come_again(
    workload: FaultWorkload, proxy: FaultProxy, start: Starter
) -> None:
    watched = start(*IMPATIENT)
    watched.figures.await_ready(True)
    workload.begin()
    before = watched.figures.read()
    with proxy.losing():
        workload.change()
        watched.figures.await_ready(False)
        for kind in WATCHED.values():
            # Of a kind of which nothing had come for a while it is the watch that was silent, of others its successor.
            watched.process.wait_for_log(f"cannot watch {kind}", "for 4 s", after=watched.since)
    workload.await_healed()
    watched.figures.await_ready(True)
    for kind in WATCHED.values():
        watched.process.wait_for_log(f"watching {kind}", "again", after=watched.since)
    await_silent(watched, before, *WATCHED.values())


def test_connections_that_only_one_side_knows_of_are_given_up(
    workload: FaultWorkload, proxy: FaultProxy, start: Starter
) -> None:
    watched = start(*IMPATIENT)
    workload.begin()
    before = watched.figures.read()
    with proxy.holding(writes_on("deployments")):
        workload.resize("resized", 2)
        proxy.await_count("held")
        proxy.lose(half_open=True)
    workload.change()
    workload.await_healed()
    assert watched.figures.read().requests("<error>") > before.requests("<error>"), "a call went out on one of them"
    await_silent(watched, before, *WATCHED.values())
    for kind in WATCHED.values():
        watched.process.wait_for_log(f"the watch of {kind}", "was silent", after=watched.since)
    assert watched.logged("Traceback") == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_connection_that_is_reset_in_the_middle_of_a_line_loses_no_event(
    workload: FaultWorkload, proxy: FaultProxy, start: Starter, kind: str
) -> None:
    watched = start()
    workload.begin()
    before = watched.figures.read()
    proxy.reset_in_mid_line(watch_of(kind))
    workload.change()
    proxy.await_count("reset")
    workload.await_healed()
    after = watched.figures.read()
    assert after.restarts("unreachable", WATCHED[kind]) > before.restarts("unreachable", WATCHED[kind])
    assert after.relists(WATCHED[kind]) == before.relists(WATCHED[kind]), "the next watch begins before it"
    assert watched.troubles() == [], "it is nobody's business"


def test_with_200_ms_of_latency_all_goes_its_way(workload: FaultWorkload, proxy: FaultProxy, start: Starter) -> None:
    with proxy.delaying(0.2):
        watched = start()
        workload.begin()
        workload.change()
        workload.await_healed()
    assert proxy.count["delayed"] > 0
    figures = watched.figures.read()
    assert [figures.relists(kind) for kind in WATCHED.values()] == [1] * len(WATCHED)
    assert figures.requests("<error>") == 0
    assert watched.troubles() == []


def test_a_long_list_over_a_slow_line_is_waited_for_as_long_as_bytes_come(
    kubectl: Kubectl, workload: FaultWorkload, proxy: FaultProxy, start: Starter
) -> None:
    """With a standby, or it would have a Deployment to make for each."""
    create_many(kubectl, MANY)
    let_account_elect(kubectl)
    another_leads(kubectl)
    kind = WATCHED["memcacheds"]
    with proxy.slow(SLOW_BYTES_PER_S):
        electing = ("--leader-elect", f"--leader-elect-id={LOCK}", f"--leader-elect-namespace={kubectl.namespace}")
        watched = start(*LESS_IMPATIENT, *electing)
        figures = watched.figures.read()
        assert figures.sum("watch_stream_cached_objects", resource=kind) == MANY
        assert (figures.relists(kind), figures.restarts("silent", kind)) == (1, 0), "in one go"
        assert proxy.count["slow bytes"] > MANY * LEAST_BYTES
        workload.create("latecomer", 1)
        until(
            "what came after the list is not seen",
            lambda: watched.figures.read().sum("watch_stream_cached_objects", resource=kind) == MANY + 1,
        )


def test_a_renewed_certificate_is_taken_without_a_word_and_a_strange_one_is_not(
    workload: FaultWorkload, proxy: FaultProxy, start: Starter, authority: Authority, tmp_path: Path
) -> None:
    watched = start()
    workload.begin()
    connections = proxy.count["connections"]
    proxy.show(authority.server("renewed", ["127.0.0.1"]))
    proxy.cut()
    workload.change()
    workload.await_healed()
    assert proxy.count["connections"] >= connections + len(WATCHED)
    assert watched.troubles() == []

    before = watched.figures.read()
    proxy.show(Authority(tmp_path / "stranger").server("strange", ["127.0.0.1"]))
    proxy.cut()
    workload.resize("resized", 2)
    for plural, kind in WATCHED.items():
        # Where nothing came since the first cut, the second one is what is told of.
        why = "certificate is not trusted" if plural in KINDS else ""
        watched.process.wait_for_log(f"cannot watch {kind}", why, after=watched.since)
        if plural in KINDS:
            assert watched.figures.read().restarts("unreachable", kind) >= before.restarts("unreachable", kind) + 2
    proxy.show(authority.server("again", ["127.0.0.1"]))
    workload.await_sizes({"resized": 2})
    for plural in KINDS:  # of others it is known with the next bookmark, within a minute
        watched.process.wait_for_log(f"watching {WATCHED[plural]}", "again", after=watched.since)
    for kind in WATCHED.values():
        assert len(watched.logged(f"cannot watch {kind}")) == 1, "it is said once"
    assert watched.logged("Traceback") == []


def await_silent(watched: Watched, before: Reading, *kinds: str) -> None:
    """Wait until a watch of each of these kinds has ended as it was silent, since then."""

    def others() -> list[str]:
        now = watched.figures.read()
        return [kind for kind in kinds if now.restarts("silent", kind) <= before.restarts("silent", kind)]

    eventually(others, lambda found: found == [], what="that watches of all kinds are given up as silent")


def create_many(kubectl: Kubectl, count: int) -> None:
    """Create so many Memcacheds."""
    path = f"/apis/cache.example.com/v1alpha1/namespaces/{kubectl.namespace}/memcacheds"

    def create(part: int) -> None:
        api = Api(kubectl.cluster, kubectl.cluster.kubeconfig_path)
        try:
            for number in range(part, count, CREATORS):
                api.post(path, memcached(f"cache-{number}", 0)).expect(201)
        finally:
            api.close()

    with ThreadPoolExecutor(CREATORS) as pool:
        list(pool.map(create, range(CREATORS)))
