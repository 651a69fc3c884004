"""A server that moves, and its keys with it, in the order that a move has: by a holder, that has them meanwhile."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from memcached_operator.features.handover.move.item_copy import Transferred, transfer
from memcached_operator.servers.server_connection import Endpoint
from tests.handover.changes import Cluster
from tests.handover.servers import HOST, Server

STEPS = ("purge", "hold", "hide", "connect", "copy", "close", "replace", "restore", "disconnect")
_FEW = 200
_PASS_S = 10.0
# Longer than a mark lasts, in whose place nothing is copied.
_LONGEST_S = 15.0

Fault = Callable[["Move"], Awaitable[None]]


@dataclass
class Move:
    """A move of the server at an index: a new one takes its place in the list, which never changes.

    Each step is done anew where it was interrupted, so that another operator goes on.

    Attributes:
        interrupted: the step in the midst of which the operator ends.
        faults: what goes wrong while a step is under way, by it.
        left_out: of what makes a move safe, as a plant.
        begun_s: what began in a thread before it knew a peer ends within it.
        away_s: until another operator leads.
        ends: the server's pod is ending from the first step on: its file is as it is, and it is told.
        copies_s: for so long items are copied, and then the pod ends, whatever is missing.
    """

    cluster: Cluster
    index: int
    interrupted: str = ""
    faults: dict[str, Fault] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    begun_s: float = 0.5
    away_s: float = 3.0
    ends: bool = False
    copies_s: float | None = None
    holder: Server | None = None
    is_new: bool = False
    born_with: Server | None = None
    """The peer that a new pod is born with, as the template has it."""

    @property
    def server(self) -> Server:
        """The one that goes, and then the one that has its name."""
        return self.cluster.servers[self.index]

    async def run(self) -> None:
        if self.ends:
            self.server.end()
        for name in STEPS:
            step: Callable[[], Awaitable[None]] = getattr(self, name)
            if name == self.interrupted:
                doing = asyncio.ensure_future(step())
                await asyncio.sleep(self.cluster.random.uniform(0.0, 0.7))
                doing.cancel()
                with suppress(asyncio.CancelledError):
                    await doing
                await asyncio.sleep(self.away_s)
            doing = asyncio.ensure_future(step())
            if (fault := self.faults.get(name)) is not None:
                await fault(self)
            await doing

    async def purge(self) -> None:
        """Else the copy would launder what former owners have left: its last use would be now."""
        if "purge" not in self.left_out:
            await self.cluster.purge()

    async def hold(self) -> None:
        """Nobody asks the holder yet; it has the server that goes as its peer from its birth."""
        if self.holder is None:
            self.holder = self.cluster.made()
            self.holder.update_peers(1, [await self.cluster.address(self.holder, self.server)])
        if not self.holder.runs:
            await self.holder.start()
        await self.holder.confirmed(1)

    async def hide(self) -> None:
        """Else a thread without routes would show marks."""
        await self._tell(self.server, [])

    async def connect(self) -> None:
        """All threads know the holder before anything is copied: else one writes without tombs."""
        if "confirmation" in self.left_out:
            self._update(self.server, await self._holder_address())
        elif self.holder is not None:
            await self._tell(self.server, await self._holder_address())
            await asyncio.sleep(self.begun_s)
        self.born_with = self.holder

    async def copy(self) -> None:
        passes = self._passes(self.server, self.holder, enough=1 << 40 if "passes" in self.left_out else _FEW)
        with suppress(TimeoutError):
            await asyncio.wait_for(passes, self.copies_s)

    async def close(self) -> None:
        """Without it what was written in the last moment is lost."""
        if "forgetting" in self.left_out:  # what is written now, the holder is not told of
            await self._tell(self.server, [])
            await asyncio.sleep(self.begun_s * 2)
        is_left_out = self.left_out & {"close", "forgetting"} or self.copies_s is not None
        if is_left_out or self.holder is None or not self.server.runs:
            return
        await self._tell(self.server, [*await self._holder_address(), "closed"])
        await asyncio.sleep(self.begun_s / 2)
        if "passes" not in self.left_out:
            await self._passes(self.server, self.holder, enough=0)

    async def replace(self) -> None:
        if not self.is_new:
            if self.server.runs:
                self.server.signal(signal.SIGTERM)
                await self.server.ended()
            self.is_new = True
        if self.holder is not None and self.holder.runs:
            self._update(self.holder, [])  # nobody waits for it
        if not self.server.runs:
            born_with = await self._address_of(self.born_with) if "birth" not in self.left_out else []
            self.server.forget()
            self.server.update_peers(self.cluster.next_generation(), born_with)
            await self.server.start()
        if "birth" in self.left_out:
            await asyncio.sleep(self.begun_s * 2)
            await self._tell(self.server, await self._address_of(self.born_with))

    async def restore(self) -> None:
        await self._passes(self.born_with, self.server, enough=0)

    async def disconnect(self) -> None:
        await self._tell(self.server, [])
        if self.holder is not None:
            self.holder.kill()

    async def give_up_holder(self) -> None:
        """The template first, then the server that goes: a holder that was dropped is never used again."""
        dropped, self.holder, self.born_with = self.holder, None, None
        if self.server.runs:
            await self._tell(self.server, [])
        if dropped is not None:
            dropped.kill()

    async def _passes(self, source: Server | None, target: Server | None, *, enough: int) -> None:
        """Copy and compare until no more than so many lack; a server that has gone has nothing to be copied."""
        ends = asyncio.get_running_loop().time() + _LONGEST_S
        while asyncio.get_running_loop().time() < ends:
            if source is None or target is None or not (source.runs and target.runs):
                return
            there, clients = (Endpoint(HOST, port=port) for port in (target.peer_port, target.port))
            done = await transfer(Endpoint(HOST, port=source.peer_port), there, clients, _PASS_S)
            if isinstance(done, Transferred) and done.lacking <= enough:
                return
            await asyncio.sleep(0.1)

    async def _holder_address(self) -> list[str]:
        return await self._address_of(self.holder)

    async def _address_of(self, peer: Server | None) -> list[str]:
        return [] if peer is None else [await self.cluster.address(self.server, peer)]

    async def _tell(self, server: Server, lines: Sequence[str]) -> None:
        generation = self.cluster.next_generation()
        is_told = self.ends and server is self.server and not self.is_new
        if not is_told or self.cluster.random.random() < 0.3:  # as it was before the pod was to end, at the same time
            server.update_peers(generation, lines)
        if is_told and server.runs:
            await server.say("\n".join([str(generation), *lines]))
        await server.confirmed_or_ended(generation)

    def _update(self, server: Server, lines: Sequence[str]) -> int:
        generation = self.cluster.next_generation()
        server.update_peers(generation, lines)
        return generation
