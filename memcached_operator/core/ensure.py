"""The objects of one Memcached: each is kept as desired, or removed, whatever becomes of the others."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from msgspec.structs import replace
from prometheus_client import Metric

from memcached_operator.api.status import Problem, Reason, Status
from memcached_operator.api.v1alpha1 import Spec, Workload
from memcached_operator.core.change_messages import change_in_words
from memcached_operator.core.events import recorded_by
from memcached_operator.core.metrics import RepairCounts
from memcached_operator.core.objects.holder import holder, with_room
from memcached_operator.core.objects.labels import APPLIED_ANNOTATION, endpoint_label
from memcached_operator.core.objects.owned_kind import Known, OwnedKind
from memcached_operator.core.objects.owned_object import Codec, Manifest, OwnedRecord
from memcached_operator.core.objects.pod_template import scripts_of
from memcached_operator.core.objects.scripts import scripts_config_map
from memcached_operator.core.objects.service import SERVICES, service, with_names
from memcached_operator.core.objects.workload import DEPLOYMENT, STATEFUL_SET, desired_workload
from memcached_operator.core.objects.workload_types import WorkloadManifest
from memcached_operator.core.observed.caches import DEPLOYMENTS, MEMCACHEDS, PODS, STATEFUL_SETS, Caches
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.outcome import EMPTY, Attempt, ObjectsResult, Outcome, attempt
from memcached_operator.core.rollout.announcements import Announcements
from memcached_operator.core.rollout.live.live_memory import LiveMemory, SetLimit
from memcached_operator.core.rollout.rollout_lock import RolloutLock, rollouts_left
from memcached_operator.core.rollout.server_rollout import ServerRollout
from memcached_operator.core.rollout.workload_rollout import Keepers, WorkloadRollout
from memcached_operator.core.snapshot import Snapshot
from memcached_operator.features.restored.adoption import Adoption
from memcached_operator.servers.stats_cache import StatsCache
from operator_runtime import (
    Change,
    Conflict,
    Forbidden,
    Invalid,
    Keeper,
    Kind,
    NotFound,
    ObjectKey,
    Operator,
    ServerError,
    TooManyRequests,
)

logger = logging.getLogger(__name__)

_NO_IMAGE: Final = Problem(
    Reason.OPERATOR_IMAGE_UNKNOWN,
    "spec.discovery.autoDiscovery has no endpoint, as the operator cannot find out which image it runs: it is no pod, "
    "or may not get its own. Set --operator-image (OPERATOR_IMAGE).",
    blocking=False,
)


async def _unknown_image() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Config:
    """Configuration of a Memcached's reconcile, from the settings.

    Attributes:
        image: of a Memcached that names none.
        user_id: of the servers; None names none.
        operator_namespace: where the operator's own pods are, "" where it runs in no pod.
        status_delay_s: how long a status that is still changing may be held back.
        finalizer: put the finalizer on each Memcached.
        own_image: finds the image that the operator runs, "" where it is not known.
        credentials: the Secrets that servers require may be read.
        memory_scaling_window_s: for how long servers are observed before their memory grows.
    """

    image: str
    user_id: int | None
    status_delay_s: float
    operator_namespace: str = ""
    finalizer: bool = False
    own_image: Callable[[], Awaitable[str]] = _unknown_image
    credentials: bool = False
    memory_scaling_window_s: float = 600.0

    def workload(
        self, kind: Workload, memcached: MemcachedRecord, replicas: int, spec: Spec, paused: bool, restart: str
    ) -> WorkloadManifest:
        """The desired workload of that kind."""
        image = spec.image or self.image
        return desired_workload(
            kind, memcached.owner, replicas, image, self.user_id, spec, paused=paused, restart=restart
        )

    def holder(
        self, memcached: MemcachedRecord, spec: Spec, restart: str, annotations: Mapping[str, str]
    ) -> WorkloadManifest:
        """The StatefulSet of the holder of a server's items."""
        return holder(self.workload("StatefulSet", memcached, 1, with_room(spec), False, restart), annotations)


