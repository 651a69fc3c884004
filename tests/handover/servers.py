"""Real memcacheds that hand over to each other, on loopback, and what an operator does to them."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from memcached_operator.features.handover.purge import Purged, empty, purge
from memcached_operator.features.handover.server_state import HandoverState, say, state_of
from memcached_operator.servers.server_connection import Failure
from operator_runtime.testing.waiting import async_eventually

HOST = "127.0.0.1"
THREADS = 2
# As the script names the folder that a pod's containers share.
SHARED = '"/dev/shm"'
_USER = "nobody"
_TIMEOUT_S = 10.0


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    try:
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


async def closed(writer: asyncio.StreamWriter) -> None:
    """Close a connection whose other end may be gone."""
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


class Connection:
    """A client's, on which one command follows the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def answer(self, *requests: str) -> str:
        """What these requests are answered, in their order, together."""
        self._writer.write("".join(f"{request}\r\n" for request in (*requests, "mn")).encode())
        return (await self._reader.readuntil(b"MN\r\n")).decode().removesuffix("MN\r\n")


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Connection]:
    """A connection to one of a server's ports, until the end of the block."""
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        yield Connection(reader, writer)
    finally:
        await closed(writer)


class Server:
    """One memcached. ``port`` is for clients, ``peer_port`` for peers and the operator."""

    def __init__(
        self,
        number: int,
        program: Sequence[str],
        script: Path,
        folder: Path,
        memory_mib: int,
        options: Sequence[str] = (),
    ) -> None:
        self.number = number
        self.port, self.peer_port, self.tell_port = free_ports(3)
        self._file = folder / f"peers-{number}"
        self._file.write_text("")
        listeners, text = "", script.read_text()
        self.shared: Path | None = None
        if SHARED in text:  # each has a folder of its own, as a pod has
            self.shared = folder / f"shared-{number}"
            self.shared.mkdir()
            self.shared.chmod(0o777)
            script = folder / f"handover-{number}.lua"
            script.write_text(text.replace(SHARED, f'"{self.shared}"'))
            listeners = f",proto[proxy]:tag[tell]:{HOST}:{self.tell_port}"
        self._command = [
            *program,
            *("-m", str(memory_mib), "-t", str(THREADS), "-o", "modern", *options),
            *(("-u", _USER) if os.getuid() == 0 else ()),
            *("-l", f"proto[proxy]:{HOST}:{self.port},proto[ascii]:{HOST}:{self.peer_port}{listeners}"),
            *("-o", f"proxy_config={script},proxy_arg={self._file}"),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    async def start(self) -> None:
        self._start()
        await async_eventually(self.state, bool, ignoring=OSError, what="memcached answers")

    def _start(self) -> None:
        self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    async def ended(self) -> None:
        """It has ended, as after a signal."""
        await async_eventually(self._ended, bool, what="memcached ends")

    async def _ended(self) -> bool:
        return not self.runs

    def update_peers(self, generation: int, peers: Sequence[str]) -> None:
        """Write its peers' file, in one step as the kubelet does.

        Args:
            peers: host and port of each.
        """
        new = self._file.with_suffix(".new")
        new.write_text("\n".join([str(generation), *peers]))
        new.replace(self._file)

    def forget(self) -> None:
        """It is to start as a new pod does, with an empty file."""
        self._file.write_text("")
        for each in self.shared.iterdir() if self.shared is not None else ():
            each.unlink()

    def end(self) -> None:
        """What its pod's hook does first: from now on its file is as it is."""
        assert self.shared is not None
        (self.shared / "ending").touch()

    async def say(self, text: str) -> bool | Failure:
        """Tell it its peers while its pod is ending."""
        return await say(HOST, text, _TIMEOUT_S, port=self.tell_port)

    async def state(self) -> HandoverState:
        """How far it is.

        Raises:
            OSError: it does not say so.
        """
        state = await state_of(HOST, _TIMEOUT_S, port=self.peer_port)
        if not isinstance(state, HandoverState):
            raise OSError(state)
        return state

    async def count(self, name: str, of: str = "stats") -> int:
        """One of the numbers of its `stats`, or of its proxy's."""
        reader, writer = await asyncio.open_connection(HOST, self.peer_port)
        try:
            writer.write(f"{of}\r\n".encode())
            lines = (await reader.readuntil(b"END\r\n")).decode().split("\r\n")
        finally:
            await closed(writer)
        return next(int(line.split()[2]) for line in lines if line.startswith(f"STAT {name} "))

    async def purge(self, unused_since_s: float) -> int:
        """Delete what was last used before that time; how many items."""
        purged = await purge(HOST, unused_since_s, _TIMEOUT_S, port=self.peer_port)
        assert isinstance(purged, Purged), purged
        return purged.deleted

    async def empty(self) -> None:
        """Delete all items."""
        emptied = await empty(HOST, _TIMEOUT_S, port=self.peer_port)
        assert isinstance(emptied, Purged), emptied

    async def confirmed(self, generation: int) -> None:
        """Each of its threads has read its peers' file of this generation."""

        async def has_confirmed() -> bool:
            return (await self.state()).has_confirmed(generation)

        await async_eventually(has_confirmed, bool, ignoring=OSError, what=f"generation {generation} is read")

    async def confirmed_or_ended(self, generation: int) -> None:
        """Likewise, unless it ends before."""

        async def is_over() -> bool:
            return not self.runs or (await self.state()).has_confirmed(generation)

        await async_eventually(is_over, bool, ignoring=OSError, what=f"generation {generation} is read")
