"""Real memcacheds that hand over to each other, on loopback, and the processor time that they take."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.process import free_port, memory_mib
from lab.programs import memcached
from memcached_operator.features.handover.server_state import HandoverState, Unsupported, state_of
from memcached_operator.servers.server_connection import Failure

HOST = "127.0.0.1"
# Memcached gives up root's rights, and wants to be told for whose.
_USER = ("-u", "nobody") if os.getuid() == 0 else ()
_THREADS = ("-t", "2")
_TIMEOUT_S = 10.0
_POLL_S = 0.05


class ServerError(Exception):
    """A memcached did not start or did not confirm in time; the message says which."""


class Server:
    """One memcached. ``port`` is for clients, ``peer_port`` for peers."""

    def __init__(self, folder: Path, *, proxy: bool) -> None:
        self.port, self.peer_port = free_port(), free_port()
        self._peers = folder / f"peers-{self.port}"
        self._peers.write_text("")
        kinds = ("proto[proxy]:", "proto[ascii]:") if proxy else ("", "")
        listeners = ",".join(
            f"{kind}{HOST}:{port}" for kind, port in zip(kinds, (self.port, self.peer_port), strict=True)
        )
        options = ("-o", f"proxy_config={folder / 'handover.lua'},proxy_arg={self._peers}") if proxy else ()
        command = (*memcached.build(), "-m", "256", "-o", "modern", *_THREADS, *_USER, "-l", listeners, *options)
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @property
    def cpu_ns(self) -> int:
        """Of all its threads, since its start."""
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks)

    @property
    def peak_mib(self) -> float:
        """Its resident set at its highest."""
        return memory_mib(Path(f"/proc/{self._process.pid}/status").read_text())[1]

    def update_peers(self, generation: int, peers: Sequence[Server]) -> None:
        """Write its peers' file."""
        lines = [str(generation), *(f"{HOST} {each.peer_port}" for each in peers if each is not self)]
        new = self._peers.with_suffix(".new")
        new.write_text("\n".join(lines))
        new.replace(self._peers)

    def state(self) -> HandoverState | Unsupported | Failure:
        """What it says of hand-over."""
        return asyncio.run(state_of(HOST, _TIMEOUT_S, port=self.peer_port))

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def started(count: int, script: str | None = None) -> Iterator[list[Server]]:
    """Servers until the end of the block, once they answer.

    Args:
        script: of their proxy; without one they have none.

    Raises:
        BuildError: there is no memcached to run.
        ServerError: one does not start.
    """
    servers: list[Server] = []
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as ends:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "handover.lua").write_text(script or "")
        for _ in range(count):
            servers.append(Server(folder, proxy=script is not None))
            ends.callback(servers[-1].end)
        _wait(lambda: not any(isinstance(server.state(), Failure) for server in servers), "they start")
        yield servers


def confirm(servers: Sequence[Server], generation: int, peers: Sequence[Server]) -> None:
    """Write the peers' files, and wait until all servers have read them. Raises ServerError: one has not in time."""
    for server in servers:
        server.update_peers(generation, peers)

    def have_read() -> bool:
        states = [server.state() for server in servers]
        return all(isinstance(state, HandoverState) and state.has_confirmed(generation) for state in states)

    _wait(have_read, f"they read generation {generation}")


def _wait(done: Callable[[], bool], what: str) -> None:
    ends_s = time.monotonic() + _TIMEOUT_S
    while not done():
        if time.monotonic() > ends_s:
            raise ServerError(f"memcacheds: not within {_TIMEOUT_S:g} s: {what}")
        time.sleep(_POLL_S)
