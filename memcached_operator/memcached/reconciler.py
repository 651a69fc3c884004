"""The one file of this room that awaits: look at the caches, compare, write what differs, report.

Level-triggered: a reconcile looks at what is, never at the event that woke it. A reconcile that finds nothing to change
sends nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from memcached_operator.api.names import API_VERSION, GROUP, KIND, PLURAL, VERSION, InvalidSpec
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.errors import Conflict, Forbidden, Invalid, NotFound
from memcached_operator.kube.resources import DEPLOYMENTS, Resource
from memcached_operator.memcached import desired, plan
from memcached_operator.memcached.objects import Deployment
from memcached_operator.memcached.records import (
    DeploymentRecord,
    MemcachedRecord,
    PodRecord,
    deployment_record,
    memcached_record,
)
from memcached_operator.memcached.spec import read_spec
from memcached_operator.memcached.status import (
    Condition,
    Observed,
    Reason,
    Trouble,
    decode_status,
    is_settled,
    refusal_reason,
    status_of,
    status_patch,
)
from memcached_operator.runtime.controller import Result
from memcached_operator.runtime.event_objects import ObjectReference
from memcached_operator.runtime.events import EventRecorder
from memcached_operator.runtime.own_writes import OwnWrites
from memcached_operator.runtime.store import ObjectKey, Store

logger = logging.getLogger(__name__)

MEMCACHEDS = Resource(GROUP, VERSION, PLURAL, KIND)

# How often to look again at what no watch may tell us of: a right that was granted, a quota that was raised.
SLOW_RETRY_S = 30.0
# After a write that came to nothing because its object is being replaced or goes: an event should be here well before.
# It is not after a create under a ResourceQuota that many creates change at once, which is answered 409 as well.
VANISHED_RETRY_S = 5.0
_OWNERS = "metadata.ownerReferences"
# After a conflict: long enough not to race with whoever writes in a loop, short enough for nobody to wait for.
CONFLICT_PAUSE_S = 0.25
_NO_STATUS = (
    "the kind Memcached in the cluster has no status; install the operator's own CustomResourceDefinition with "
    "`kubectl apply -f manifests/crd/cache.example.com_memcacheds.yaml`"
)
_DONE = Result()


@dataclass(frozen=True, slots=True)
class ReconcilerConfig:
    """What the reconciler needs to know of the settings.

    Attributes:
        image: of a Memcached that names none.
        field_manager: names this operator in managedFields.
        status_delay_s: how long a status that is still changing may be held back.
    """

    image: str
    field_manager: str
    status_delay_s: float


@dataclass(frozen=True, slots=True)
class Caches:
    """The three stores, as the reflectors fill them. `pods` has the index "memcached"."""

    memcacheds: Store[MemcachedRecord]
    deployments: Store[DeploymentRecord]
    pods: Store[PodRecord]


class _Found(NamedTuple):
    """How things stand after a reconcile did what it could.

    Attributes:
        deployment: the Deployment that the Memcached controls, None when there is none.
        trouble: what is in the way.
        waiting: what is being waited for, "" for nothing.
    """

    deployment: DeploymentRecord | None
    trouble: Trouble | None = None
    waiting: str = ""


class _Refusal(NamedTuple):
    """What the API server would not do, for whose sake, why, and until when (by the clock) it is not asked again."""

    wanted: Deployment
    action: plan.Action
    trouble: Trouble
    until_s: float


class MemcachedReconciler:
    """Makes the cluster fit one Memcached at a time; see `reconcile`.

    `_unreported` holds since when a Memcached's status has been other than what was written, while that is held back.
    `_not_before` holds until when no status is written, after a write that met somebody else's.
    `_refused` holds what the API server refused last: each event of a pod would have it asked the same thing again.
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
        self._recorder = recorder
        self._config = config
        self._clock = clock
        self._utc_now = utc_now
        self._unreported: dict[ObjectKey, float] = {}
        self._not_before: dict[ObjectKey, float] = {}
        self._refused: dict[ObjectKey, _Refusal] = {}

    async def reconcile(self, key: ObjectKey) -> Result:
        """Bring the Deployment and the status of one Memcached to what they should be.

        Raises:
            KubeError: the API server could not be reached or refused in a way that may pass; to be tried again.
        """
        memcached = self._caches.memcacheds.get(key)
        deployment = self._caches.deployments.get(key)
        if memcached is not None and self._own_writes.overdue(key):
            logger.warning("the watch has not shown our last write for %s; looking at the live objects", key)
            memcached, deployment = await self._live_memcached(key), await self._live_deployment(key)
        if memcached is None:
            self._forget(key)
            self._refused.pop(key, None)
            self._own_writes.forget(key)
            return _DONE
        if memcached.deleting:
            # What becomes of its Deployment is the garbage collector's, in the mode that the user chose.
            self._forget(key)
            return _DONE
        try:
            spec = read_spec(memcached.spec)
        except InvalidSpec as error:
            found = _Found(deployment, Trouble(Reason.INVALID_SPEC, str(error)))
            return await self._report(memcached, None, found)
        image = spec.image or self._config.image
        wanted = desired.deployment(key.name, key.namespace, memcached.uid, spec.size, image)
        try:
            found = await self._act(memcached, wanted, deployment)
        except _VanishedError as vanished:
            return Result(requeue_after_s=vanished.retry_s)
        return await self._report(memcached, spec.size, found)

    async def _act(self, memcached: MemcachedRecord, wanted: Deployment, deployment: DeploymentRecord | None) -> _Found:
        """Do what the plan says, and tell how things stand then."""
        key = ObjectKey(memcached.namespace, memcached.name)
        action = plan.plan(wanted, memcached.uid, deployment)
        if refusal := self._refused.pop(key, None):
            same = (refusal.wanted, refusal.action) == (wanted, action)
            if same and self._clock() < refusal.until_s:
                self._refused[key] = refusal
                return _Found(deployment, refusal.trouble)
        try:
            if isinstance(action, plan.Create):
                created = await self._create(memcached, wanted)
                if created is not None:
                    return _Found(created)
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
                    return _Found(None, Trouble(Reason.NOT_CONTROLLED, message))
                case plan.CannotChange(message):
                    return _Found(deployment, Trouble(Reason.FORBIDDEN, message))
                case plan.Await(message):
                    return _Found(None, waiting=message)
                case plan.Create():
                    raise _VanishedError  # it came and went; its events are on their way
            return _Found(deployment)
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
            # Deleted or re-created since the cache saw it; the event will wake the key.
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
    ) -> _Found:
        """Do not ask for the same thing again for a while."""
        self._refused[key] = _Refusal(wanted, action, trouble, self._clock() + SLOW_RETRY_S)
        return _Found(deployment, trouble)

    async def _create(self, memcached: MemcachedRecord, wanted: Deployment) -> DeploymentRecord | None:
        """Create the Deployment; None when one of that name exists."""
        key = ObjectKey(memcached.namespace, memcached.name)
        again = decode_status(memcached.status).observedGeneration is not None
        if again and not await self._still_wanted(key, memcached.uid):
            raise _VanishedError  # deleted; the watch of Deployments was faster than that of Memcacheds
        try:
            answer = await self._apply(key, desired.create_body(wanted), force=False)
        except Conflict:
            return None
        made = deployment_record(answer)
        # Not put into the store: if it was deleted meanwhile, no event would ever take it out again.
        self._own_writes.expect(key, DEPLOYMENTS.kind, made.uid, made.resource_version)
        why = "there was none" if again else "new Memcached"
        fields = {"action": "create", "replicas": wanted.spec.replicas, "why": why}
        logger.info("created Deployment with %d replicas (%s)", wanted.spec.replicas, why, extra={"fields": fields})
        note = f"Created Deployment {key.name} with {wanted.spec.replicas} replicas" + (f": {why}" if again else "")
        self._tell(memcached, "Normal", "Created", "Create", note)
        return made

    async def _scale(self, memcached: MemcachedRecord, action: plan.Scale) -> DeploymentRecord:
        """Change the replicas, by the cheapest write that there is for it."""
        key = ObjectKey(memcached.namespace, memcached.name)
        answer = await self._client.merge_patch(
            DEPLOYMENTS,
            key.namespace,
            key.name,
            desired.scale_patch(action.uid, action.wanted),
            field_manager=self._config.field_manager,
        )
        asked = decode_status(memcached.status).observedGeneration != memcached.generation
        why = "spec.size changed" if asked else "somebody else had changed them"
        fields = {"action": "scale", "from": action.live, "to": action.wanted, "why": why}
        logger.info(
            "scaled Deployment from %d to %d replicas (%s)", action.live, action.wanted, why, extra={"fields": fields}
        )
        note = f"Scaled Deployment {key.name} from {action.live} to {action.wanted} replicas: {why}"
        self._tell(memcached, "Normal", "Scaled", "Scale", note)
        return self._shown(key, answer)

    async def _repair(
        self, memcached: MemcachedRecord, wanted: Deployment, action: plan.Repair
    ) -> DeploymentRecord | None:
        """Put our fields back, and leave everybody else's; None when something turned them round on the way in."""
        key = ObjectKey(memcached.namespace, memcached.name)
        disowned = any(each.path.startswith(_OWNERS) for each in action.differences)
        if disowned and not await self._still_wanted(key, memcached.uid):
            # Deleted with --cascade=orphan; the watch of Deployments was faster. Owned by it again, the Deployment
            # would be the garbage collector's.
            raise _VanishedError
        repaired = action.ports or action.differences
        if action.ports:
            answer = await self._client.strategic_merge_patch(
                DEPLOYMENTS,
                key.namespace,
                key.name,
                desired.ports_patch(wanted, action.uid),
                field_manager=self._config.field_manager,
            )
        else:
            answer = await self._apply(key, desired.update_body(wanted, action.uid), force=True)
        record = self._shown(key, answer)
        if plan.plan(wanted, memcached.uid, record) == action:
            return None
        text = "; ".join(map(str, repaired))
        fields = {"action": "update", "changed": [each.path for each in repaired]}
        logger.info("updated Deployment: %s", text, extra={"fields": fields})
        self._tell(memcached, "Normal", "Updated", "Update", f"Updated Deployment {key.name}: {text}")
        return record

    async def _apply(self, key: ObjectKey, body: object, *, force: bool) -> bytes:
        return await self._client.apply(
            DEPLOYMENTS, key.namespace, key.name, body, field_manager=self._config.field_manager, force=force
        )

    def _shown(self, key: ObjectKey, answer: bytes) -> DeploymentRecord:
        """Take the answer to an update into the cache at once, unless the object has left it."""
        record = deployment_record(answer)
        if self._caches.deployments.get(key) is not None:
            self._caches.deployments.put(record)
        return record

    async def _live_memcached(self, key: ObjectKey) -> MemcachedRecord | None:
        try:
            return memcached_record(await self._client.get(MEMCACHEDS, key.namespace, key.name))
        except NotFound:
            return None

    async def _live_deployment(self, key: ObjectKey) -> DeploymentRecord | None:
        try:
            return deployment_record(await self._client.get(DEPLOYMENTS, key.namespace, key.name))
        except NotFound:
            return None

    async def _still_wanted(self, key: ObjectKey, uid: str) -> bool:
        live = await self._live_memcached(key)
        return live is not None and live.uid == uid and not live.deleting

    async def _report(self, memcached: MemcachedRecord, size: int | None, found: _Found) -> Result:
        """Write the status if it differs, at the latest `status_delay_s` after it began to."""
        key = ObjectKey(memcached.namespace, memcached.name)
        trouble = found.trouble
        # Under a Deployment that is not ours, pods with our labels are not ours either.
        ours = trouble is None or trouble.reason is not Reason.NOT_CONTROLLED
        pods = [pod for pod in self._caches.pods.by_index("memcached", key) if pod.active] if ours else []
        last = decode_status(memcached.status)
        now = self._utc_now().strftime("%Y-%m-%dT%H:%M:%SZ")
        observed = Observed(key.name, memcached.generation, size, found.deployment, pods, trouble, found.waiting)
        wanted = status_of(observed, last, now)
        patch = status_patch(wanted, last)
        # A specification that cannot be read is mended by an event alone.
        retry = Result(requeue_after_s=SLOW_RETRY_S) if trouble and size is not None else _DONE
        if not patch:
            self._forget(key)
            return retry
        pause_s = self._not_before.get(key, 0.0) - self._clock()
        if pause_s > 0:
            return Result(requeue_after_s=pause_s)
        if not is_settled(wanted, last, size):
            since = self._unreported.setdefault(key, self._clock())
            left_s = since + self._config.status_delay_s - self._clock()
            if left_s > 0:
                return Result(requeue_after_s=left_s)
        # The version guards a re-created Memcached of the same name (/status ignores a wrong uid), and conditions that
        # somebody else wrote meanwhile: a merge patch replaces the list as a whole.
        body = {"metadata": {"resourceVersion": memcached.resource_version}, "status": patch}
        try:
            answer = await self._client.merge_patch(
                MEMCACHEDS,
                key.namespace,
                key.name,
                body,
                field_manager=self._config.field_manager,
                subresource="status",
            )
        except Conflict:
            return await self._after_conflict(memcached)
        except NotFound:
            if await self._still_wanted(key, memcached.uid):
                # It is there, its status is not: the CRD in the cluster is not the operator's.
                raise NotFound(404, "NotFound", _NO_STATUS) from None
            return _DONE
        self._forget(key)
        self._warn(memcached, wanted.condition("Degraded"), last.condition("Degraded"))
        if self._caches.memcacheds.get(key) is not None:
            # Quiet: the version in our write vouches that nothing else changed, and this is what was just looked at.
            self._caches.memcacheds.put(memcached_record(answer), quiet=True)
        return retry

    async def _after_conflict(self, memcached: MemcachedRecord) -> Result:
        """It changed since the cache saw it: wait for the cache, and do not race with who else writes it."""
        key = ObjectKey(memcached.namespace, memcached.name)
        self._not_before[key] = self._clock() + max(self._config.status_delay_s, CONFLICT_PAUSE_S)
        live = await self._live_memcached(key)
        if live is not None:
            self._own_writes.expect(key, MEMCACHEDS.kind, live.uid, live.resource_version)
        return Result(requeue_after_s=CONFLICT_PAUSE_S)

    def _warn(self, memcached: MemcachedRecord, degraded: Condition | None, before: Condition | None) -> None:
        """Say what is in the way when it begins, when it changes and when it is over."""
        was = before is not None and before.status == "True"
        if degraded is None or degraded.status != "True":
            if was:
                logger.info("no longer degraded")
            return
        if was and before is not None and before.message == degraded.message:
            return
        logger.warning("degraded: %s: %s", degraded.reason, degraded.message)
        self._tell(memcached, "Warning", degraded.reason, "Reconcile", degraded.message)

    def _forget(self, key: ObjectKey) -> None:
        """Nothing of the status waits to be written."""
        self._unreported.pop(key, None)
        self._not_before.pop(key, None)

    def _tell(
        self, memcached: MemcachedRecord, type_: Literal["Normal", "Warning"], reason: str, action: str, note: str
    ) -> None:
        reference = ObjectReference(
            API_VERSION, KIND, memcached.namespace, memcached.name, memcached.uid, memcached.resource_version
        )
        self._recorder.emit(reference, type=type_, reason=reason, action=action, note=note)


class _VanishedError(Exception):
    """What we were about to write for, or on, is no longer there; an event follows, or else a look after `retry_s`."""

    def __init__(self, retry_s: float = VANISHED_RETRY_S) -> None:
        super().__init__(retry_s)
        self.retry_s = retry_s


def _turned_round(action: plan.Repair) -> Trouble:
    fields = "; ".join(map(str, action.differences))
    message = f"Something turns our changes of the Deployment round, such as a mutating admission policy: {fields}."
    return Trouble(Reason.FORBIDDEN, message)
