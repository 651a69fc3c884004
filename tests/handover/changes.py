"""Changes of a list of servers in the order that a hand-over has, under clients of the old list and of the new."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.handover.clients import Client, Keys, Ring
from tests.handover.links import Link
from tests.handover.servers import HOST, Server

MARKER_TTL_S = 3.0


@dataclass
class Cluster:
    """Servers, their clients, and what an operator has of them.

    Times pass here as they do for clients and servers: how long a list is published is part of what is tried.
    """

    program: Sequence[str]
    script: Path
    folder: Path
    random: random.Random
    memory_mib: int = 64
    options: Sequence[str] = ()
    marker_ttl_s: float = MARKER_TTL_S
    purges: bool = True
    servers: list[Server] = field(default_factory=list)
    clients: list[Client] = field(default_factory=list)
    delay_s: float = 0.0
    """Of what servers send to each other, at most."""
    links: dict[tuple[int, int], Link] = field(default_factory=dict)
    _made: list[Server] = field(default_factory=list)
    _generation: int = 0
    _former_list_ended: float | None = None
    filling: asyncio.Event = field(default_factory=asyncio.Event)
    joining: Server | None = None
    """It is told of writes, and not queried."""

    async def start(self, count: int) -> None:
        for _ in range(count):
            server = self.made()
            await server.start()
            self.servers.append(server)

    def made(self) -> Server:
        """One that is yet to start."""
        server = Server(len(self._made), self.program, self.script, self.folder, self.memory_mib, self.options)
        self._made.append(server)
        return server

    def next_generation(self) -> int:
        """Of peers' files: each has a greater one than those before."""
        self._generation += 1
        return self._generation

    def serve(self, keys: Keys, count: int) -> None:
        """Clients, all with the present list."""
        ring = Ring(list(self.servers))
        self.clients = [Client(keys, ring, self.random.getrandbits(32)) for _ in range(count)]

    async def hide(self) -> None:
        await self._update_peers([])

    async def fill(self) -> None:
        await self._update_peers(self.servers)

    async def replace(self, index: int, alone_s: float) -> None:
        """A pod in the place of another, while servers fill themselves: it has peers so long after it serves."""
        gone = self.servers[index]
        gone.kill()
        await self._update_peers([each for each in self.servers if each is not gone])
        gone.forget()
        await gone.start()
        await asyncio.sleep(alone_s)
        await self.fill()

    async def _update_peers(self, peers: Sequence[Server], *, without: Server | None = None) -> None:
        """Have servers read their peers' files.

        Args:
            without: a server that answers nobody, and whose own file stays as it is.
        """
        generation = self.next_generation()
        running = [server for server in self.servers if server.runs and server is not without]
        for server in running:
            others = [peer for peer in peers if peer is not server]
            lines = [f"{await self.address(server, peer)}{' joining' * (peer is self.joining)}" for peer in others]
            server.update_peers(generation, lines)
        await asyncio.gather(*(server.confirmed(generation) for server in running))

    async def leave(self, server: Server) -> None:
        """Have the others go on without a server that hangs."""
        await self._update_peers([each for each in self.servers if each is not server], without=server)

    async def join(self, server: Server, *, is_queried: bool) -> None:
        """Have the others tell a server of their writes, and query it or not."""
        self.joining = None if is_queried else server
        await self.fill()

    async def address(self, server: Server, peer: Server) -> str:
        """Where a server reaches a peer: by a link that is slow, and that can be cut."""
        between = (server.number, peer.number)
        if between not in self.links:
            self.links[between] = Link(peer.peer_port, self.delay_s, random.Random(self.random.getrandbits(32)))
            await self.links[between].open()
        return f"{HOST} {self.links[between].port}"

    async def purge(self) -> int:
        """Delete what nobody has used since the last list before this one had its last client."""
        if self._former_list_ended is None or not self.purges:
            return 0
        return sum([await server.purge(self._former_list_ended) for server in self.servers])

    async def publish(self, servers: Sequence[Server], window_s: float) -> None:
        """Clients get the new list, half of them soon, the others late."""
        new = Ring(list(servers))
        ends = time.monotonic() + window_s

        async def switch(client: Client, late: bool) -> None:
            await asyncio.sleep(window_s if late else self.random.uniform(0, window_s / 4))
            client.ring = new

        await asyncio.gather(*(switch(client, index % 2 == 1) for index, client in enumerate(self.clients)))
        await asyncio.sleep(max(0.0, ends - time.monotonic()) + 0.1)  # a command that is under way has the old list
        self._former_list_ended = time.time()

    async def begin(self, count: int, window_s: float) -> None:
        """To another number of servers, with a hand-over, until all clients have the new list."""
        await self.start(max(0, count - len(self.servers)))
        await self.purge()
        await self.hide()
        await self.fill()
        self.filling.set()
        await self.publish(self.servers[:count], window_s)

    async def end(self, count: int) -> None:
        """Of a hand-over to so many servers."""
        await asyncio.sleep(self.marker_ttl_s)
        await self.hide()
        leaving, self.servers = self.servers[count:], self.servers[:count]
        for server in leaving:
            server.kill()
        await asyncio.sleep(self.marker_ttl_s)

    async def stop(self) -> None:
        for server in self._made:
            server.kill()
        for link in self.links.values():
            await link.close()


@asynccontextmanager
async def started(cluster: Cluster, count: int, *, filled: bool = False) -> AsyncIterator[Sequence[Server]]:
    """So many servers until the end of the block, which fill themselves if told so."""
    try:
        await cluster.start(count)
        if filled:
            await cluster.fill()
        yield cluster.servers
    finally:
        await cluster.stop()


@asynccontextmanager
async def running(cluster: Cluster, keys: Keys, servers: int, clients: int) -> AsyncIterator[None]:
    """A cluster with clients that send commands until the end of the block."""
    ended = asyncio.Event()
    async with started(cluster, servers):
        cluster.serve(keys, clients)
        tasks = [asyncio.create_task(client.run(ended)) for client in cluster.clients]
        try:
            yield
        finally:
            ended.set()
            await asyncio.gather(*tasks, return_exceptions=True)
    for task in tasks:
        task.result()
