"""The user's cluster: what is read of the API server, and connections to servers."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, Generic, NamedTuple, TypeVar

import aiohttp

from kubectl_memcached.objects import (
    MEMCACHEDS,
    SECRETS,
    ServerPod,
    ShownMemcached,
    decode_memcached,
    decode_memcacheds,
    decode_pods,
    decode_secret,
)
from kubectl_memcached.port_forward import PortForwarder
from kubectl_memcached.server import ServerConnection
from kubectl_memcached.words import PluginError, show_progress
from memcached_operator import __version__
from memcached_operator.api.names import PLURAL
from memcached_operator.core.objects.labels import selector_text
from memcached_operator.servers.server_connection import Login, client_context
from operator_runtime.client.access.auth import NoClusterAccess, load_access
from operator_runtime.client.access.tls import load_cert_chain
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import UNDECODABLE, Forbidden, KubeError, NotFound, Unauthorized
from operator_runtime.client.resources import PODS

T = TypeVar("T")

# So many servers at once: `top` is to watch all of them at the same time.
_PARALLEL: Final = 100
_LIST_BYTES_MAX: Final = 1 << 28
_TRANSPORT_TIMEOUT_S: Final = 20.0
_PROGRESS_S: Final = 0.5
_ENDED: Final = ("Succeeded", "Failed")


class NoServers(PluginError):
    """Lack of pods of a Memcached."""


class Results(NamedTuple, Generic[T]):
    """Results of the same work at several servers, by their names.

    Attributes:
        failures: why servers have no result, in words.
    """

    found: Mapping[str, T]
    failures: Mapping[str, str]


class UserCluster:
    """Reads Memcacheds, and connects to their servers, as the user of a kubeconfig.

    Attributes:
        namespace: the one of the command line, else the context's.
    """

    def __init__(self, client: ApiClient, forwarder: PortForwarder, namespace: str) -> None:
        self._client = client
        self._forwarder = forwarder
        self.namespace = namespace

    @property
    def description(self) -> str:
        """The cluster in words, such as "context prod of ~/.kube/config"."""
        return self._client.access.description

    async def memcacheds(self, *, everywhere: bool) -> Sequence[ShownMemcached]:
        """List the Memcacheds of the namespace, or of all."""
        namespace = None if everywhere else self.namespace
        what = f"list {PLURAL} in {'all namespaces' if everywhere else self.namespace}"
        try:
            return decode_memcacheds(await self._read(MEMCACHEDS.path(namespace), what)).items
        except NotFound:
            raise PluginError(
                f"{self.description}: the cluster has no {MEMCACHEDS.qualified_name}; is the operator"
                " installed there? Other contexts: --context"
            ) from None

    async def memcached(self, name: str) -> ShownMemcached:
        """The Memcached of that name."""
        try:
            body = await self._read(MEMCACHEDS.path(self.namespace, name), f"get {PLURAL} in {self.namespace}")
        except NotFound:
            await self.memcacheds(everywhere=False)  # says so where there is no such kind
            raise PluginError(
                f"there is no Memcached {name} in {self.namespace}; `kubectl memcached list -A` has all, -n takes a"
                " namespace"
            ) from None
        return decode_memcached(body)

    async def check_at_rest(self, memcached: ShownMemcached) -> None:
        """Look at it anew.

        Raises:
            PluginError: its servers copy items from each other, so that what is deleted at one would come back.
        """
        handover = (await self.memcached(memcached.name)).status.handover
        if handover.is_under_way:
            raise PluginError(
                f"servers of {memcached.name} copy items from each other ({handover}), so that what is deleted at one"
                f" would come back; wait: kubectl wait memcached/{memcached.name} --for=condition=HandingOver=False"
            )

    async def pods(self, memcached: ShownMemcached) -> Sequence[ServerPod]:
        """The pods of its servers that are not going, by name."""
        found = await self._pods(memcached.namespace, selector_text(memcached.name))
        pods = [pod for pod in found if pod.metadata.deletionTimestamp is None and pod.status.phase not in _ENDED]
        if not pods:
            raise NoServers(
                f"Memcached {memcached.name} has no pods; its conditions say why:"
                f" kubectl memcached describe {memcached.name}"
            )
        return sorted(pods, key=lambda pod: (len(pod.name), pod.name))

    async def names_by_address(self, namespace: str) -> Mapping[str, str]:
        """The names of all pods of a namespace, by IP address."""
        return {pod.address: pod.name for pod in await self._pods(namespace, "") if pod.address}

    async def _pods(self, namespace: str, selector: str) -> Sequence[ServerPod]:
        query = {"labelSelector": selector} if selector else {}
        return decode_pods(await self._read(PODS.path(namespace), f"list pods in {namespace}", query)).items

    async def _read(self, path: str, what: str, query: Mapping[str, str] | None = None) -> bytes:
        try:
            return await self._client.request("GET", path, query=query, gzip=True, max_bytes=_LIST_BYTES_MAX)
        except Forbidden:
            raise PluginError(f"you may not {what}; ask an administrator for that permission") from None
        except Unauthorized as error:
            raise PluginError(f"{error}; log in again, or choose another --context") from None
        except NotFound:
            raise
        except KubeError as error:
            raise PluginError(f"{self.description}: {error}") from None

    async def each(
        self,
        memcached: ShownMemcached,
        work: Callable[[ServerPod, ServerConnection], Awaitable[T]],
        *,
        progress: Callable[[], str] = lambda: "",
    ) -> Results[T]:
        """Do something at all servers of a Memcached, several at once, and show meanwhile how far it is."""
        failures: dict[str, str] = {}
        found: dict[str, T] = {}

        async def one(pod: ServerPod) -> None:
            try:
                async with parallel, self.server(pod, memcached) as connection:
                    found[pod.name] = await work(pod, connection)
            except (PluginError, KubeError, *UNDECODABLE) as error:
                failures[pod.name] = str(error)

        parallel = asyncio.Semaphore(_PARALLEL)
        pods = await self.pods(memcached)
        try:
            async with asyncio.TaskGroup() as group:
                left = {group.create_task(one(pod)) for pod in pods}
                while left:
                    show_progress(progress())
                    _, left = await asyncio.wait(left, timeout=_PROGRESS_S)
        finally:
            show_progress("")
        return Results({pod.name: found[pod.name] for pod in pods if pod.name in found}, failures)

    @asynccontextmanager
    async def server(self, pod: ServerPod, memcached: ShownMemcached) -> AsyncIterator[ServerConnection]:
        """A connection to a pod's server until the end of the block, logged in where it requires that.

        Raises:
            PluginError: there is none.
        """
        if pod.why_not:
            raise PluginError(f"{pod.name}: {pod.why_not}")
        context = await self._context(pod, memcached)
        login = await self._login(pod, memcached)
        async with (
            self._forwarder.tunnel(memcached.namespace, pod.name, pod.port) as tunnel,
            ServerConnection.over(tunnel, context, _TRANSPORT_TIMEOUT_S) as connection,
        ):
            if login is not None:
                await connection.log_in(login)
            yield connection

    async def _context(self, pod: ServerPod, memcached: ShownMemcached) -> ssl.SSLContext | None:
        """TLS of which nothing is verified: that this is the pod, the API server and the kubelet vouch for."""
        if not pod.transport.tls:
            return None
        context = client_context()
        named = memcached.spec.tls
        if pod.transport.client_certificate and named is not None:
            files = await self._secret(memcached, named.secretName, "its servers require a client certificate")
            try:
                load_cert_chain(context, files.get("tls.crt", b"").rstrip() + b"\n" + files.get("tls.key", b""))
            except (OSError, ValueError):
                raise PluginError(
                    f"tls.crt and tls.key of Secret {named.secretName} are not a certificate and its key"
                ) from None
        return context

    async def _login(self, pod: ServerPod, memcached: ShownMemcached) -> Login | None:
        named = memcached.spec.auth
        if not pod.transport.passwords or named is None:
            return None
        files = await self._secret(memcached, named.secretName, "its servers require a password")
        login = Login.first_of(files.get("password-file", b""))
        if login is None:
            raise PluginError(f"password-file of Secret {named.secretName} has no line user:password")
        return login

    async def _secret(self, memcached: ShownMemcached, name: str, why: str) -> Mapping[str, bytes]:
        try:
            path = SECRETS.path(memcached.namespace, name)
            body = await self._read(path, f"get Secret {name} in {memcached.namespace}, and {why}")
            return decode_secret(body).data
        except NotFound:
            raise PluginError(f"Secret {name} does not exist, and {why}") from None


@asynccontextmanager
async def cluster_at(*, kubeconfig: str, context: str, namespace: str) -> AsyncIterator[UserCluster]:
    """The cluster that a kubeconfig names, until the end of the block; "" is the default of each.

    Raises:
        PluginError: there is no kubeconfig, or what is in it is wrong.
    """
    try:
        access = load_access(kubeconfig=kubeconfig, context=context, environ=os.environ)
    except NoClusterAccess as error:  # the message ends with the remedy
        raise PluginError(str(error)) from None
    user_agent = f"kubectl-memcached/{__version__}"
    # Each has a connection of its own.
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with (
        ApiClient(access, user_agent=user_agent) as client,
        aiohttp.ClientSession(connector=connector, headers={"User-Agent": user_agent}) as session,
    ):
        try:
            yield UserCluster(client, PortForwarder(access, session), namespace or access.namespace or "default")
        except KubeError as error:
            raise PluginError(f"{access.description}: {error}") from None
        except UNDECODABLE as error:
            raise PluginError(
                f"the API server's answer cannot be read: {error}; is this plugin as old as it?"
            ) from None
