"""The finalizer on a Memcached: put there when it is asked for, taken off when its pods are gone.

What is to be done about a deletion is decided by `next_step` from what there is, never from what was done before. The
Deployment is followed by its ownerReference, as the garbage collector does: one that was orphaned, or that is somebody
else's, is left alone and keeps nobody waiting.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from memcached_operator.api.names import FINALIZER, InvalidSpec
from memcached_operator.memcached.records import (
    ORPHAN_FINALIZER,
    DeploymentRecord,
    MemcachedRecord,
    PodRecord,
    deployment_record,
    memcached_record,
)
from memcached_operator.memcached.reporter import (
    CONFLICT_PAUSE_S,
    MEMCACHEDS,
    SLOW_RETRY_S,
    VANISHED_RETRY_S,
    Caches,
    Found,
    Reporter,
    was_asked,
)
from memcached_operator.memcached.spec import read_spec
from memcached_operator.memcached.status import Reason, Trouble, decode_status
from operator_runtime.cache.own_writes import OwnWrites
from operator_runtime.cache.store import ObjectKey, key_of
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import ApiError, Conflict, Forbidden, Invalid, NotFound, ServerError
from operator_runtime.client.frames import object_of
from operator_runtime.client.resources import DEPLOYMENTS
from operator_runtime.controller.controller import Result
from operator_runtime.controller.finalizer import adding, removing

logger = logging.getLogger(__name__)

# Twice the 30 s that a pod has by default to end; then the kubelet kills it.
STALLED_AFTER_S = 60.0
# In a message. All of them are in `kubectl get pods --selector`.
_NAMES = 5
_DONE = Result()


@dataclass(frozen=True, slots=True)
class Release:
    """Nothing is to be waited for; `why` in words, to follow a colon."""

    why: str


@dataclass(frozen=True, slots=True)
class Delete:
    """The Deployment is to be deleted, its pods before it."""

    deployment: DeploymentRecord


@dataclass(frozen=True, slots=True)
class Wait:
    """Something is on its way out.

    Attributes:
        what: is waited for, in words.
        remedy: what a person can do about it once nothing has moved for long.
    """

    what: str
    remedy: str


Step = Release | Delete | Wait


def next_step(memcached: MemcachedRecord, deployment: DeploymentRecord | None, pods: Sequence[PodRecord]) -> Step:
    """What the deletion of a Memcached that carries our finalizer asks for.

    Args:
        deployment: of the same name, None when there is none.
        pods: those that are the Memcached's by name, in any order and whatever their state.
    """
    if ORPHAN_FINALIZER in memcached.finalizers:
        return Release("it is deleted with --cascade=orphan, so its Deployment and pods stay")
    if deployment is not None and deployment.owner_uid != memcached.uid:
        # Among them a Deployment that was ours and was orphaned: the garbage collector takes its own finalizer off
        # the Memcached as soon as it has done so.
        return Release(f"the Deployment {deployment.name} is not controlled by it, and is left alone")
    if deployment is not None and not deployment.deleting:
        return Delete(deployment)
    if pods:
        return _wait_for_pods(deployment, pods)
    if deployment is None:
        return Release("its pods are gone")
    if deployment.held_by:
        return Wait(
            f"Waiting for the Deployment {deployment.name} to go, which the finalizer {deployment.held_by} keeps.",
            f"Whoever put {deployment.held_by} on the Deployment must take it off.",
        )
    return Wait(
        f"Waiting for the Deployment {deployment.name} to go.",
        "The garbage collector removes it: does kube-controller-manager run?",
    )


def _wait_for_pods(deployment: DeploymentRecord | None, pods: Sequence[PodRecord]) -> Wait:
    what = f"Waiting for {_counted(pods)} to end: {_named(pods)}."
    left = [pod for pod in pods if pod.active]
    if left and deployment is None:
        return Wait(what, f"Nobody deletes {_named(left)}: delete them and their ReplicaSet.")
    if left:
        return Wait(what, "The garbage collector deletes them: does kube-controller-manager run?")
    return Wait(
        what,
        "`kubectl describe pod` says what keeps them; from a lost node, delete them with --force --grace-period=0.",
    )


def _counted(pods: Sequence[PodRecord]) -> str:
    return "1 pod" if len(pods) == 1 else f"{len(pods)} pods"


def _named(pods: Sequence[PodRecord]) -> str:
    names = sorted(pod.name for pod in pods)
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more


class Held(NamedTuple):
    """What became of putting the finalizer on.

    Attributes:
        memcached: as it is now.
        trouble: why it could not be put there; all else goes on.
        retry: it changed meanwhile: look again then, and at nothing before.
    """

    memcached: MemcachedRecord
    trouble: Trouble | None = None
    retry: Result | None = None


class _Refusal(NamedTuple):
    """What the API server would not do, and until when (by the clock) it is not asked again."""

    action: str
    trouble: Trouble
    until_s: float


class Finalizing:
    """Puts the finalizer on one Memcached at a time, and takes it off; see `hold` and `release`.

    `_deleted` holds the uid of the Deployment whose deletion was asked for: the watch may be behind. `_waiting` holds
    what a deletion waits for and since when (by the clock). `_refused` holds what the API server refused last.
    """

    def __init__(
        self,
        client: ApiClient,
        caches: Caches,
        own_writes: OwnWrites,
        reporter: Reporter,
        *,
        wanted: bool,
        field_manager: str,
        clock: Callable[[], float],
    ) -> None:
        """
        Args:
            wanted: each Memcached is to have the finalizer. What carries it is released in any case.
        """
        self._client = client
        self._caches = caches
        self._own_writes = own_writes
        self._reporter = reporter
        self._wanted = wanted
        self._field_manager = field_manager
        self._clock = clock
        self._deleted: dict[ObjectKey, str] = {}
        self._waiting: dict[ObjectKey, tuple[str, float]] = {}
        self._refused: dict[ObjectKey, _Refusal] = {}

    def forget(self, key: ObjectKey) -> None:
        """The Memcached is gone."""
        self._deleted.pop(key, None)
        self._waiting.pop(key, None)
        self._refused.pop(key, None)

    async def hold(self, memcached: MemcachedRecord, *, may_repair: bool) -> Held:
        """Put the finalizer on a Memcached that is not being deleted, if it is to have it and has it not.

        Args:
            may_repair: False while it is contested and this look is for others to be heard.
        """
        key = key_of(memcached)
        # What was done for one of the same name that was deleted before is over.
        self._deleted.pop(key, None)
        self._waiting.pop(key, None)
        if not self._wanted or not may_repair or FINALIZER in memcached.finalizers:
            return Held(memcached)
        if trouble := self._still_refused(key, "hold"):
            return Held(memcached, trouble)
        contests, path = self._reporter.contests, "metadata.finalizers"
        rivals = await contests.rivals(memcached, MEMCACHEDS, [path])
        try:
            held = await self._patch(memcached, adding(memcached, FINALIZER))
        except Conflict:
            return Held(memcached, retry=await self._reporter.after_conflict(memcached))
        except NotFound:
            return Held(memcached, retry=Result(requeue_after_s=VANISHED_RETRY_S))
        except (Forbidden, Invalid) as error:
            what = f"The finalizer {FINALIZER} cannot be put on it, so its deletion will not wait for its pods"
            return Held(memcached, self._refusal(key, "hold", what, error)._replace(blocking=False))
        logger.info("added the finalizer %s", FINALIZER, extra={"fields": {"action": "hold"}})
        contests.repaired(memcached, MEMCACHEDS, [path], rivals, asked=was_asked(memcached))
        return Held(held)

    async def release(self, memcached: MemcachedRecord, deployment: DeploymentRecord | None) -> Result:
        """Do what the deletion of a Memcached that carries the finalizer asks for, and say what it waits for."""
        key = key_of(memcached)
        if deployment is not None and self._deleted.get(key) == deployment.uid:
            deployment = msgspec.structs.replace(deployment, deleting=True)
        step = next_step(memcached, deployment, self._pods(key))
        looked = key in self._deleted or self._still_refused(key, "release") is not None
        if isinstance(step, Release) and deployment is None and not looked:
            # One that was made a moment ago, by whoever led then, may not have been seen yet.
            deployment = await self._live_deployment(key)
            step = next_step(memcached, deployment, self._pods(key))
        action = {Release: "release", Delete: "delete", Wait: "wait"}[type(step)]
        if trouble := self._still_refused(key, action):
            return await self._report(memcached, deployment, step, trouble)
        try:
            match step:
                case Release(why):
                    return await self._let_go(memcached, why)
                case Delete(live):
                    await self._delete(memcached, live)
                    deployment = msgspec.structs.replace(live, deleting=True)
                    step = next_step(memcached, deployment, self._pods(key))
                case Wait():
                    pass
            return await self._report(memcached, deployment, step)
        except Conflict:
            if isinstance(step, Release):
                return await self._reporter.after_conflict(memcached)
            return await self._after_conflict(key)
        except NotFound:
            # Gone by another's hand; its event is on its way. Or the API server boots, and does not know the kind yet.
            return Result(requeue_after_s=VANISHED_RETRY_S)
        except (Forbidden, Invalid, ServerError) as error:
            what = f"The Deployment {key.name} cannot be deleted"
            if isinstance(step, Release):
                what = f"The finalizer {FINALIZER} cannot be removed"
            trouble = self._refusal(key, action, what, error)
            result = await self._report(memcached, deployment, step, trouble)
            if isinstance(error, ServerError):
                # It may pass at any moment: tried again after a growing pause.
                self._refused.pop(key, None)
                raise
            return result

    async def _delete(self, memcached: MemcachedRecord, live: DeploymentRecord) -> None:
        """Delete that Deployment.

        Its pods and ReplicaSets go first: when it is gone, so are they. The version guards one that is being orphaned,
        which the cache may not have seen yet.
        """
        key = key_of(memcached)
        await self._client.delete(
            DEPLOYMENTS,
            key.namespace,
            key.name,
            uid=live.uid,
            resource_version=live.resource_version,
            propagation="Foreground",
        )
        self._deleted[key] = live.uid
        logger.info("deleted Deployment, as the Memcached is", extra={"fields": {"action": "delete"}})
        note = f"Deleted Deployment {key.name}, as the Memcached is being deleted"
        self._reporter.tell(memcached, "Normal", "Deleted", "Delete", note)

    async def _after_conflict(self, key: ObjectKey) -> Result:
        """The Deployment changed since the cache saw it: wait for the cache."""
        live = await self._live_deployment(key)
        if live is not None:
            self._own_writes.expect(key, DEPLOYMENTS.qualified_name, live.uid, live.resource_version)
        return Result(requeue_after_s=CONFLICT_PAUSE_S)

    async def _let_go(self, memcached: MemcachedRecord, why: str) -> Result:
        """Take the finalizer off."""
        key = key_of(memcached)
        released = await self._patch(memcached, removing(memcached, FINALIZER))
        if not released.finalizers:
            # The answer bears the version from before: nothing but the Memcached's end shows this write.
            self._own_writes.expect_released(key, MEMCACHEDS.qualified_name, memcached.uid)
        logger.info("removed the finalizer: %s", why, extra={"fields": {"action": "release", "why": why}})
        self._reporter.tell(memcached, "Normal", "Finalized", "Release", f"Removed the finalizer {FINALIZER}: {why}")
        self.forget(key)
        self._reporter.forget(key)
        return _DONE

    async def _patch(self, memcached: MemcachedRecord, body: object) -> MemcachedRecord:
        key = key_of(memcached)
        answer = await self._client.merge_patch(
            MEMCACHEDS, key.namespace, key.name, body, field_manager=self._field_manager
        )
        record = object_of(memcached_record, answer)
        if self._caches.memcacheds.get(key) is not None:
            # Quiet, as after a write of the status: the version in our write vouches that nothing else changed.
            self._caches.memcacheds.put(record, quiet=True)
        return record

    async def _report(
        self,
        memcached: MemcachedRecord,
        deployment: DeploymentRecord | None,
        step: Step,
        trouble: Trouble | None = None,
    ) -> Result:
        """Say in the status what is waited for, and that it takes too long."""
        terminating, retry_s = "Being deleted; see the condition Degraded.", SLOW_RETRY_S
        if isinstance(step, Wait) and trouble is None:
            terminating = step.what
            trouble, retry_s = self._judge_wait(memcached, step)
        try:
            size = read_spec(memcached.spec).size
        except InvalidSpec:
            size = None
        found = Found(deployment, trouble, terminating=terminating)
        result = await self._reporter.report(memcached, size, found)
        return Result(requeue_after_s=min(retry_s, result.requeue_after_s or retry_s))

    def _judge_wait(self, memcached: MemcachedRecord, wait: Wait) -> tuple[Trouble | None, float]:
        """Whether a wait has become a trouble, and when to look again, in seconds."""
        key, now = key_of(memcached), self._clock()
        what, since = self._waiting.get(key, ("", now))
        if what != wait.what:
            if not what:
                logger.info("being deleted: %s", wait.what, extra={"fields": {"action": "wait"}})
                self._reporter.tell(memcached, "Normal", "Terminating", "Delete", wait.what)
            self._waiting[key] = wait.what, now
            since = now
        stalled = Trouble(
            Reason.TERMINATION_STALLED, f"Nothing has changed for {STALLED_AFTER_S:.0f} s: {wait.what} {wait.remedy}"
        )
        left_s = since + STALLED_AFTER_S - now
        if left_s <= 0 or _was_told(memcached, stalled):
            return stalled, SLOW_RETRY_S
        return None, left_s

    def _still_refused(self, key: ObjectKey, action: str) -> Trouble | None:
        refusal = self._refused.get(key)
        if refusal is not None and refusal.action == action and self._clock() < refusal.until_s:
            return refusal.trouble
        return None

    def _refusal(self, key: ObjectKey, action: str, what: str, error: ApiError) -> Trouble:
        """Do not ask for the same thing again for a while."""
        reason = Reason.FORBIDDEN if isinstance(error, Forbidden) else Reason.TERMINATION_STALLED
        if isinstance(error, Invalid) and action == "hold":
            reason = Reason.INVALID_SPEC
        trouble = Trouble(reason, f"{what}: {error.message or error}", blocking=action != "hold")
        self._refused[key] = _Refusal(action, trouble, self._clock() + SLOW_RETRY_S)
        return trouble

    def _pods(self, key: ObjectKey) -> Sequence[PodRecord]:
        return list(self._caches.pods.by_index("memcached", key))

    async def _live_deployment(self, key: ObjectKey) -> DeploymentRecord | None:
        try:
            return object_of(deployment_record, await self._client.get(DEPLOYMENTS, key.namespace, key.name))
        except NotFound:
            return None


def _was_told(memcached: MemcachedRecord, trouble: Trouble) -> bool:
    """Whether the status says so already, as of before a restart."""
    degraded = decode_status(memcached.status).condition("Degraded")
    return degraded is not None and (degraded.reason, degraded.message) == (trouble.reason, trouble.message)
