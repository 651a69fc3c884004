"""Look at the caches, compare, write what differs, report. With `reporter` and `finalizing` all that awaits here.

Level-triggered: a reconcile looks at what is, never at the event before it. A reconcile that finds nothing to change
sends nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from prometheus_client import Metric

from memcached_operator.api.names import FINALIZER, InvalidSpec
from memcached_operator.memcached import desired, plan
from memcached_operator.memcached.contests import EXISTENCE
from memcached_operator.memcached.finalizing import Finalizing
from memcached_operator.memcached.metrics import Repairs
from memcached_operator.memcached.objects import Deployment
from memcached_operator.memcached.records import (
    DeploymentRecord,
    MemcachedRecord,
    deployment_record,
)
from memcached_operator.memcached.reporter import (
    SLOW_RETRY_S,
    VANISHED_RETRY_S,
    Caches,
    Found,
    Reporter,
    was_asked,
    was_reported,
)
from memcached_operator.memcached.spec import read_spec
from memcached_operator.memcached.status import (
    Reason,
    Trouble,
    refusal_reason,
)
from operator_runtime.cache.own_writes import OwnWrites
from operator_runtime.cache.store import ObjectKey
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import Conflict, Forbidden, Invalid, MalformedAnswer, NotFound, Unreachable
from operator_runtime.client.frames import object_of
from operator_runtime.client.resources import DEPLOYMENTS
from operator_runtime.controller.controller import Result
from operator_runtime.events.recorder import EventRecorder

logger = logging.getLogger(__name__)

_OWNERS = "metadata.ownerReferences"
_REPLICAS = "spec.replicas"
_DONE = Result()


@dataclass(frozen=True, slots=True)
class ReconcilerConfig:
    """What the reconciler needs to know of the settings.

    Attributes:
        image: of a Memcached that names none.
        user_id: of the servers; None names none.
        field_manager: names this operator in managedFields.
        status_delay_s: how long a status that is still changing may be held back.
        finalizer: put the finalizer on each Memcached.
    """

    image: str
    user_id: int | None
    field_manager: str
    status_delay_s: float
    finalizer: bool = False


class _Refusal(NamedTuple):
    """What the API server would not do, for whose sake, why, and until when (by the clock) it is not asked again."""

    wanted: Deployment
    action: plan.Action
    trouble: Trouble
    until_s: float


class MemcachedReconciler:
    """Makes the cluster fit one Memcached at a time; see `reconcile`.

    `repairs` counts what was put right, `_contests` knows what is put wrong again and again. `_refused` holds what the
    API server refused last: each event of a pod would have it asked the same thing again. `_made` holds the uids of the
    Memcacheds for which a Deployment was created, or may have been, while their status does not tell of it yet.
    """

    def __init__(
        self,
        client: ApiClient,
        caches: Caches,
        own_writes: OwnWrites,
        recorder: EventRecorder,
        config: ReconcilerConfig,
        *,
        clock: Callable[[], float] = time.monotonic,
        utc_now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._caches = caches
        self._own_writes = own_writes
        self._config = config
        self._clock = clock
        self._reporter = Reporter(
            client,
            caches,
            own_writes,
            recorder,
            field_manager=config.field_manager,
            status_delay_s=config.status_delay_s,
            clock=clock,
            utc_now=utc_now,
        )
        self._contests = self._reporter.contests
        self._finalizing = Finalizing(
            client,
            caches,
            own_writes,
            self._reporter,
            wanted=config.finalizer,
            field_manager=config.field_manager,
            clock=clock,
        )
        self.repairs = Repairs()
        self._refused: dict[ObjectKey, _Refusal] = {}
        self._made: dict[ObjectKey, str] = {}

    async def reconcile(self, key: ObjectKey) -> Result:
        """Bring the Deployment and the status of one Memcached to what they should be.

        Raises:
            KubeError: the API server could not be reached or refused in a way that may pass; to be tried again.
        """
        cached = memcached = self._caches.memcacheds.get(key)
        deployment = self._caches.deployments.get(key)
        if cached is not None:
            overdue = self._own_writes.overdue(key)
            if overdue:
                logger.warning("the watch has not shown our last write; looking at the live objects")
            if overdue or self._reporter.gone_for_s(cached) is not None:
                memcached, deployment = await self._reporter.live_memcached(key), await self._live_deployment(key)
        if memcached is None and cached is not None:
            return Result(requeue_after_s=VANISHED_RETRY_S)
        if memcached is None:
            self._reporter.forget(key)
            self._contests.forget(key)
            self._refused.pop(key, None)
            self._made.pop(key, None)
            self._own_writes.forget(key)
            self._finalizing.forget(key)
            return _DONE
        if memcached.deleting and FINALIZER in memcached.finalizers:
            return await self._finalizing.release(memcached, deployment)
        if memcached.deleting:
            # What becomes of its Deployment is the garbage collector's, in the mode that the user chose.
            self._reporter.forget(key)
            return _DONE
        may_repair = self._contests.look(memcached)
        result = await self._make_so(memcached, deployment, may_repair=may_repair)
        return self._contests.ended(memcached, result)

    def wait_s(self, key: ObjectKey) -> float:
        """Seconds for which `key` is not looked at: its own writes have yet to arrive, it is gone, or contested.

        What the user asks for is not kept waiting by a contest.
        """
        wait_s = self._own_writes.wait_s(key)
        if wait_s > 0.0 or (memcached := self._caches.memcacheds.get(key)) is None or memcached.deleting:
            return wait_s
        return self._reporter.gone_for_s(memcached) or self._contests.wait_s(memcached)

    def families(self) -> Iterator[Metric]:
        """What was put right, and how many are contested."""
        yield from self.repairs.families()
        yield from self._contests.families()

    async def _make_so(
        self, memcached: MemcachedRecord, deployment: DeploymentRecord | None, *, may_repair: bool
    ) -> Result:
        """Act for a Memcached that is there, and report."""
        key = ObjectKey(memcached.namespace, memcached.name)
        if key in self._made and was_reported(memcached):
            del self._made[key]
        memcached, aside, retry = await self._finalizing.hold(memcached, may_repair=may_repair)
        if retry is not None:
            return retry
        try:
            spec = read_spec(memcached.spec)
        except InvalidSpec as error:
            found = Found(deployment, Trouble(Reason.INVALID_SPEC, str(error)))
            return await self._reporter.report(memcached, None, found)
        image = spec.image or self._config.image
        wanted = desired.deployment(key.name, key.namespace, memcached.uid, spec.size, image, self._config.user_id)
        try:
            found = await self._act(memcached, wanted, deployment, may_repair=may_repair)
        except _VanishedError as vanished:
            return Result(requeue_after_s=vanished.retry_s)
        if self._contests.wrote(memcached):
            return _DONE
        return await self._reporter.report(memcached, spec.size, found._replace(trouble=found.trouble or aside))

    async def _act(
        self, memcached: MemcachedRecord, wanted: Deployment, deployment: DeploymentRecord | None, *, may_repair: bool
    ) -> Found:
        """Do what the plan says, and tell how things stand then."""
        key = ObjectKey(memcached.namespace, memcached.name)
        action = plan.plan(wanted, memcached.uid, deployment)
        if not may_repair and isinstance(action, plan.Scale | plan.Repair):
            return Found(deployment)  # contested: this look is for the status
        if not may_repair and isinstance(action, plan.Create):
            return Found(None, waiting="The Deployment was deleted; a new one follows.")
        if refusal := self._refused.pop(key, None):
            same = (refusal.wanted, refusal.action) == (wanted, action)
            if same and self._clock() < refusal.until_s:
                self._refused[key] = refusal
                return Found(deployment, refusal.trouble)
        try:
            if isinstance(action, plan.Create):
                created = await self._create(memcached, wanted)
                if created is not None:
                    return Found(created)
                # Somebody was faster, and the watch has not shown it yet: judge the live one.
                deployment = await self._live_deployment(key)
                action = plan.plan(wanted, memcached.uid, deployment)
            match action:
                case plan.Scale():
                    deployment = await self._scale(memcached, action)
                case plan.Repair():
                    repaired = await self._repair(memcached, wanted, action)
                    if repaired is None:
                        return self._put_off(key, wanted, action, deployment, _turned_round(action))
                    deployment = repaired
                case plan.LeaveAlone(message):
                    return Found(None, Trouble(Reason.NOT_CONTROLLED, message))
                case plan.CannotChange(message):
                    return Found(deployment, Trouble(Reason.FORBIDDEN, message))
                case plan.Await(message):
                    return Found(None, waiting=message)
                case plan.Create():
                    raise _VanishedError  # it came and went; its events are on their way
            return Found(deployment)
        except Invalid as error:
            if any(cause.field == "metadata.uid" for cause in error.causes):
                raise _VanishedError from error  # re-created since the cache saw it; its events are on their way
            message = f"The API server refused the Deployment: {error.message or error}"
            trouble = Trouble(Reason.INVALID_SPEC, message)
        except Forbidden as error:
            if any(cause.reason == "NamespaceTerminating" for cause in error.causes):
                raise _VanishedError(SLOW_RETRY_S) from error  # the Memcached goes with its namespace
            trouble = Trouble(refusal_reason(error.message), error.message or str(error))
        except (Conflict, NotFound) as error:
            # Deleted or re-created since the cache saw it; the event will enqueue the key.
            logger.debug("%s changed under our write: %s", key, error)
            raise _VanishedError from error
        return self._put_off(key, wanted, action, deployment, trouble)

    def _put_off(
        self,
        key: ObjectKey,
        wanted: Deployment,
        action: plan.Action,
        deployment: DeploymentRecord | None,
        trouble: Trouble,
    ) -> Found:
        """Do not ask for the same thing again for a while."""
        self._refused[key] = _Refusal(wanted, action, trouble, self._clock() + SLOW_RETRY_S)
        return Found(deployment, trouble)

    async def _create(self, memcached: MemcachedRecord, wanted: Deployment) -> DeploymentRecord | None:
        """Create the Deployment; None when one of that name exists."""
        key = ObjectKey(memcached.namespace, memcached.name)
        again = was_reported(memcached)
        tried = again or self._made.get(key) == memcached.uid
        if tried and not await self._reporter.still_wanted(key, memcached.uid):
            # Deleted; the watch of Deployments was faster than that of Memcacheds, which may be down. Without this look
            # the garbage collector and we would take turns for as long.
            raise _VanishedError
        try:
            answer = await self._apply(key, desired.create_body(wanted), force=False)
            made = object_of(deployment_record, answer)
        except Conflict:
            return None
        except (Unreachable, MalformedAnswer):
            self._made[key] = memcached.uid  # the request may have arrived
            raise
        if not again:
            self._made[key] = memcached.uid
        if again:
            self._contests.repaired(memcached, DEPLOYMENTS, [EXISTENCE], {}, asked=False)
        # Not put into the store: if it was deleted meanwhile, no event would ever take it out again.
        self._own_writes.expect(key, DEPLOYMENTS.qualified_name, made.uid, made.resource_version)
        why = "there was none" if again else "new Memcached"
        fields = {"action": "create", "replicas": wanted.spec.replicas, "why": why}
        told = not (again and self._contests.damped(memcached))
        logger.log(
            logging.INFO if told else logging.DEBUG,
            "created Deployment with %d replicas (%s)",
            wanted.spec.replicas,
            why,
            extra={"fields": fields},
        )
        if told:
            note = f"Created Deployment {key.name} with {wanted.spec.replicas} replicas"
            note += f": {why}" if again else ""
            self._reporter.tell(memcached, "Normal", "Created", "Create", note)
        return made

    async def _scale(self, memcached: MemcachedRecord, action: plan.Scale) -> DeploymentRecord:
        """Change the replicas, by the cheapest write that there is for it."""
        key = ObjectKey(memcached.namespace, memcached.name)
        rivals = await self._contests.rivals(memcached, DEPLOYMENTS, [_REPLICAS])
        answer = await self._client.merge_patch(
            DEPLOYMENTS,
            key.namespace,
            key.name,
            desired.scale_patch(action.uid, action.wanted),
            field_manager=self._config.field_manager,
        )
        asked = self._repaired(memcached, [_REPLICAS], rivals)
        why = "spec.size changed" if asked else "somebody else had changed them"
        fields = {"action": "scale", "from": action.live, "to": action.wanted, "why": why}
        told = asked or not self._contests.damped(memcached)
        logger.log(
            logging.INFO if told else logging.DEBUG,
            "scaled Deployment from %d to %d replicas (%s)",
            action.live,
            action.wanted,
            why,
            extra={"fields": fields},
        )
        if told:
            note = f"Scaled Deployment {key.name} from {action.live} to {action.wanted} replicas: {why}"
            self._reporter.tell(memcached, "Normal", "Scaled", "Scale", note)
        return self._shown(key, answer)

    async def _repair(
        self, memcached: MemcachedRecord, wanted: Deployment, action: plan.Repair
    ) -> DeploymentRecord | None:
        """Put our fields back, and leave everybody else's; None when something turned them round on the way in."""
        key = ObjectKey(memcached.namespace, memcached.name)
        disowned = any(each.path.startswith(_OWNERS) for each in action.differences)
        if disowned and not await self._reporter.still_wanted(key, memcached.uid):
            # Deleted with --cascade=orphan; the watch of Deployments was faster. Owned by it again, the Deployment
            # would be the garbage collector's.
            raise _VanishedError
        repaired = (*action.ports, *action.excess) or action.differences
        paths = [each.path for each in repaired]
        rivals = await self._contests.rivals(memcached, DEPLOYMENTS, paths)
        if action.ports or action.excess:
            patch = desired.ports_patch(wanted) if action.ports else {}
            if action.excess:
                patch |= desired.no_ids_patch(each.path.rpartition(".")[2] for each in action.excess)
            answer = await self._client.strategic_merge_patch(
                DEPLOYMENTS,
                key.namespace,
                key.name,
                desired.pod_spec_patch(action.uid, patch),
                field_manager=self._config.field_manager,
            )
        else:
            answer = await self._apply(key, desired.update_body(wanted, action.uid), force=True)
        record = self._shown(key, answer)
        if plan.plan(wanted, memcached.uid, record) == action:
            return None
        asked = self._repaired(memcached, paths, rivals)
        told = asked or not self._contests.damped(memcached)
        text = "; ".join(map(str, repaired))
        level = logging.INFO if told else logging.DEBUG
        logger.log(level, "updated Deployment: %s", text, extra={"fields": {"action": "update", "changed": paths}})
        if told:
            self._reporter.tell(memcached, "Normal", "Updated", "Update", f"Updated Deployment {key.name}: {text}")
        return record

    def _repaired(self, memcached: MemcachedRecord, paths: Sequence[str], rivals: Mapping[str, str]) -> bool:
        """Count what was put right, and say if it is a fight; whether the user had asked for it."""
        asked = was_asked(memcached)
        if not asked:
            for path in paths:
                self.repairs.count(path)
        self._contests.repaired(memcached, DEPLOYMENTS, paths, rivals, asked=asked)
        return asked

    async def _apply(self, key: ObjectKey, body: object, *, force: bool) -> bytes:
        return await self._client.apply(
            DEPLOYMENTS, key.namespace, key.name, body, field_manager=self._config.field_manager, force=force
        )

    def _shown(self, key: ObjectKey, answer: bytes) -> DeploymentRecord:
        """Take the answer to an update into the cache at once, unless the object has left it."""
        record = object_of(deployment_record, answer)
        if self._caches.deployments.get(key) is not None:
            self._caches.deployments.put(record)
        return record

    async def _live_deployment(self, key: ObjectKey) -> DeploymentRecord | None:
        try:
            return object_of(deployment_record, await self._client.get(DEPLOYMENTS, key.namespace, key.name))
        except NotFound:
            return None


class _VanishedError(Exception):
    """What we were about to write for, or on, is no longer there; an event follows, or else a look after `retry_s`."""

    def __init__(self, retry_s: float = VANISHED_RETRY_S) -> None:
        super().__init__(retry_s)
        self.retry_s = retry_s


def _turned_round(action: plan.Repair) -> Trouble:
    fields = "; ".join(map(str, action.differences))
    message = f"Something turns our changes of the Deployment round, such as a mutating admission policy: {fields}."
    return Trouble(Reason.FORBIDDEN, message)
