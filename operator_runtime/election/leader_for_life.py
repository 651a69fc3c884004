"""Leader for life: the replica that creates the ConfigMap leads until its Pod is gone.

The ConfigMap is owned by the leader's Pod, so that the garbage collector frees it, and only then. Nothing is renewed:
two cannot lead as long as a Pod that is gone from the API runs nowhere and no other client writes the ConfigMap. A pod
whose node is lost stays in the API, being deleted, until a person confirms that it is gone; so does one that was
evicted. The one that waits reports it (see `verdict`), and cannot know a node that is only cut off.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Self

import msgspec
import orjson

from operator_runtime.cache.store import ObjectKey
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import Conflict, Forbidden, KubeError, NotFound, WriteRefused
from operator_runtime.client.resources import CONFIG_MAPS, NODES, PODS
from operator_runtime.client.response_identity import ExpectedObject
from operator_runtime.client.retry import Backoff

logger = logging.getLogger(__name__)

# operator-lib's, which this election is like: 1 s doubling to 16 s, give or take 20 %.
FIRST_WAIT_S, LONGEST_WAIT_S, SPREAD = 1.0, 16.0, 0.2
# Phases that a pod never leaves: it was evicted or preempted, its node was shut down or refused it. Nothing deletes it
# before there are thousands of its kind.
ENDED = ("Failed", "Succeeded")


class _NotYetError(KubeError):
    """Reason that this process cannot take part now. The message has what is missing, and the remedy."""


class _Owner(msgspec.Struct):
    kind: str
    name: str
    uid: str


class _Meta(msgspec.Struct):
    name: str
    uid: str = ""
    deletionTimestamp: str | None = None
    ownerReferences: list[_Owner] = msgspec.field(default_factory=list)


class _PodCondition(msgspec.Struct):
    type: str
    status: str


class _Status(msgspec.Struct):
    phase: str = ""
    reason: str = ""
    conditions: list[_PodCondition] = msgspec.field(default_factory=list)


class _Spec(msgspec.Struct):
    nodeName: str = ""


class Observed(msgspec.Struct):
    """A ConfigMap, a Pod or a Node, as far as this election reads it."""

    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


_decode = msgspec.json.Decoder(Observed).decode


class LeaderVerdict(StrEnum):
    WAIT = "wait"
    DELETE = "delete"
    DELETE_AT_ONCE = "delete without waiting for its node"


def verdict(pod: Observed, node: Observed | None, *, node_known: bool = True) -> LeaderVerdict:
    """Decide about the leader's pod, given its node: None where there is none of that name, or it is not
    `node_known`.
    """
    if pod.status.phase in ENDED:
        return LeaderVerdict.DELETE
    ready = node is not None and any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
    # Kubernetes has waited for the node (five minutes by default) before it began to delete the pod.
    if pod.metadata.deletionTimestamp is not None and pod.spec.nodeName and node_known and not ready:
        return LeaderVerdict.DELETE_AT_ONCE
    return LeaderVerdict.WAIT


class LifeElection:
    """Stands for election in `elected`; what it got it keeps."""

    def __init__(
        self,
        client: ApiClient,
        lock: ObjectKey,
        pod_name: str,
        *,
        field_manager: str,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self.lock = lock
        self.leading = False
        # Without a write fence, as it writes before this process leads.
        self._client = client
        self.slow_paths = 0  # nothing is renewed
        self._pod_name = pod_name
        self._field_manager = field_manager
        self._sleep = sleep
        self._backoff = Backoff(FIRST_WAIT_S, LONGEST_WAIT_S, SPREAD, uniform)
        self._logged: set[str] = set()

    def __str__(self) -> str:
        return f"ConfigMap {self.lock}"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let go of nothing: the ConfigMap lives as long as the pod."""
        await self._client.close()

    def may_write(self) -> None:
        """Raise WriteRefused while this process does not lead: the write fence (`client.connection_pools`)."""
        if not self.leading:
            raise WriteRefused(f"not sent: this process does not hold {self}")

    async def elected(self) -> None:
        waits = 0
        own: Observed | None = None
        while True:
            try:
                own = own or await self._own_pod()
                if await self._tried(own):
                    break
            except (KubeError, msgspec.DecodeError) as error:
                self._log_once(logging.WARNING, f"cannot take part in the election by {self}: {error}")
            waits += 1
            await self._sleep(self._backoff.delay_s(waits))
        self.leading = True
        logger.info("leading for life: %s is owned by pod %s", self, self._pod_name)

    async def _own_pod(self) -> Observed:
        try:
            return _decode(await self._client.get(PODS, self.lock.namespace, self._pod_name))
        except NotFound:
            raise _NotYetError(
                f"there is no pod {self._pod_name} in namespace {self.lock.namespace}; set POD_NAME to this pod's name"
                " (valueFrom: fieldRef: fieldPath: metadata.name)"
            ) from None

    async def _tried(self, own: Observed) -> bool:
        """One try; whether this process leads."""
        try:
            await self._client.create(
                CONFIG_MAPS, self.lock.namespace, self._body(own), field_manager=self._field_manager
            )
            return True
        except Conflict:
            pass
        try:
            found = _decode(await self._client.get(CONFIG_MAPS, self.lock.namespace, self.lock.name))
        except NotFound:  # freed just now
            return False
        holder = next((each for each in found.metadata.ownerReferences if each.kind == PODS.kind), None)
        if holder is None:
            raise _NotYetError(f"{self} is owned by no pod, so that nothing will free it: delete it by hand")
        if holder.uid == own.metadata.uid:  # this container has been restarted, its pod is the same
            return True
        self._log_once(logging.INFO, f"waiting: {self} is owned by pod {holder.name}")
        await self._judge(holder)
        return False

    def _body(self, own: Observed) -> dict[str, object]:
        owner = {"apiVersion": PODS.api_version, "kind": PODS.kind, "name": self._pod_name, "uid": own.metadata.uid}
        metadata = {"name": self.lock.name, "namespace": self.lock.namespace, "ownerReferences": [owner]}
        return {"apiVersion": CONFIG_MAPS.api_version, "kind": CONFIG_MAPS.kind, "metadata": metadata}

    async def _judge(self, holder: _Owner) -> None:
        """Delete the leader's pod where nothing else will."""
        try:
            pod = _decode(await self._client.get(PODS, self.lock.namespace, holder.name))
        except NotFound:  # the garbage collector is on its way
            return
        if pod.metadata.uid != holder.uid:
            return
        node, known = await self._node(pod)
        judged = verdict(pod, node, node_known=known)
        if judged is LeaderVerdict.WAIT:
            return
        options: dict[str, object] = {"preconditions": {"uid": holder.uid}}
        why = f"it has ended for good ({pod.status.reason or pod.status.phase})"
        if judged is LeaderVerdict.DELETE_AT_ONCE:
            options["gracePeriodSeconds"] = 0
            why = f"its node {pod.spec.nodeName} is lost"
        try:
            path = PODS.path(self.lock.namespace, holder.name)
            expected = ExpectedObject(PODS, self.lock.namespace, holder.name, holder.uid, or_status=True)
            await self._client.request("DELETE", path, body=orjson.dumps(options), expected=expected)
        except (NotFound, Conflict):
            return
        except Forbidden as error:
            needed = "delete on pods, and get on nodes,"
            self._log_once(logging.WARNING, f"cannot delete the leader's pod: {error}. Grant {needed} to the account")
            return
        logger.warning("deleted pod %s, which led by %s: %s", holder.name, self, why)

    async def _node(self, pod: Observed) -> tuple[Observed | None, bool]:
        """The pod's node, and whether it could be read."""
        if pod.metadata.deletionTimestamp is None or not pod.spec.nodeName:
            return None, False
        try:
            return _decode(await self._client.get(NODES, None, pod.spec.nodeName)), True
        except NotFound:
            return None, True
        except Forbidden as error:
            self._log_once(
                logging.WARNING, f"cannot see whether the leader's node is lost: {error}. Grant get on nodes"
            )
            return None, False

    def _log_once(self, level: int, what: str) -> None:
        """Log a message once: what is reported here stays so until the election is over."""
        if what not in self._logged:
            self._logged.add(what)
            logger.log(level, "%s", what)
