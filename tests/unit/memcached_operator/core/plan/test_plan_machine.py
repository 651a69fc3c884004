"""Whatever happens to a Memcached, its clients' list keeps its promises, and in the end all is as specified."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from memcached_operator.api.v1alpha1 import Spec, Workload
from tests.unit.memcached_operator.server_model import Cluster

kinds = st.sampled_from(["Deployment", "StatefulSet"])
seconds = st.sampled_from([0, 1, 29, 30, 31, 100])


class Servers(RuleBasedStateMachine):
    """People, Kubernetes and the operator, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster(Spec(size=2, workload="StatefulSet"))

    @rule(size=st.integers(0, 4))
    def size_is_changed(self, size: int) -> None:
        self.cluster.spec = self.cluster.spec.model_copy(update={"size": size})

    @rule(kind=kinds)
    def workload_is_changed(self, kind: Workload) -> None:
        self.cluster.spec = self.cluster.spec.model_copy(update={"workload": kind})

    @rule(drain_s=seconds)
    def drain_seconds_are_changed(self, drain_s: int) -> None:
        self.cluster.spec = self.cluster.spec.model_copy(update={"drainPeriodSeconds": drain_s})

    @rule(dies=st.booleans())
    def operator_reconciles(self, dies: bool) -> None:
        self.cluster.reconcile(dies=dies)

    @rule()
    def kubernetes_makes_pods(self) -> None:
        self.cluster.control()

    @rule()
    def all_pods_become_ready(self) -> None:
        self.cluster.control()
        self.cluster.pods = dict.fromkeys(self.cluster.pods, True)

    @precondition(lambda self: self.cluster.pods)
    @rule(data=st.data(), ready=st.booleans())
    def a_pod_becomes_ready_or_unready(self, data: st.DataObject, ready: bool) -> None:
        self.cluster.pods[data.draw(st.sampled_from(sorted(self.cluster.pods)))] = ready

    @precondition(lambda self: self.cluster.pods)
    @rule(data=st.data())
    def a_pod_is_lost(self, data: st.DataObject) -> None:
        self.cluster.end(data.draw(st.sampled_from(sorted(self.cluster.pods))))

    @precondition(lambda self: self.cluster.replicas)
    @rule(data=st.data(), replicas=st.integers(0, 5))
    def somebody_scales_a_workload(self, data: st.DataObject, replicas: int) -> None:
        kind = data.draw(st.sampled_from(sorted(self.cluster.replicas)))
        if replicas >= self.cluster.replicas[kind]:  # what a person removes is that person's affair
            self.cluster.replicas[kind] = replicas

    @precondition(lambda self: self.cluster.replicas)
    @rule(data=st.data())
    def somebody_deletes_a_workload(self, data: st.DataObject) -> None:
        self.cluster.delete(data.draw(st.sampled_from(sorted(self.cluster.replicas))))

    @precondition(lambda self: "StatefulSet" in self.cluster.replicas)
    @rule()
    def stateful_set_is_deleted_without_its_pods(self) -> None:
        del self.cluster.replicas["StatefulSet"]

    @rule(passed_s=seconds)
    def time_passes(self, passed_s: int) -> None:
        self.cluster.now += timedelta(seconds=passed_s)

    def teardown(self) -> None:
        self.cluster.quiet_down()


Servers.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
test_servers = Servers.TestCase
