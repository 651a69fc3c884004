"""A small cluster with one Memcached, as far as `plan.plan` sees it, and the promises that its plans must keep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from memcached_operator.api.status import Status
from memcached_operator.api.v1alpha1 import Spec, Workload
from memcached_operator.core.objects.labels import server
from memcached_operator.core.observed.pod_status import NO_PROBLEM
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.plan.plan import Plan, plan as plan_servers
from operator_runtime import ObjectKey
from tests.unit.memcached_operator.support import NAME, NAMESPACE, UID, pod_of

KEY = ObjectKey(NAMESPACE, NAME)
START = datetime(2026, 11, 21, 12, tzinfo=UTC)
NONE, NO_STATUS = Spec(size=0), Status()


def name_of(ordinal: int) -> str:
    """What a StatefulSet's server is listed as."""
    return server(NAME, NAMESPACE, ordinal)


def workload_of(kind: Workload, replicas: int, *, deleting: bool = False) -> WorkloadRecord:
    return WorkloadRecord(
        namespace=NAMESPACE, name=NAME, uid=f"uid-of-{kind}", resource_version="1", owner_kind="Memcached",
        owner_name=NAME, owner_uid=UID, made_for_uid=UID, deleting=deleting, kind=kind, generation=1, is_observed=True,
        revised=False, rolled_out=True, replicas=replicas,
    )  # fmt: skip


def named_pod(ordinal: int, *, ready: bool = True) -> PodRecord:
    """A pod of the StatefulSet."""
    name, uid = f"{NAME}-{ordinal}", f"uid-{ordinal}"
    return PodRecord(
        namespace=NAMESPACE, name=name, uid=uid, resource_version="1", memcached=NAME, revision="a", active=True,
        ready=ready, problem=NO_PROBLEM, ordinal=ordinal,
    )  # fmt: skip


def addressed_pod(number: int, *, ready: bool = True) -> PodRecord:
    """A pod of the Deployment."""
    return pod_of(str(number), ready=ready, address=f"10.0.0.{number}")


@dataclass
class Cluster:
    """What there is, and what was promised of it.

    Attributes:
        replicas: of each workload that there is.
        pods: by workload and number, whether each is ready.
        unlisted: since when each server that was listed is not any more.
        drained: those of them that have been so for long enough, at some time.
    """

    spec: Spec = NONE
    now: datetime = START
    status: Status = NO_STATUS
    replicas: dict[Workload, int] = field(default_factory=dict)
    pods: dict[tuple[Workload, int], bool] = field(default_factory=dict)
    unlisted: dict[tuple[Workload, int], datetime] = field(default_factory=dict)
    drained: set[tuple[Workload, int]] = field(default_factory=set)
    addresses: int = 0

    def plan(self) -> Plan:
        owned = {kind: workload_of(kind, replicas) for kind, replicas in self.replicas.items()}
        pods = [
            named_pod(number, ready=ready) if kind == "StatefulSet" else addressed_pod(number, ready=ready)
            for (kind, number), ready in self.pods.items()
        ]
        return plan_servers(KEY, self.spec, self.status, owned, pods, self.now)

    def reconcile(self, *, dies: bool = False) -> float | None:
        """Act on the plan and write the status, or die in between; when to reconcile again, in seconds."""
        for each, since in self.unlisted.items():
            if self.now - since >= timedelta(seconds=self.spec.drainPeriodSeconds):
                self.drained.add(each)
        plan = self.plan()
        for kind, replicas in plan.replicas.items():
            self.may_go(
                (kind, number) for kind_, number in self.pods if kind_ == kind == "StatefulSet" and number >= replicas
            )
            self.replicas[kind] = replicas
        if plan.removed is not None:
            assert plan.removed != plan.target
            self.may_go(each for each in self.pods if each[0] == plan.removed)
            self.delete(plan.removed)
        if not dies:
            self.write(plan)
        return plan.next_s

    def may_go(self, leaving: Iterable[tuple[Workload, int]]) -> None:
        """Hold the end of servers to the promise: not before clients were told of it, and had their time."""
        for each in leaving:
            assert each not in self.listed(self.status), f"{each} is removed while it is listed"
            assert each not in self.unlisted or each in self.drained, f"{each} is removed before it has drained"

    def write(self, plan: Plan) -> None:
        """Write the status, and hold the list to the promise."""
        before, last = self.listed(self.status), self.status
        workload, listed, draining = plan.servers
        if workload == last.workload == "StatefulSet":
            kept = [
                each for each in last.serverList or () if int(each.split(".")[0].rpartition("-")[2]) < self.spec.size
            ]
            assert set(kept) <= set(listed), "a server lost its place"
        if last.workload not in (None, workload):
            ready = sum(ready for (kind, _), ready in self.pods.items() if kind == workload)
            assert workload == self.spec.workload
            assert ready >= self.spec.size, "the list moved before the servers were there"
        self.status = Status(workload=workload, serverList=listed, draining=draining or None)
        after = self.listed(self.status)
        for each in (before - after) & self.pods.keys():
            self.unlisted[each] = self.now
        for each in after:
            self.unlisted.pop(each, None)
            self.drained.discard(each)

    def listed(self, status: Status) -> set[tuple[Workload, int]]:
        """The servers on a list; of a Deployment all, which leave it together only when it goes."""
        match status.workload:
            case "StatefulSet":
                names = {name_of(number): number for number in range(20)}
                return {("StatefulSet", names[each]) for each in status.serverList or ()}
            case "Deployment":
                return {each for each in self.pods if each[0] == "Deployment"}
            case _:
                return set()

    def control(self) -> None:
        """Let Kubernetes' controllers make and end pods until there are as many as are desired."""
        for kind, number in list(self.pods):
            if kind == "StatefulSet" and number >= self.replicas.get(kind, number + 1):
                self.end((kind, number))
        if "StatefulSet" in self.replicas:
            for ordinal in range(self.replicas["StatefulSet"]):
                self.pods.setdefault(("StatefulSet", ordinal), False)
        if "Deployment" in self.replicas:
            there = [each for each in self.pods if each[0] == "Deployment"]
            for each in there[self.replicas["Deployment"] :]:
                self.end(each)
            for _ in range(len(there), self.replicas["Deployment"]):
                self.addresses += 1
                self.pods["Deployment", self.addresses] = False

    def end(self, pod: tuple[Workload, int]) -> None:
        """A pod is gone."""
        del self.pods[pod]
        self.unlisted.pop(pod, None)
        self.drained.discard(pod)

    def delete(self, kind: Workload) -> None:
        """A workload goes, and its pods with it."""
        self.replicas.pop(kind, None)
        for each in [each for each in self.pods if each[0] == kind]:
            self.end(each)

    def quiet_down(self) -> None:
        """Leave the cluster alone until it has come to rest: it must, and as the specification says."""
        at_once = 0
        for _ in range(12):
            before = (self.status, dict(self.replicas), dict(self.pods))
            next_s = self.reconcile()
            self.control()
            self.pods = dict.fromkeys(self.pods, True)
            at_once = at_once + 1 if next_s == 0.0 else 0
            assert at_once < 3, "it reconciles again at once, for ever"
            if next_s is not None:
                self.now += timedelta(seconds=next_s)
            elif before == (self.status, self.replicas, self.pods):
                break
        else:
            raise AssertionError("it never comes to rest")
        size, kind = self.spec.size, self.spec.workload
        assert self.replicas == {kind: size}
        assert self.status.workload == kind
        assert self.status.draining is None
        assert len(self.status.serverList or ()) == size
        if kind == "StatefulSet":
            assert self.status.serverList == tuple(map(name_of, range(size)))
