"""The operator before an API server that misbehaves on request: what users change meanwhile is done, with few words."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from kube_simulator.faults import Break, Delay, End, Fault, Refuse, Rule, SendError, Stall
from operator_runtime.testing.waiting import eventually
from tests.cluster import await_established, make_namespace
from tests.faults.conftest import troubles
from tests.integration.conftest import CRD, Operators, memcached
from tests.integration.oracle import wait
from tests.integration.requests import WATCHED
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess
from tests.simulated_cluster import SimulatedCluster

pytestmark = pytest.mark.cluster("simulator")

Start = Callable[..., OperatorProcess]

AGENT = "memcached-operator/"
KINDS = ("memcacheds", "deployments", "pods")


class Faulty:
    """A simulator that misbehaves towards the operator alone."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster

    def add(self, fault: Fault, *, verb: str, resource: str = "", times: int | None = None) -> Rule:
        """Misbehave from the operator's next request on that fits."""
        return self.cluster.add_fault(fault, verb=verb, resource=resource, agent=AGENT, times=times)

    def clear(self) -> None:
        """Behave."""
        self.cluster.clear_faults()

    def end_watches(self) -> None:
        """End all watches cleanly, so that the next ones meet what was added."""
        self.cluster.end_watches()

    def await_use(self, rule: Rule) -> None:
        """Wait until a rule has met a request."""
        eventually(lambda: self.cluster.call(lambda: rule.used), lambda used: used > 0)


@pytest.fixture(scope="module")
def simulated() -> Iterator[SimulatedCluster]:
    """A simulator of this module's own, with the CRD."""
    with SimulatedCluster() as cluster:
        cluster.kubectl("apply", "--server-side", "-f", str(CRD))
        await_established(cluster.kubectl, "crd/memcacheds.cache.example.com")
        yield cluster


@pytest.fixture
def faulty(simulated: SimulatedCluster) -> Iterator[Faulty]:
    """It behaves again after each test."""
    found = Faulty(simulated)
    yield found
    found.clear()


def operators(simulated: SimulatedCluster, ends: ExitStack) -> Start:
    """Starts operators for all namespaces."""
    started = Operators(simulated, ends)

    def start(*arguments: str) -> OperatorProcess:
        return started.start_with_kubeconfig(simulated.kubeconfig_path, "--all-namespaces", *arguments)

    return start


@pytest.fixture
def start(simulated: SimulatedCluster) -> Iterator[Start]:
    """Operators that end with the test."""
    with ExitStack() as ends:
        yield operators(simulated, ends)


@pytest.fixture(scope="class")
def operator(simulated: SimulatedCluster) -> Iterator[OperatorProcess]:
    """One for all tests of a class, in sync; others beside it would meet its faults."""
    with ExitStack() as ends:
        yield operators(simulated, ends)().ready()


