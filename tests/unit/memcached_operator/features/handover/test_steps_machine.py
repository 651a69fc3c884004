"""Whatever happens while the list of servers changes, a hand-over keeps its promises, and in the end all is at rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from memcached_operator.api.status import HandoverStatus, HandoverStep, Status
from memcached_operator.api.v1alpha1 import Handover, Spec
from memcached_operator.core.outcome import soonest
from memcached_operator.core.plan.plan import ListPolicy, listed_ordinals, plan
from memcached_operator.features.handover.situation import (
    Advance,
    EmptyServers,
    GiveUp,
    HandoverServer,
    HandoverWait,
    Nothing,
    Peers,
    PeersChange,
    Purge,
    PurgeState,
    Resume,
    SetPeers,
    Situation,
    StatusOrigin,
    desired_list,
    unchanged_list,
)
from memcached_operator.features.handover.steps import are_servers_kept, decide_handover, is_list_frozen
from tests.unit.memcached_operator.server_model import KEY, START, named_pod, workload_of

FOR_S, DRAIN_S = 60, 5
sizes = st.integers(0, 4)
STATUS_FIELDS = ("handover", "draining", "workload", "serverList")


@dataclass
class Pod:
    """A server and its pod.

    Attributes:
        annotation: what the operator wrote there.
        read: what its memcached has read of that.
        hangs: it reads nothing, and does not answer.
        outdated: what the operator has written of that.
        emptied: the operator has emptied it since it is ready.
        is_stale: it may have values that others changed while it was away.
    """

    ordinal: int
    address: str
    ready_since: datetime | None = None
    annotation: Peers | None = None
    read: Peers | None = None
    hangs: bool = False
    outdated: bool = False
    emptied: bool = False
    is_stale: bool = False

    def names(self, other: Pod) -> bool:
        return self.read is not None and other.address in self.read.addresses


def _addresses(pod: Pod) -> tuple[str, ...]:
    return pod.annotation.addresses if pod.annotation is not None else ()


def _queried(peers: Peers | None) -> set[str]:
    return set(peers.addresses) - peers.joining if peers is not None else set()


@dataclass
class Cluster:
    """A StatefulSet, and an operator that hands over.

    Attributes:
        clients_have: the list that clients were given last.
        former_until: until then some have the one before it.
        believed: what the operator that leads wrote last, and what was there before.
        led_since: since when it leads, or sees that size.
        is_tampered: another client changed the status since the list was published last.
        left: when servers left the list.
    """

    size: int = 2
    desired: bool = True
    readable: bool = True
    now: datetime = START
    status: Status = field(default_factory=Status)
    replicas: int = 0
    pods: dict[int, Pod] = field(default_factory=dict)
    made: int = 0
    purge: PurgeState = PurgeState.DUE
    purge_of: str = ""
    purging: set[str] = field(default_factory=set)
    purged: set[str] = field(default_factory=set)
    clients_have: tuple[str, ...] = ()
    former_until: datetime = START
    left: dict[int, datetime] = field(default_factory=dict)
    believed: tuple[HandoverStatus | None, ...] = ()
    led_since: datetime = START
    is_tampered: bool = False

    @property
    def spec(self) -> Spec:
        handover = Handover(periodSeconds=FOR_S) if self.desired else None
        return Spec(size=self.size, workload="StatefulSet", drainPeriodSeconds=DRAIN_S, handover=handover)

    def reconcile(self, *, dies: bool = False) -> float | None:
        """One reconcile, in which the operator may die before it writes the status; seconds until the next."""
        last = self.status.handover
        if last is None or last.startTime != self.purge_of:
            self.purge = PurgeState.DUE
            self.purged.clear()
        ready = {f"s-{pod.ordinal}": pod.address for pod in self.pods.values() if pod.ready_since is not None}
        unpurged = frozenset(name for name, address in ready.items() if address not in self.purged)
        purge = PurgeState.FAILED if self.purge is PurgeState.DONE and unpurged else self.purge
        servers = tuple(
            HandoverServer(
                f"s-{pod.ordinal}",
                pod.ordinal,
                pod.address,
                int(pod.ready_since.timestamp()) if pod.ready_since is not None else None,
                pod.annotation,
                pod.annotation is not None and pod.read == pod.annotation and not pod.hangs,
                outdated=pod.outdated,
                emptied=pod.emptied,
            )
            for pod in self.pods.values()
        )
        if self.readable:
            desired = desired_list(self.spec, self.status)
        elif last is not None and last.step is not HandoverStep.COMPLETE:
            desired = unchanged_list(
                b'{"handover": {"periodSeconds": %d}}' % FOR_S if self.desired else b"{}", self.status
            )
        else:
            return None
        origin = StatusOrigin.OWN if last in self.believed else StatusOrigin.FOREIGN
        origin = origin if self.believed else StatusOrigin.FORMER
        found = Situation(
            last,
            desired.size,
            desired.listed,
            servers,
            desired.for_s,
            self.now,
            purge,
            unpurged,
            self.led_since,
            origin=origin,
        )
        action = decide_handover(found)
        state, next_s = last, None if isinstance(action, Nothing) else 0.0
        match action:
            case SetPeers(changes):
                self.set_peers(changes[: 1 if dies else None], last)
            case EmptyServers(emptied, is_last):
                for server in emptied:
                    pod = self.pods[server.ordinal]
                    if not is_last:
                        pod.emptied = True
                        continue
                    assert not self.is_published or self.is_known(pod)
                    pod.is_stale = pod.outdated = False
            case Purge(purging, unused_since_s):
                assert self.now >= self.former_until
                assert unused_since_s >= self.former_until.timestamp(), (
                    "older values of clients of the former list stay"
                )
                self.purging = {each.address for each in purging}
                self.purge, self.purge_of = PurgeState.RUNNING, last.startTime if last is not None else ""
            case Advance(to) | GiveUp(to) | Resume(to):
                state = to
                if self.is_published and isinstance(action, Advance) and to != last:
                    in_time = action.publishes or not self.is_awaited or not found.listed
                    assert in_time, "clients had no time to follow the list"
                # Each may have values of keys that belonged to it by a former list, unless it was told of all writes.
                for pod in self.pods.values():
                    begins = to is not None and to.step is HandoverStep.PREPARING
                    pod.is_stale |= begins and not (_addresses(pod) and self.is_known(pod))
            case HandoverWait(requeue_s=requeue_s):
                next_s = requeue_s
        self.believed = (state,) if origin is StatusOrigin.FOREIGN else (last, state)
        if not self.readable:
            self.status = msgspec.structs.replace(self.status, handover=state)
            return next_s
        policy = ListPolicy(is_list_frozen(found, action), are_servers_kept(found, action))
        owned = {"StatefulSet": workload_of("StatefulSet", self.replicas)} if self.replicas else {}
        pods = [named_pod(each.ordinal, ready=each.ready_since is not None) for each in self.pods.values()]
        planned = plan(KEY, self.spec, self.status, owned, pods, self.now, policy)  # type: ignore[arg-type]
        self.scale(planned.replicas["StatefulSet"])
        if not dies:
            listed = planned.servers.listed
            if isinstance(action, Advance) and action.publishes:
                self.publishes(listed)
            elif last is not None and self.desired and not isinstance(action, GiveUp) and self.size and found.listed:
                assert listed == self.status.serverList, "the list changed without a hand-over"
            self.clients_get(listed)
            draining = planned.servers.draining or None
            self.status = Status(workload="StatefulSet", serverList=listed, draining=draining, handover=state)
        return soonest(next_s, planned.next_s)

    def set_peers(self, changes: Sequence[PeersChange], last: HandoverStatus | None) -> None:
        """Change annotations of pods, which no server has read yet."""
        stale = {each.address for each in self.pods.values() if each.is_stale}
        full = {each.address for each in self.pods.values() if each.outdated and not each.emptied}
        waits = (
            any(map(_addresses, self.pods.values()))
            and self.is_awaited
            and (last is None or last.step is not HandoverStep.DISCONNECTING)
        )
        for each in changes:
            pod = self.pods[each.server.ordinal]
            assert not set(each.peers.addresses).difference(_addresses(pod)) & full, "it is not emptied"
            assert not (_queried(each.peers) - _queried(pod.annotation)) & stale, "others get older values"
            dropped = set(_addresses(pod)).difference(each.peers.addresses)
            pod.annotation = each.peers
            pod.outdated |= each.outdated
            for other in self.pods.values():
                other.is_stale |= other.address in dropped and last is not None and last.step is HandoverStep.PREPARING
        # One without an annotation, while the others have some, is emptied before anybody reads of it.
        kept = (each for each in self.pods.values() if not (self.is_published and each.annotation is None))
        known = [each for each in kept if each.ready_since and not (each.hangs or each.outdated)]
        assert not waits or len(known) < 2 or any(map(_addresses, self.pods.values())), "clients have two lists"
        # From now on others change what these may have, and do not tell them.
        connected = [each for each in self.pods.values() if _addresses(each)]
        named = {address for each in connected for address in _addresses(each)}
        for pod in self.pods.values():
            pod.emptied &= pod.address in named
        for pod in self.pods.values():
            unknown = any(each is not pod and pod.address not in _addresses(each) for each in connected)
            if self.is_published and unknown:
                pod.is_stale = True
                assert pod.outdated or pod.annotation is None or self.is_tampered

    @property
    def is_awaited(self) -> bool:
        """Clients may have two lists, between which servers hand over."""
        return self.desired and self.readable and self.size > 0 and self.now < self.former_until

    def others(self, pod: Pod) -> list[Pod]:
        return [each for each in self.pods.values() if each is not pod and each.ready_since is not None]

    def is_known(self, pod: Pod) -> bool:
        """All others tell it of what they change."""
        return all(each.hangs or each.names(pod) for each in self.others(pod))

    def clients_get(self, listed: tuple[str, ...]) -> None:
        """The list as the status has it from now on; while that has none, clients keep the one that they have."""
        listed_now, former = (
            listed_ordinals(Status(workload="StatefulSet", serverList=each)) for each in (listed, self.clients_have)
        )
        left = (former | set(self.left)) - listed_now
        self.left = {each: self.left.get(each, self.now) for each in left if each in self.pods}
        if listed and listed != self.clients_have:
            self.former_until = self.now + timedelta(seconds=FOR_S if self.clients_have else 0)
            self.clients_have = listed

    def publishes(self, listed: tuple[str, ...]) -> None:
        """All servers, old and new, have each other as peers when the list changes."""
        self.is_tampered = False
        assert len(listed) == self.size
        ready = [each for each in self.pods.values() if each.ready_since is not None]
        assert {each.ordinal for each in ready} >= set(range(self.size))
        for each in ready:
            assert all(each.hangs or each.names(other) for other in ready if other is not each)
            assert not each.is_stale

    def scale(self, replicas: int) -> None:
        self.replicas = replicas
        for ordinal in [each for each in self.pods if each >= replicas]:
            gone, since = self.pods.pop(ordinal), self.left.pop(ordinal, START)
            drained = self.now >= since + timedelta(seconds=DRAIN_S)
            assert drained or gone.ready_since is None, "a server was removed that clients may use"
            if self.status.handover is not None and self.desired and self.size and not self.is_tampered:
                named = [each for each in self.others(gone) if each.names(gone) and not each.hangs]
                assert not named, "a server was removed that others ask"

    def control(self) -> None:
        for ordinal in range(self.replicas):
            if ordinal not in self.pods:
                self.made += 1
                self.pods[ordinal] = Pod(ordinal, f"10.0.{ordinal}.{self.made}", is_stale=self.is_published)

    @property
    def is_published(self) -> bool:
        return self.status.handover is not None and self.status.handover.step is HandoverStep.PUBLISHED

    def get_ready(self, pod: Pod) -> None:
        if pod.ready_since is None:
            pod.ready_since = self.now
            pod.emptied = False

    def read(self) -> None:
        for pod in self.pods.values():
            if not pod.hangs and pod.ready_since is not None:
                pod.read = pod.annotation

    def end_purge(self) -> None:
        """What is left was used since the former list had its last client."""
        if self.purge is PurgeState.RUNNING:
            self.purge = PurgeState.DONE
            self.purged |= self.purging
            for pod in self.pods.values():
                pod.is_stale &= pod.address not in self.purging

    def goes_well(self, starting: int) -> None:
        """One reconcile, after which so many servers get ready."""
        next_s = self.reconcile()
        self.control()
        for pod in [each for each in self.pods.values() if each.ready_since is None][:starting]:
            self.get_ready(pod)
        self.read()
        self.end_purge()
        self.now += timedelta(seconds=min(next_s or 0.1, 1.0))

    def quiet_down(self) -> None:
        """Leave it alone until it has come to rest: it must, and as is desired."""
        self.readable = True
        for pod in self.pods.values():
            pod.hangs = False
        self.read()
        for _ in range(400):
            before = repr((self.status, self.replicas, self.pods))
            next_s = self.reconcile()
            self.control()
            for pod in self.pods.values():
                self.get_ready(pod)
            self.read()
            self.end_purge()
            if before == repr((self.status, self.replicas, self.pods)) and next_s is None:
                break
            self.now += timedelta(seconds=next_s or 0.1)
        else:
            raise AssertionError(f"it never comes to rest: {self}")
        assert len(self.pods) == self.replicas == self.size
        assert listed_ordinals(self.status) == set(range(self.size))
        assert not any(each.annotation and each.annotation.addresses for each in self.pods.values())
        if self.status.handover is not None:
            assert self.desired
            assert self.status.handover.step is HandoverStep.COMPLETE


class HandoverReconciler(RuleBasedStateMachine):
    """People, Kubernetes, servers and leaders, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.cluster.quiet_down()

    @rule(size=sizes)
    def size_is_changed(self, size: int) -> None:
        self.cluster.size, self.cluster.led_since = size, self.cluster.now

    @rule(dies=st.booleans())
    def operator_reconciles(self, dies: bool) -> None:
        self.cluster.reconcile(dies=dies)
        self.cluster.control()

    @rule(reconciles=st.integers(2, 20), starting=st.integers(1, 4))
    def all_goes_well_for_a_while(self, reconciles: int, starting: int) -> None:
        for _ in range(reconciles):
            self.cluster.goes_well(starting)

    @rule(size=st.integers(1, 4), step=st.sampled_from(HandoverStep))
    def list_changes_until(self, size: int, step: HandoverStep) -> None:
        self.cluster.size, self.cluster.desired, self.cluster.readable = size, True, True
        for _ in range(200):
            if self.cluster.status.handover is not None and self.cluster.status.handover.step is step:
                break
            self.cluster.goes_well(4)

    @rule()
    def another_leads_who_must_purge_anew(self) -> None:
        self.cluster.purge = PurgeState.DUE
        self.cluster.purged = set()
        self.cluster.believed, self.cluster.led_since = (), self.cluster.now

    @rule(fails=st.booleans())
    def purge_ends(self, fails: bool) -> None:
        if fails and self.cluster.purge is PurgeState.RUNNING:
            self.cluster.purge = PurgeState.DONE
        self.cluster.end_purge()

    @rule()
    def servers_read_their_files(self) -> None:
        self.cluster.read()

    @precondition(lambda self: self.cluster.pods)
    @rule(data=st.data(), ready=st.booleans())
    def a_server_becomes_ready_or_unready(self, data: st.DataObject, ready: bool) -> None:
        pod = self.cluster.pods[data.draw(st.sampled_from(sorted(self.cluster.pods)))]
        if ready:
            self.cluster.get_ready(pod)
        elif pod.ready_since is not None:
            pod.ready_since = None

    @precondition(lambda self: self.cluster.pods)
    @rule(data=st.data())
    def a_server_hangs_or_goes_on(self, data: st.DataObject) -> None:
        pod = self.cluster.pods[data.draw(st.sampled_from(sorted(self.cluster.pods)))]
        pod.hangs = not pod.hangs
        self.cluster.read()

    @precondition(lambda self: self.cluster.pods)
    @rule(data=st.data())
    def a_pod_is_lost(self, data: st.DataObject) -> None:
        del self.cluster.pods[data.draw(st.sampled_from(sorted(self.cluster.pods)))]
        self.cluster.control()

    @rule(passed_s=st.sampled_from([1, 3, 10]))
    def time_passes(self, passed_s: int) -> None:
        self.cluster.now += timedelta(seconds=passed_s)

    @rule(minutes=st.sampled_from([1, 10]), led=st.booleans())
    def minutes_pass(self, minutes: int, led: bool) -> None:
        for _ in range(minutes * 6 if led else 0):
            self.cluster.now += timedelta(seconds=10)
            self.cluster.read()
            self.cluster.reconcile()
            self.cluster.control()
        if not led:
            self.cluster.now += timedelta(minutes=minutes)
            self.another_leads_who_must_purge_anew()

    @rule()
    def field_is_set_or_omitted(self) -> None:
        self.cluster.desired = not self.cluster.desired

    @rule(fields=st.sets(st.sampled_from(STATUS_FIELDS), min_size=1))
    def another_client_removes_fields_of_the_status(self, fields: set[str]) -> None:
        self.cluster.status = msgspec.structs.replace(self.cluster.status, **dict.fromkeys(fields))
        self.cluster.is_tampered = True

    @precondition(lambda self: self.cluster.status.handover is not None and self.cluster.believed)
    @rule(step=st.sampled_from(HandoverStep), end=st.sampled_from([None, "x"]))
    def another_client_restores_an_earlier_step(self, step: HandoverStep, end: str | None) -> None:
        last = self.cluster.status.handover
        former = HandoverStatus(step, last.startTime if last is not None else "", end)
        self.cluster.status = msgspec.structs.replace(self.cluster.status, handover=former)
        self.cluster.is_tampered = True
        self.operator_reconciles(dies=False)  # another leader would believe it

    @rule(readable=st.booleans())
    def specification_is_broken_or_mended(self, readable: bool) -> None:
        self.cluster.readable = readable

    def teardown(self) -> None:
        self.cluster.quiet_down()


HandoverReconciler.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
test_handovers = HandoverReconciler.TestCase