class Objects:
    """Keeps the objects of one Memcached at a time; see `ensure`.

    Attributes:
        adoption: takes over what was made for the Memcached in whose place one was restored.
    """

    def __init__(
        self,
        operator: Operator,
        caches: Caches,
        config: Config,
        *,
        set_limit: SetLimit,
        enqueue: Callable[[ObjectKey], None],
        stats_cache: StatsCache | None,
        clock: Callable[[], float],
    ) -> None:
        self._caches = caches
        self._config = config
        self._client = operator.client
        self._record_event = record_event = recorded_by(operator.events)
        self._counts = RepairCounts(caches.auxiliary)

        def owned(
            kind: Kind[Any], codec: Codec[Any], of: OwnedKind | None = None, **cache: Any
        ) -> Keeper[MemcachedRecord, Any, Any]:
            on_change = partial(self._report_change, kind.resource.kind, of)
            return operator.owned(MEMCACHEDS, kind, rules=codec.rules, on_change=on_change, **cache)

        workloads: Keepers = {
            "Deployment": owned(DEPLOYMENTS, DEPLOYMENT),
            "StatefulSet": owned(STATEFUL_SETS, STATEFUL_SET, optional=True),
        }
        states = operator.owners(MEMCACHEDS).states
        self.adoption = Adoption(operator.client, caches, states, record_event)
        memory = LiveMemory(
            operator.client,
            set_limit,
            record_event,
            credentials=config.credentials,
            stats_cache=stats_cache,
            clock=clock,
        )
        self._workloads = WorkloadRollout(
            caches,
            workloads,
            config.workload,
            memory,
            Announcements(memory, record_event),
            ServerRollout(operator.client, states, record_event, stats_cache, clock),
            RolloutLock(lambda: rollouts_left(caches), enqueue),
        )
        self._auxiliary: dict[OwnedKind, Keeper[MemcachedRecord, Any, OwnedRecord]] = {
            each: owned(each.kind, each.codec, each, labels=each.labels, optional=True) for each in caches.auxiliary
        }

    async def ensure(self, snapshot: Snapshot) -> ObjectsResult:
        """Create, repair and remove objects by the plan and the specification, and bring the servers to it."""
        memcached, plan, last = snapshot.memcached, snapshot.plan, snapshot.last
        of_scripts, missing = await self._ensure_scripts(snapshot)
        workloads = await self._workloads.ensure(snapshot, lacks_scripts=missing)
        # A list that servers leave is published before the time begins after which they are gone: the operator may end
        # in between. Any other is as the status has it, which coalesces what comes together.
        leave = not set(plan.servers.draining) <= set(last.draining or ())
        published = plan.servers.listed if leave and last.serverList is not None else last.serverList
        service, of_service = await self._ensure_service(snapshot)
        outcome = of_scripts + workloads.outcome + of_service
        for each in self._auxiliary:
            if each is not SERVICES:
                outcome += await self._ensure_auxiliary(each, snapshot, published)
        if outcome.foreign and (remedy := self.adoption.remedy(memcached)):
            outcome += Outcome((Problem(Reason.NOT_CONTROLLED, remedy, blocking=False),))
        return ObjectsResult(workloads, service, published, outcome)

    async def publish(self, snapshot: Snapshot, status: Status) -> bool:
        """Have the published list follow a status that was just written; report whether nothing prevented it."""
        outcome, snapshot = EMPTY, replace(snapshot, last=status)
        for each in self._auxiliary:
            if each.listed:
                outcome += await self._ensure_auxiliary(each, snapshot, status.serverList or ())
        return not (outcome.problems or outcome.waiting)

    def release(self, key: ObjectKey) -> None:
        """Release the rollout lock of a Memcached that is reconciled no more, so that others need not wait for it."""
        self._workloads.release(key)

    async def _ensure_service(self, snapshot: Snapshot) -> tuple[str, Outcome]:
        """Keep the Service; its name, "" where it is not there."""
        memcached, spec, plan, last = snapshot.memcached, snapshot.spec, snapshot.plan, snapshot.last
        if spec.workload != "StatefulSet" and plan.servers.has_names and last.service is not None:
            spec = with_names(spec)  # the names that clients know stay as long as their servers do
        desired = service(memcached.owner, spec, named=plan.servers.has_names)
        follows = any(each.workload == "StatefulSet" for each in last.draining or ())
        done = await self._ensure_one(SERVICES, snapshot, desired, follows=follows)
        there = desired is not None and done.kept is not None and done.kept.obj is not None
        return memcached.name if there else "", done.outcome

    async def _ensure_scripts(self, snapshot: Snapshot) -> tuple[Outcome, bool]:
        """Keep the ConfigMap with the scripts of pods, and remove those that no pod needs any more.

        The second result tells that it is not there, so that no server may be replaced by one that needs it.
        """
        memcached, last, outcome, missing = snapshot.memcached, snapshot.last, EMPTY, False
        (kind,) = (each for each in self._auxiliary if each.has_scripts)
        scripts, former = scripts_of(snapshot.spec), self._caches.auxiliary[kind].by_index("scripts", memcached.key)
        if not (scripts or former):
            return EMPTY, False
        owned = self._caches.workloads_of(memcached).values()
        used = {each.scripts for each in self._caches.pods_of(memcached.key)}
        used |= {memcached.name + each.scripts for each in owned}
        if scripts:
            desired = scripts_config_map(memcached.owner, scripts)
            name = desired.metadata.name or ""
            needed = any(memcached.name + each.scripts != name for each in owned)
            done = await self._ensure_one(kind, snapshot, desired, follows=False, blocking=needed)
            outcome, missing = done.outcome, needed and (done.kept is None or done.kept.obj is None)
            used.add(name)
        ready = last.condition("Ready")
        is_ready = last.observedGeneration == memcached.generation and ready is not None and ready.status == "True"
        # A Deployment that is rolled out has no ReplicaSet that makes pods of a former template.
        if is_ready and all(each.is_observed and each.rolled_out for each in owned):
            for live in former:
                if live.name not in used:
                    removal = self._auxiliary[kind].remove(memcached, ObjectKey(live.namespace, live.name))
                    done = await attempt(kind.kind.resource.kind, removal)
                    outcome += EMPTY if done.kept is not None else done.outcome  # nothing waits for it to be gone
        return outcome, missing

    async def _ensure_auxiliary(self, each: OwnedKind, snapshot: Snapshot, servers: Sequence[str] | None) -> Outcome:
        """Keep the object of that kind by a list of servers, None for none yet."""
        memcached, spec, conflicting, live = snapshot.memcached, snapshot.spec, EMPTY, None
        if snapshot.moving is not None and snapshot.moving.overrides:
            spec = spec.model_copy(update=snapshot.moving.overrides)
        known = Known(servers or (), self._config.operator_namespace)
        has_endpoint = spec.discovery is not None and spec.has_endpoint
        if has_endpoint:
            try:
                image = await self._config.own_image() if each.runs_operator else ""
            except (ServerError, TooManyRequests) as error:
                return Outcome(failures=(error,))
            known = known._replace(
                operator_image=image,
                addresses={pod.name: pod.address for pod in snapshot.pods if pod.address},
                now_s=int(snapshot.now.timestamp()),
            )
        if each.listed:
            live = self._caches.auxiliary[each].get(each.key_of(memcached.key))
            if live is not None and live.normalized:
                known = known._replace(live=each.codec.decoded(live))
        desired = each.desired(memcached.owner, spec, known)
        if each.awaits_list and desired is not None and servers is None:
            return EMPTY
        if each.runs_operator and desired is not None and not known.operator_image:
            return Outcome((_NO_IMAGE,))
        # Those of other owners that concern all Memcacheds of the namespace.
        namespace, cache = ObjectKey(memcached.namespace, ""), self._caches.auxiliary[each]
        rivals = cache.by_index("rivals", namespace) if each.conflict is not None and desired is not None else ()
        if rivals and each.conflict is not None and (problem := each.conflict(rivals, memcached.name, spec)):
            desired, conflicting = None, Outcome((problem,))
        # One that is as it was written is no longer right because the servers have changed since.
        follows = known.live is not None and each.is_untouched(known.live)
        follows = follows or snapshot.moving is not None  # which may have it otherwise for a while
        done = await self._ensure_one(each, snapshot, desired, follows=follows)
        if each.listed and has_endpoint and done.kept is not None and done.kept.obj is not None:
            await self._hasten(memcached, each.codec.decoded(done.kept.obj))
        there = done.kept.obj if done.kept is not None else None
        if there is not None and (problem := each.problem_of(there)):
            conflicting += Outcome((problem,))
        return conflicting + done.outcome

    async def _hasten(self, memcached: MemcachedRecord, servers: Manifest) -> None:
        """Have the kubelets bring a list to the pods of an endpoint now, and not within a minute or two.

        They do so when a pod changes. An annotation has which list it was told of.
        """
        digest = (servers.metadata.annotations or {}).get(APPLIED_ANNOTATION, "")
        for pod in self._caches.pods_of(ObjectKey(memcached.namespace, endpoint_label(memcached.name))):
            if pod.active and pod.applied != digest:
                try:
                    await self._client.patch(PODS, pod, {"metadata": {"annotations": {APPLIED_ANNOTATION: digest}}})
                except (Conflict, NotFound):
                    pass  # its next event comes here again
                except (Forbidden, Invalid, ServerError, TooManyRequests) as error:
                    logger.warning("an endpoint has its list late: %s", error.message or error)

    async def _ensure_one(
        self, each: OwnedKind, snapshot: Snapshot, desired: Manifest | None, *, follows: bool, blocking: bool = False
    ) -> Attempt[OwnedRecord]:
        """Make an auxiliary object, put it right or remove it.

        Args:
            follows: a difference follows from what has changed elsewhere.
            blocking: without it the servers are not changed.
        """
        kind, keeper = each.kind.resource.kind, self._auxiliary[each]
        memcached, last = snapshot.memcached, snapshot.last
        if desired is None:
            return await attempt(kind, keeper.remove(memcached, each.key_of(memcached.key)))
        reported = last.observedGeneration == memcached.generation and last.condition("Ready") is not None
        is_pending = not reported or kind in last.pending_writes_for(memcached.generation)
        # A status of this generation shows that it was created before, but for a list, which can have come later.
        seen = not (each.awaits_list or is_pending)
        doing = keeper.ensure(memcached, desired, seen=seen, desired_changed=follows or is_pending)
        return await attempt(kind, doing, is_pending=is_pending, blocking=blocking)

    def families(self) -> Iterator[Metric]:
        return self._counts.families()

    def _report_change(self, kind: str, of: OwnedKind | None, memcached: MemcachedRecord, change: Change[Any]) -> None:
        """Report in the log and in an event what was done, and count what another client had changed."""
        paths = [each.path for each in change.fields]
        text = change_in_words(memcached, kind, change, of)
        if not change.desired_changed and not change.deleted:
            for path in paths:
                self._counts.count(kind, path)
        level = logging.DEBUG if change.routine else logging.INFO
        logger.log(level, "%s", text.line, extra={"fields": text.fields})
        if text.note and not change.routine:
            self._record_event(memcached, "Normal", text.reason, text.action, text.note)
