"""Connections to ports of pods through the API server, by a WebSocket each.

The kubelet's own protocol, `v4.channel.k8s.io`: the first byte of a message is its channel, 0 for what is carried and 1
for what goes wrong; the first message of each channel has the port alone. Kubernetes 1.36 was tried; it answers that
beside the tunnel of SPDY that kubectl prefers. A WebSocket begins as a GET, so that it takes `get` on pods/portforward,
and from 1.35 on `create` as well.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import aiohttp

from kubectl_memcached.words import PluginError, printable_text
from operator_runtime.client.access.credentials import ClusterAccess
from operator_runtime.client.connection_pools import describe
from operator_runtime.client.resources import PODS

_PROTOCOL: Final = "v4.channel.k8s.io"
_DATA: Final = b"\0"
_ERROR_CHANNEL: Final = 1
_BLOCK_BYTES: Final = 1 << 16
_OPEN_TIMEOUT_S: Final = 20.0
_CLOSE_TIMEOUT_S: Final = 1.0


class Tunnel:
    """A connection to a port of a pod.

    Attributes:
        near: what is written to it arrives there, and what that sends can be read.
        failure: what the node said of it, "" for nothing.
    """

    def __init__(self, pod: str, response: aiohttp.ClientWebSocketResponse) -> None:
        self.pod = pod
        self.near, self._far = socket.socketpair()
        self.failure = ""
        self._response = response
        for end in (self.near, self._far):
            end.setblocking(False)
        self._tasks = [asyncio.create_task(self._receive()), asyncio.create_task(self._send())]

    async def _receive(self) -> None:
        loop = asyncio.get_running_loop()
        begun: set[int] = set()
        with suppress(OSError):
            async for message in self._response:
                data = message.data if isinstance(message.data, bytes) else b""
                channel = data[0] if data else _ERROR_CHANNEL
                if channel not in begun:
                    begun.add(channel)
                elif channel == _ERROR_CHANNEL:
                    self.failure = printable_text(data[1:])
                    break
                else:
                    await loop.sock_sendall(self._far, data[1:])
        with suppress(OSError):
            self._far.shutdown(socket.SHUT_RDWR)

    async def _send(self) -> None:
        loop = asyncio.get_running_loop()
        with suppress(OSError, aiohttp.ClientError):
            while block := await loop.sock_recv(self._far, _BLOCK_BYTES):
                await self._response.send_bytes(_DATA + block)

    async def close(self) -> None:
        """End the connection: the server closes its end as well."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for end in (self.near, self._far):
            end.close()
        with suppress(TimeoutError, OSError, aiohttp.ClientError):
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await self._response.close()


class PortForwarder:
    """Opens connections to pods as the user of a kubeconfig."""

    def __init__(self, access: ClusterAccess, session: aiohttp.ClientSession) -> None:
        self._access = access
        self._session = session

    @asynccontextmanager
    async def tunnel(self, namespace: str, pod: str, port: int) -> AsyncIterator[Tunnel]:
        """A connection until the end of the block.

        Raises:
            PluginError: it is refused, or the API server cannot be reached.
        """
        tunnel = Tunnel(pod, await self._opened(namespace, pod, port))
        try:
            yield tunnel
        finally:
            await tunnel.close()

    async def _opened(self, namespace: str, pod: str, port: int) -> aiohttp.ClientWebSocketResponse:
        access = self._access
        headers = await access.credentials.headers()
        context = access.credentials.ssl_context()
        try:
            async with asyncio.timeout(_OPEN_TIMEOUT_S):
                return await self._session.ws_connect(
                    access.server + PODS.path(namespace, pod, "portforward"),
                    params={"ports": str(port)},
                    protocols=(_PROTOCOL,),
                    headers=headers,
                    proxy=access.proxy,
                    ssl=context if context is not None else True,
                    server_hostname=access.tls_server_name,
                )
        except aiohttp.WSServerHandshakeError as error:
            raise PluginError(f"{pod}: {_refusal(error.status, namespace)}") from None
        except TimeoutError:
            raise PluginError(f"{pod}: no port-forward within {_OPEN_TIMEOUT_S:g} s; is its node well?") from None
        except (aiohttp.ClientError, OSError) as error:
            raise PluginError(f"{pod}: {describe(error)}") from None


def _refusal(status: int, namespace: str) -> str:
    match status:
        case 401:
            return "the API server does not accept the credential; log in again"
        case 403:
            return (
                "you may not open a port-forward by a WebSocket; ask for `get` and `create` on pods/portforward in"
                f" {namespace}"
            )
        case 404:
            return "the pod is gone; try again"
        case 400 | 500:
            return f"the node refuses a port-forward ({status}); is the pod running, and its node well?"
        case _:
            return f"the API server answers a port-forward with {status}; a proxy before it may know no WebSockets"
