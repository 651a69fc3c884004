"""Leader for life: the replica that creates the ConfigMap leads until its Pod is gone.

The ConfigMap is owned by the leader's Pod, so that the garbage collector frees it, and only then. Nothing is renewed:
two cannot lead as long as a Pod that is gone from the API runs nowhere and no other client writes the ConfigMap. A pod
whose node is lost stays in the API, being deleted, until a person confirms that it is gone; so does one that was
evicted. The one that waits reports it (see `_judge`), and cannot know a node that is only cut off.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

import msgspec
import orjson

from operator_runtime.cache.store import ObjectKey
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import Conflict, Forbidden, KubeError, NotFound, WriteRefused
from operator_runtime.client.resources import CONFIG_MAPS, NODES, PODS, Resource
from operator_runtime.client.response_identity import ExpectedObject
from operator_runtime.client.retry import Backoff
from operator_runtime.objects.api_objects import OwnerReference, PlainObject, plain_object

logger = logging.getLogger(__name__)

# operator-lib's, which this election is like: 1 s doubling to 16 s, give or take 20 %.
FIRST_WAIT_S, LONGEST_WAIT_S, SPREAD = 1.0, 16.0, 0.2
# Phases that a pod never leaves: it was evicted or preempted, its node was shut down or refused it. Nothing deletes it
# before there are thousands of its kind.
ENDED = ("Failed", "Succeeded")


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

    async def aclose(self) -> None:
        """Let go of nothing: the ConfigMap lives as long as the pod."""
        await self._client.close()

    def may_write(self) -> None:
        """Raise WriteRefused while this process does not lead: the write fence (`client.connection_pools`)."""
        if not self.leading:
            raise WriteRefused(f"not sent: this process does not hold {self}")

    async def elected(self) -> None:
        waits = 0
        own: PlainObject | None = None
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

    async def _read(self, resource: Resource, name: str, namespace: str | None) -> PlainObject:
        answer = await self._client.get(resource, namespace, name)
        return plain_object(answer, resource.api_version, resource.kind)

    async def _own_pod(self) -> PlainObject:
        try:
            return await self._read(PODS, self._pod_name, self.lock.namespace)
        except NotFound:
            raise KubeError(
                f"there is no pod {self._pod_name} in namespace {self.lock.namespace}; set POD_NAME to this pod's name"
                " (valueFrom: fieldRef: fieldPath: metadata.name)"
            ) from None

    async def _tried(self, own: PlainObject) -> bool:
        """One try; whether this process leads."""
        try:
            await self._client.create(
                CONFIG_MAPS, self.lock.namespace, self._body(own), field_manager=self._field_manager
            )
            return True
        except Conflict:
            pass
        try:
            found = await self._read(CONFIG_MAPS, self.lock.name, self.lock.namespace)
        except NotFound:  # freed just now
            return False
        holder = next((each for each in found.owners if each.kind == PODS.kind), None)
        if holder is None:
            raise KubeError(f"{self} is owned by no pod, so that nothing will free it: delete it by hand")
        if holder.uid == own.uid:  # this container has been restarted, its pod is the same
            return True
        self._log_once(logging.INFO, f"waiting: {self} is owned by pod {holder.name}")
        await self._judge(holder)
        return False

    def _body(self, own: PlainObject) -> dict[str, object]:
        owner = {"apiVersion": PODS.api_version, "kind": PODS.kind, "name": self._pod_name, "uid": own.uid}
        metadata = {"name": self.lock.name, "namespace": self.lock.namespace, "ownerReferences": [owner]}
        return {"apiVersion": CONFIG_MAPS.api_version, "kind": CONFIG_MAPS.kind, "metadata": metadata}

    async def _judge(self, holder: OwnerReference) -> None:
        """Delete the leader's pod where nothing else will: it has ended for good, or its node is lost."""
        try:
            pod = await self._read(PODS, holder.name, self.lock.namespace)
        except NotFound:  # the garbage collector is on its way
            return
        if pod.uid != holder.uid:
            return
        options: dict[str, object] = {"preconditions": {"uid": holder.uid}}
        status, node = pod.body.get("status") or {}, (pod.body.get("spec") or {}).get("nodeName")
        if status.get("phase") in ENDED:
            why = f"it has ended for good ({status.get('reason') or status['phase']})"
        # Kubernetes has waited for the node (five minutes by default) before it began to delete the pod.
        elif pod.deleting and node and await self._is_lost(node):
            options["gracePeriodSeconds"] = 0
            why = f"its node {node} is lost"
        else:
            return
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

    async def _is_lost(self, node: str) -> bool:
        """Report whether a node is gone or not ready; False where it may not be read."""
        try:
            status = (await self._read(NODES, node, None)).body.get("status") or {}
        except NotFound:
            return True
        except Forbidden as error:
            self._log_once(
                logging.WARNING, f"cannot see whether the leader's node is lost: {error}. Grant get on nodes"
            )
            return False
        conditions = status.get("conditions", ())
        return not any((each.get("type"), each.get("status")) == ("Ready", "True") for each in conditions)

    def _log_once(self, level: int, what: str) -> None:
        """Log a message once: what is reported here stays so until the election is over."""
        if what not in self._logged:
            self._logged.add(what)
            logger.log(level, "%s", what)