@pytest.fixture
def kubectl(simulated: SimulatedCluster) -> Kubectl:
    """kubectl in a namespace of the test's own."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    make_namespace(simulated, name)
    return Kubectl(simulated, name)


class Log:
    """What an operator has logged since this was made."""

    def __init__(self, operator: OperatorProcess) -> None:
        self._operator = operator
        self.start = len(operator.lines)

    def said(self, *texts: str) -> list[str]:
        """The lines that hold all texts."""
        return [line for line in self._operator.lines[self.start :] if all(text in line for text in texts)]

    def troubles(self) -> list[str]:
        """`tests.faults.conftest.troubles`."""
        return troubles(self._operator.lines[self.start :])


def create_and_wait(kubectl: Kubectl, *names: str) -> None:
    kubectl.apply(*(memcached(name, 2) for name in names))
    for name in names:
        wait(kubectl, f"mc/{name}", ".status.replicas", 2)


class TestRefusals:
    @pytest.mark.parametrize(
        ("code", "retry_after_s", "words"),
        [(500, None, "500 InternalError"), (503, None, "503 ServiceUnavailable"), (429, 1, "429 TooManyRequests")],
    )
    def test_watches_that_are_refused_are_said_once_for_each_kind_and_begin_again(
        self,
        faulty: Faulty,
        operator: OperatorProcess,
        kubectl: Kubectl,
        code: int,
        retry_after_s: int | None,
        words: str,
    ) -> None:
        create_and_wait(kubectl, "resized", "bared", "gone")
        log = Log(operator)
        faulty.add(Refuse(code, retry_after_s), verb="watch")
        faulty.end_watches()
        for kind in WATCHED.values():
            operator.wait_for_log(f"cannot watch {kind}", words, "goes on by itself", after=log.start)
        kubectl("scale", "mc/resized", "--replicas=3")
        kubectl("delete", "deployment/bared", "mc/gone")
        # Of each kind something comes by the new watches: that they are well is said with the first thing that does.
        kubectl.apply(memcached("new", 1, workload="StatefulSet", networkPolicy={"allowFrom": []}, publish="ConfigMap"))
        faulty.clear()
        wait(kubectl, "mc/resized", ".status.replicas", 3)
        kubectl.wait("deployment/bared", "create")
        wait(kubectl, "mc/new", ".status.replicas", 1)
        for kind in WATCHED.values():
            operator.wait_for_log(f"watching {kind}", "again", after=log.start)
            assert len(log.said(f"cannot watch {kind}")) == 1, "it is said once"
        assert log.said("attempt") == log.said("Traceback") == []

    def test_writes_that_are_refused_are_made_when_the_server_says_and_said_once_each(
        self, faulty: Faulty, operator: OperatorProcess, kubectl: Kubectl
    ) -> None:
        log = Log(operator)
        rules = [
            faulty.add(Refuse(429, retry_after_s=1), verb="create", resource="deployments", times=2),
            faulty.add(Refuse(500), verb="patch", resource="memcacheds/status", times=2),
            faulty.add(Refuse(500), verb="create", resource="events", times=1),
        ]
        create_and_wait(kubectl, "refused")
        for rule in rules:
            faulty.await_use(rule)
        assert [rule.times_left for rule in rules[:2]] == [0, 0]
        operator.wait_for_log("refused: recovered after 3 failed attempts", after=log.start)
        # The second look reports the refused Deployment, and its status is refused as well.
        for attempt, words in ("attempt 1 failed, next one in ", "429 TooManyRequests"), ("attempt 2 ", "500 Internal"):
            assert len(log.said("refused: ", attempt, words)) == 1, "it is said once"
        assert len(log.said("attempt ")) == 2, "and of no other attempt"
        assert log.said("are not written") == log.said("Traceback") == []


class TestStreams:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("fault", ["refused with 410", "410 in the middle", "ended", "cut in the middle of a line"])
    def test_a_watch_that_breaks_once_is_mended_without_a_word(
        self, faulty: Faulty, operator: OperatorProcess, kubectl: Kubectl, fault: str, kind: str
    ) -> None:
        log = Log(operator)
        faults: dict[str, Fault] = {
            "refused with 410": Refuse(410),
            "410 in the middle": SendError(410, after_events=1),
            "ended": End(after_events=1),
            "cut in the middle of a line": Break(after_events=1),
        }
        mark = faulty.cluster.audit_mark()
        rule = faulty.add(faults[fault], verb="watch", resource=kind, times=1)
        faulty.end_watches()
        faulty.await_use(rule)
        create_and_wait(kubectl, "first", "second", "third")
        kubectl("scale", "mc/second", "--replicas=1")
        kubectl("delete", "deployment/third")
        wait(kubectl, "mc/second", ".status.replicas", 1)
        kubectl.wait("deployment/third", "create")
        wait(kubectl, "mc/third", ".status.replicas", 2)
        requests = faulty.cluster.audit_events(since=mark, user_agent=AGENT)
        watches = [each for each in requests if (each.verb, each.resource) == ("watch", kind)]
        assert len(watches) >= 2, "the one that broke, and another"
        # Of kinds of which no Memcached here has any, nothing comes before the watch is ended again: that is said.
        assert [line for each in KINDS for line in log.said(f"cannot watch {WATCHED[each]}")] == []
        assert log.said("attempt") == log.said("Traceback") == []

    def test_what_happened_while_no_watch_ran_is_seen_though_the_history_is_gone(
        self, faulty: Faulty, operator: OperatorProcess, kubectl: Kubectl
    ) -> None:
        create_and_wait(kubectl, "resized", "bared", "gone")
        log = Log(operator)
        stalls = [faulty.add(Stall(), verb="watch", resource=kind) for kind in KINDS]
        faulty.end_watches()
        for stall in stalls:
            faulty.await_use(stall)
        kubectl("scale", "mc/resized", "--replicas=3")
        kubectl("delete", "deployment/bared", "mc/gone")
        kubectl.apply(memcached("new", 1))
        faulty.cluster.forget_history()
        faulty.clear()  # the stalled requests are answered now, with 410
        wait(kubectl, "mc/resized", ".status.replicas", 3)
        kubectl.wait("deployment/bared", "create")
        wait(kubectl, "mc/new", ".status.replicas", 1)
        assert log.troubles() == []


class TestOperatorsOfTheirOwn:
    def test_a_first_snapshot_that_is_cut_is_taken_anew(self, faulty: Faulty, start: Start, kubectl: Kubectl) -> None:
        before = start().ready()
        create_and_wait(kubectl, "first", "second", "third")
        assert before.stop() == 0
        kubectl("delete", "deployment/first")
        kubectl("scale", "mc/second", "--replicas=3")
        rules = [
            faulty.add(Break(after_events=1), verb="watch", resource="memcacheds", times=1),
            faulty.add(SendError(410, after_events=1), verb="watch", resource="deployments", times=1),
            faulty.add(Break(after_events=2), verb="watch", resource="pods", times=1),
        ]
        another = start()
        log = Log(another)
        another.ready()
        assert [rule.used for rule in rules] == [1, 1, 1]
        kubectl.wait("deployment/first", "create")
        wait(kubectl, "mc/second", ".status.replicas", 3)
        assert log.troubles() == []
        assert another.stop() == 0

    def test_a_watch_that_never_answers_is_given_up_for_another(
        self, faulty: Faulty, start: Start, kubectl: Kubectl
    ) -> None:
        operator = start("--watch-silence-limit-s=2").ready()
        stall = faulty.add(Stall(), verb="watch", resource="memcacheds", times=1)
        faulty.end_watches()
        faulty.await_use(stall)
        create_and_wait(kubectl, "meanwhile")
        assert not stall.removed.is_set(), "the first request hangs still"
        assert not any("Traceback" in line for line in operator.lines)
        assert operator.stop() == 0

    def test_delays_and_answers_that_are_cut_delay_the_work_and_no_more(
        self, faulty: Faulty, start: Start, kubectl: Kubectl
    ) -> None:
        operator = start().ready()
        log = Log(operator)
        cut = [
            faulty.add(Break(), verb=verb, resource=resource, times=1)
            for verb, resource in (("create", "deployments"), ("patch", "memcacheds/status"))
        ]
        slow = faulty.add(Delay(0.5), verb="patch")
        create_and_wait(kubectl, "late")
        kubectl("scale", "mc/late", "--replicas=3")
        wait(kubectl, "mc/late", ".status.replicas", 3)
        assert [rule.used for rule in cut] == [1, 1]
        assert slow.used >= 2
        assert log.troubles() == []
        assert operator.stop() == 0
