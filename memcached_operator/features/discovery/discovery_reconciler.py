"""Keeps the ConfigMap with the list and the Deployment of its endpoint as `spec.discovery` has them.

The endpoint runs the image that the operator itself runs, as its own pod has it.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from memcached_operator.about import PROGRAM
from memcached_operator.api.status import Problem, Reason
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.access import Access
from memcached_operator.core.objects.labels import APPLIED_ANNOTATION, endpoint_label
from memcached_operator.core.objects.owned_kind import Known, OwnedKind
from memcached_operator.core.objects.owned_object import Manifest, OwnedRecord
from memcached_operator.core.objects.scripts import ConfigMapManifest
from memcached_operator.core.observed.caches import PODS
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.outcome import EMPTY, Attempt, Outcome
from memcached_operator.core.snapshot import Snapshot
from memcached_operator.features.discovery.endpoint_objects import ENDPOINT_DEPLOYMENTS, without_pods
from memcached_operator.features.discovery.server_list_configmap import (
    CONFIG_MAPS,
    ClusterServers,
    is_untouched,
    published,
)
from operator_runtime import (
    Client,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    ObjectKey,
    ServerError,
    TooManyRequests,
    plain,
)

logger = logging.getLogger(__name__)

_PODS: Final = plain("v1", "Pod", "pods")


def own_image(client: Client, namespace: str, given: str) -> Callable[[], Awaitable[str]]:
    """Make what finds the image of the operator; "" where this is no pod, or the operator may not get its own.

    It raises a KubeError where the API server could not be reached, or failed.

    Args:
        given: by the settings, "" for none.
    """
    found = given

    async def find() -> str:
        nonlocal found
        if not found and namespace:
            try:
                name = os.environ.get("POD_NAME") or socket.gethostname()
                pod = (await client.get(_PODS, ObjectKey(namespace, name))).body
            except (Forbidden, NotFound):
                return ""
            # Others may have been injected.
            images = {each["name"]: each["image"] for each in pod["spec"]["containers"]}
            found = images.get(PROGRAM.name) or next(iter(images.values()))
        return found

    return find


_NO_IMAGE: Final = Problem(
    Reason.OPERATOR_IMAGE_UNKNOWN,
    "spec.discovery.autoDiscovery has no endpoint, as the operator cannot find out which image it runs: it is no pod, "
    "or may not get its own. Set --operator-image (OPERATOR_IMAGE).",
    blocking=False,
)

KeepObject: TypeAlias = Callable[[OwnedKind, Snapshot, Manifest | None, bool], Awaitable[Attempt[OwnedRecord]]]
"""Keeps an object as desired, or removes it. The last argument: a difference follows from what changed elsewhere."""


class DiscoveryReconciler:
    """Keeper of what has the list of servers, which is None before there is one.

    Attributes:
        ensure: keeps the object of each kind, where `spec.discovery` is set.
        find_image: finds the image that the operator runs, "" where it is not known.
    """

    def __init__(self, access: Access, find_image: Callable[[], Awaitable[str]], keep: KeepObject) -> None:
        self._access = access
        self._keep = keep
        self.find_image = find_image
        self.ensure: Mapping[OwnedKind, Callable[[Snapshot, Sequence[str] | None], Awaitable[Outcome]]] = {
            CONFIG_MAPS: self.ensure_list,
            ENDPOINT_DEPLOYMENTS: self._ensure_endpoint,
        }

    async def ensure_list(self, snapshot: Snapshot, servers: Sequence[str] | None) -> Outcome:
        memcached, spec, live = snapshot.memcached, snapshot.spec, self._live_list(snapshot.memcached.key)
        listed = ClusterServers(servers or (), _addresses(snapshot.pods), int(snapshot.now.timestamp()))
        desired = published(memcached.owner, spec, listed, live)
        if desired is not None and servers is None:
            return EMPTY
        # One that is as it was written is no longer right because the servers have changed since.
        done = await self._keep(CONFIG_MAPS, snapshot, desired, live is not None and is_untouched(live))
        if spec.has_endpoint and done.kept is not None and done.kept.obj is not None:
            await self._hasten(memcached, CONFIG_MAPS.codec.decoded(done.kept.obj))
        return done.outcome

    async def _ensure_endpoint(self, snapshot: Snapshot, servers: Sequence[str] | None) -> Outcome:
        desired = None
        if snapshot.spec.has_endpoint:
            try:
                image = await self.find_image()
            except (ServerError, TooManyRequests) as error:
                return Outcome(failures=(error,))
            if servers is None or not image:
                return EMPTY if servers is None else Outcome((_NO_IMAGE,))
            known = Known(operator_image=image)
            desired = ENDPOINT_DEPLOYMENTS.desired(snapshot.memcached.owner, snapshot.spec, known)
        done = await self._keep(ENDPOINT_DEPLOYMENTS, snapshot, desired, False)
        there = done.kept.obj if done.kept is not None else None
        problem = without_pods(there) if isinstance(there, WorkloadRecord) else None
        return done.outcome if problem is None else Outcome((problem,)) + done.outcome

    async def follow(self, memcached: MemcachedRecord, spec: Spec, servers: Sequence[str]) -> bool:
        """Have the list of a Memcached that is being deleted follow its servers, if it is there; whether it does."""
        live = self._access.caches.auxiliary[CONFIG_MAPS].get(CONFIG_MAPS.key_of(memcached.key))
        if live is None or live.deleting or live.owner_uid != memcached.uid:
            return True
        decoded = CONFIG_MAPS.codec.decoded(live)
        listed = ClusterServers(servers, _addresses(self._access.caches.servers_of(memcached)))
        desired = published(memcached.owner, spec, listed, decoded)
        if desired is None or decoded.immutable or decoded.data == desired.data:
            return True
        body = {"metadata": {"annotations": desired.metadata.annotations}, "data": desired.data}
        try:
            await self._access.client.patch(CONFIG_MAPS.kind, live, body)
        except (Conflict, NotFound):
            self._access.client.outdated(CONFIG_MAPS.kind, live)
        except (Forbidden, Invalid, ServerError, TooManyRequests) as error:
            logger.warning("the published list does not follow the status: %s", error.message or error)
            return False
        return True

    def _live_list(self, memcached: ObjectKey) -> ConfigMapManifest | None:
        live = self._access.caches.auxiliary[CONFIG_MAPS].get(CONFIG_MAPS.key_of(memcached))
        return CONFIG_MAPS.codec.decoded(live) if live is not None and live.normalized else None

    async def _hasten(self, memcached: MemcachedRecord, servers: ConfigMapManifest) -> None:
        """Have the kubelets bring a list to an endpoint's pods at once, as they do when an annotation changes."""
        digest = (servers.metadata.annotations or {}).get(APPLIED_ANNOTATION, "")
        body = {"metadata": {"annotations": {APPLIED_ANNOTATION: digest}}}
        for pod in self._access.caches.pods_of(ObjectKey(memcached.namespace, endpoint_label(memcached.name))):
            if pod.active and pod.applied != digest:
                try:
                    await self._access.client.patch(PODS, pod, body)
                except (Conflict, NotFound):
                    pass  # its next event comes here again
                except (Forbidden, Invalid, ServerError, TooManyRequests) as error:
                    logger.warning("an endpoint has its list late: %s", error.message or error)


def _addresses(pods: Iterable[PodRecord]) -> Mapping[str, str]:
    return {pod.name: pod.address for pod in pods if pod.address}
