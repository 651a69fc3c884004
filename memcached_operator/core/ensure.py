"""The objects of one Memcached: each is kept as desired, or removed, whatever becomes of the others."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from msgspec.structs import replace

from memcached_operator.api.status import Problem, Reason, Status
from memcached_operator.core.access import Access
from memcached_operator.core.change_messages import change_in_words
from memcached_operator.core.metrics import RepairCounts
from memcached_operator.core.objects.owned_kind import RIVALS_INDEX, Known, OwnedKind
from memcached_operator.core.objects.owned_object import Codec, Manifest, OwnedRecord
from memcached_operator.core.objects.pod_template import scripts_of
from memcached_operator.core.objects.script_config_maps import SCRIPT_CONFIG_MAPS, SCRIPTS_INDEX, scripts_config_map
from memcached_operator.core.objects.scripts import Scripts
from memcached_operator.core.objects.service import SERVICES, service, with_names
from memcached_operator.core.objects.workload import DEPLOYMENT, STATEFUL_SET
from memcached_operator.core.observed.caches import DEPLOYMENTS, MEMCACHEDS, STATEFUL_SETS
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.outcome import EMPTY, Attempt, ObjectsResult, Outcome, attempt
from memcached_operator.core.rollout.live.live_memory import SetLimit
from memcached_operator.core.rollout.rollout_lock import RolloutLock, rollouts_left
from memcached_operator.core.rollout.workload_rollout import Keepers, WorkloadRollout
from memcached_operator.core.snapshot import Snapshot
from memcached_operator.features.discovery.discovery_reconciler import DiscoveryReconciler, own_image
from memcached_operator.features.restored.adoption import Adoption
from operator_runtime import Change, Keeper, Kind, ObjectKey, Operator

logger = logging.getLogger(__name__)


class Objects:
    """Keeps the objects of one Memcached at a time; see `ensure`."""

    def __init__(self, operator: Operator, access: Access, set_limit: SetLimit) -> None:
        caches = access.caches
        self._access = access
        self.repairs = RepairCounts(caches.auxiliary)

        def owned(
            kind: Kind[Any], codec: Codec[Any], of: OwnedKind | None = None, **cache: Any
        ) -> Keeper[MemcachedRecord, Any, Any]:
            on_change = partial(self._report_change, kind.resource.kind, of)
            return operator.owned(MEMCACHEDS, kind, rules=codec.rules, on_change=on_change, **cache)

        workloads: Keepers = {
            "Deployment": owned(DEPLOYMENTS, DEPLOYMENT),
            "StatefulSet": owned(STATEFUL_SETS, STATEFUL_SET, optional=True),
        }
        self.adoption = Adoption(access)
        self.lock = RolloutLock(lambda: rollouts_left(caches), access.enqueue)
        self._workloads = WorkloadRollout(access, workloads, set_limit, self.lock)
        self._auxiliary: dict[OwnedKind, Keeper[MemcachedRecord, Any, OwnedRecord]] = {
            each: owned(each.kind, each.codec, each, labels=each.resource.labels, optional=True)
            for each in caches.auxiliary
        }
        find_image = own_image(access.client, access.operator_namespace, access.settings.operator_image)
        # A list can come after the status of its generation.
        keep = partial(self._ensure_one, seen=False)
        self.lists = DiscoveryReconciler(access, find_image, keep)

    async def ensure(self, snapshot: Snapshot) -> ObjectsResult:
        """Create, repair and remove objects by the plan and the specification, and bring the servers to it."""
        memcached, plan, last = snapshot.memcached, snapshot.plan, snapshot.last
        scripts, of_scripts, missing = scripts_of(snapshot.spec), EMPTY, False
        if scripts or self._access.caches.auxiliary[SCRIPT_CONFIG_MAPS].by_index(SCRIPTS_INDEX, memcached.key):
            of_scripts, missing = await self._ensure_scripts(snapshot, scripts)
        workloads = await self._workloads.ensure(snapshot, lacks_scripts=missing)
        # A list that servers leave is published before the time begins after which they are gone: the operator may end
        # in between. Any other is as the status has it, which coalesces what comes together.
        leave = not set(plan.servers.draining) <= set(last.draining or ())
        published = plan.servers.listed if leave and last.serverList is not None else last.serverList
        service, of_service = await self._ensure_service(snapshot)
        outcome = of_scripts + workloads.outcome + of_service
        by_list = self.lists.ensure if snapshot.spec.discovery is not None else {}
        for each in self._auxiliary:
            if each in by_list:
                outcome += await by_list[each](snapshot, published)
            elif each is not SERVICES and each is not SCRIPT_CONFIG_MAPS:
                outcome += await self._ensure_auxiliary(each, snapshot)
        if outcome.foreign and (remedy := self.adoption.remedy(memcached)):
            outcome += Outcome((Problem(Reason.NOT_CONTROLLED, remedy, blocking=False),))
        return ObjectsResult(workloads, service, published, outcome)

    async def publish(self, snapshot: Snapshot, status: Status) -> bool:
        """Have the published list follow a status that was just written; report whether nothing prevented it."""
        if snapshot.spec.discovery is None:
            return True
        outcome = await self.lists.ensure_list(replace(snapshot, last=status), status.serverList or ())
        return not (outcome.problems or outcome.waiting)

    async def _ensure_service(self, snapshot: Snapshot) -> tuple[str, Outcome]:
        """Keep the Service; its name, "" where it is not there."""
        memcached, spec, plan, last = snapshot.memcached, snapshot.spec, snapshot.plan, snapshot.last
        if spec.workload != "StatefulSet" and plan.servers.has_names and last.service is not None:
            spec = with_names(spec)  # the names that clients know stay as long as their servers do
        desired = service(memcached.owner, spec, named=plan.servers.has_names)
        follows = any(each.workload == "StatefulSet" for each in last.draining or ())
        done = await self._ensure_one(SERVICES, snapshot, desired, follows)
        there = desired is not None and done.kept is not None and done.kept.obj is not None
        return memcached.name if there else "", done.outcome

    async def _ensure_scripts(self, snapshot: Snapshot, scripts: Scripts) -> tuple[Outcome, bool]:
        """Keep the ConfigMap with the scripts of pods, and remove those that no pod needs any more.

        The second result tells that a new pod would lack it.
        """
        memcached, last, outcome, missing = snapshot.memcached, snapshot.last, EMPTY, False
        former = self._access.caches.auxiliary[SCRIPT_CONFIG_MAPS].by_index(SCRIPTS_INDEX, memcached.key)
        owned = self._access.caches.workloads_of(memcached).values()
        used = {each.scripts for each in self._access.caches.pods_of(memcached.key)}
        used |= {memcached.name + each.scripts for each in owned}
        if scripts:
            desired = scripts_config_map(memcached.owner, scripts)
            name = desired.metadata.name or ""
            needed = any(memcached.name + each.scripts != name for each in owned)
            # Its name is of its content, which another release of the operator changes under a status of today.
            done = await self._ensure_one(SCRIPT_CONFIG_MAPS, snapshot, desired, False, blocking=needed, seen=False)
            outcome, missing = done.outcome, needed and (done.kept is None or done.kept.obj is None)
            used.add(name)
        ready = last.condition("Ready")
        is_ready = last.observedGeneration == memcached.generation and ready is not None and ready.status == "True"
        # A Deployment that is rolled out has no ReplicaSet that makes pods of a former template.
        if is_ready and all(each.is_observed and each.rolled_out for each in owned):
            for live in former:
                if live.name not in used:
                    removal = self._auxiliary[SCRIPT_CONFIG_MAPS].remove(
                        memcached, ObjectKey(live.namespace, live.name)
                    )
                    done = await attempt(SCRIPT_CONFIG_MAPS.kind.resource.kind, removal)
                    outcome += EMPTY if done.kept is not None else done.outcome  # nothing waits for it to be gone
        return outcome, missing

    async def _ensure_auxiliary(self, each: OwnedKind, snapshot: Snapshot) -> Outcome:
        """Keep the object of that kind, unless one of another owner prevents it."""
        memcached, spec, conflicting = snapshot.memcached, snapshot.spec, EMPTY
        if snapshot.moving is not None and snapshot.moving.overrides:
            spec = spec.model_copy(update=snapshot.moving.overrides)
        desired = each.desired(memcached.owner, spec, Known(operator_namespace=self._access.operator_namespace))
        if desired is not None and each.conflict is not None:
            # Those of other owners that concern all Memcacheds of the namespace.
            rivals = self._access.caches.auxiliary[each].by_index(RIVALS_INDEX, ObjectKey(memcached.namespace, ""))
            if rivals and (problem := each.conflict(rivals, memcached.name, spec)):
                desired, conflicting = None, Outcome((problem,))
        # A move may have it otherwise for a while.
        return conflicting + (await self._ensure_one(each, snapshot, desired, snapshot.moving is not None)).outcome

    async def _ensure_one(
        self,
        each: OwnedKind,
        snapshot: Snapshot,
        desired: Manifest | None,
        follows: bool,
        *,
        blocking: bool = False,
        seen: bool = True,
    ) -> Attempt[OwnedRecord]:
        """Make an auxiliary object, put it right or remove it.

        Args:
            follows: a difference follows from what has changed elsewhere.
            blocking: without it the servers are not changed.
            seen: a status of this generation shows that it was created before.
        """
        kind, keeper = each.kind.resource.kind, self._auxiliary[each]
        memcached, last = snapshot.memcached, snapshot.last
        if desired is None:
            return await attempt(kind, keeper.remove(memcached, each.key_of(memcached.key)))
        reported = last.observedGeneration == memcached.generation and last.condition("Ready") is not None
        is_pending = not reported or kind in last.pending_writes_for(memcached.generation)
        doing = keeper.ensure(memcached, desired, seen=seen and not is_pending, desired_changed=follows or is_pending)
        return await attempt(kind, doing, is_pending=is_pending, blocking=blocking)

    def _report_change(self, kind: str, of: OwnedKind | None, memcached: MemcachedRecord, change: Change[Any]) -> None:
        """Report in the log and in an event what was done, and count what another client had changed."""
        paths = [each.path for each in change.fields]
        text = change_in_words(memcached, kind, change, of)
        if not change.desired_changed and not change.deleted:
            for path in paths:
                self.repairs.count(kind, path)
        level = logging.DEBUG if change.routine else logging.INFO
        logger.log(level, "%s", text.line, extra={"fields": text.fields})
        if text.note and not change.routine:
            self._access.record_event(memcached, "Normal", text.reason, text.action, text.note)
