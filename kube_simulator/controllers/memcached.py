"""Pods that are real: a container that runs memcached becomes a process on a loopback address of its own.

The process ends with the pod (SIGTERM, and SIGKILL when the grace period is over) and with the simulator, also when
that is killed: a launcher asks the kernel to be killed with its parent (PR_SET_PDEATHSIG) and then becomes memcached.
A change of user would undo that request, so the launcher itself gives up root, which memcached refuses to run as.
Linux only, as there every address of 127.0.0.0/8 can be listened on; the kernel ends the processes with the *thread*
that started them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from ipaddress import IPv4Network
from typing import Final

from kube_simulator.controllers.pod_status import Container, End
from kube_simulator.values import Json

PORT: Final = 11211
_PROGRAM: Final = "memcached"
# A corner of 127.0.0.0/8 in which nobody else is likely to listen.
_NETWORK: Final = IPv4Network("127.64.0.0/10")
_ADDRESS_ATTEMPTS: Final = 100
# Options of which ours take the place; each of the first has a value.
_REPLACED: Final = re.compile("(-[luP]|--listen|--user|--pidfile)(?P<value>(?<=-.).+|=.*)?")
_DETACHED: Final = ("-d", "--daemon")
_PORTED: Final = re.compile("(-p|--port)=?(?P<value>.*)")
_FIRST_POLL_S, _LONGEST_POLL_S = 0.005, 0.1
_CONNECT_TIMEOUT_S: Final = 1.0
# Before what has ended, or cannot be started, is started again.
_PAUSE_S: Final = 0.2

# The parent may be gone before the kernel was asked: hence the look at it afterwards. 1 is PR_SET_PDEATHSIG, 65534 is
# "nobody" on every Linux.
_LAUNCHER: Final = """
import ctypes, os, signal, sys
parent, *command = sys.argv[1:]
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
if ctypes.CDLL(None).prctl(1, signal.SIGKILL) != 0 or os.getppid() != int(parent):
    sys.exit(1)
os.execv(command[0], command)
"""


def find_program() -> str | None:
    """The memcached on the PATH, if this machine can give each pod an address of its own."""
    return shutil.which(_PROGRAM) if sys.platform.startswith("linux") else None


@dataclass(frozen=True, slots=True)
class Command:
    """Command to start for a container."""

    container: str
    arguments: tuple[str, ...]
    port: int


def command_of(pod: Json) -> Command | None:
    """The first container that runs memcached, by its command or else by its image; None if there is none."""
    for container in pod["spec"]["containers"]:
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        image = container["image"].rpartition("/")[2].partition("@")[0].partition(":")[0]
        if not container.get("command") and image == _PROGRAM:  # the image's own entry point
            words = words if words and not words[0].startswith("-") else [_PROGRAM, *words]
        if words and os.path.basename(words[0]) == _PROGRAM:
            arguments, port = _fitted(words[1:])
            return Command(container["name"], tuple(arguments), port)
    return None


def _fitted(words: Sequence[str]) -> tuple[list[str], int]:
    """The container's arguments without those that the simulator sets itself, and the port to be asked."""
    kept: list[str] = []
    port, left = PORT, iter(words)
    for word in left:
        if replaced := _REPLACED.fullmatch(word):
            if replaced["value"] is None:
                next(left, None)
        elif ported := _PORTED.fullmatch(word):
            kept += [word] if ported["value"] else [word, next(left, "")]
            value = ported["value"] or kept[-1]
            port = int(value) if value.isdecimal() else port
        elif word not in _DETACHED:
            kept.append(word)
    return kept, port


def free_address(port: int, taken: Callable[[str], bool], chance: random.Random) -> str:
    """An address that no pod has and on which nobody listens.

    Raises:
        OSError: none was found; this machine cannot listen on them.
    """
    error: OSError | None = None
    for _ in range(_ADDRESS_ATTEMPTS):
        address = str(_NETWORK[chance.randrange(1, _NETWORK.num_addresses - 1)])
        with socket.socket() as candidate:
            try:
                candidate.bind((address, port))
            except OSError as failed:
                error = failed
                continue
        if not taken(address):
            return address
    raise error or OSError(f"no free address in {_NETWORK}")


class Process:
    """One container's process: started, watched, started again when it ends, and ended with the pod."""

    def __init__(
        self,
        program: str,
        command: Command,
        pod: Json,
        *,
        addresses: Callable[[], str],
        now: Callable[[], datetime],
        changed: Callable[[], None],
    ) -> None:
        """`changed` is called whenever `container` or `address` is another."""
        self.command = command
        self.address = ""
        """Where it listens, or will or would: the first start decides it."""
        self.container = Container()
        self._program = program
        self._addresses = addresses
        self._now = now
        self._changed = changed
        self._process: asyncio.subprocess.Process | None = None
        self._task = asyncio.create_task(self._live(), name=f"memcached of {pod['metadata']['name']}")

    async def stop(self, grace_s: float) -> None:
        """End it: it is asked to, and killed when the time is over; without any time it is killed at once."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        process = self._process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError, TimeoutError):
            if grace_s > 0:
                process.send_signal(signal.SIGTERM)
                await asyncio.wait_for(process.wait(), grace_s)
                return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()

    def crash(self) -> None:
        """Kill it as the kernel does where a limit of memory is passed; it is started again as after any other end."""
        if (pid := self.pid) is not None:
            os.kill(pid, signal.SIGKILL)

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    @property
    def exit_code(self) -> int:
        """Exit code of the last process, or minus the signal that ended it; 0 if there was none."""
        return (self._process.returncode or 0) if self._process is not None else 0

    async def _live(self) -> None:
        while True:
            started_at, restarts = self._now(), self.container.restarts
            try:
                end = End(await self._run(), started_at, self._now())
            except OSError as error:
                words = f"{self._program} cannot be started: {error}"
                self._show(replace(self.container, waiting_for="CreateContainerError", message=words))
            else:
                self._show(Container(restarts=restarts + 1, last_end=end))
            await asyncio.sleep(_PAUSE_S)

    async def _run(self) -> int:
        """Run the process to its end; return its exit code, or minus the signal that ended it."""
        if not self.address:
            self.address = self._addresses()
            self._changed()
        process = self._process = await launch(self._program, self.command, self.address)
        ended = asyncio.create_task(process.wait())
        try:
            if await _answers(self.address, self.command.port, ended):
                self._show(replace(self.container, running_since=self._now(), ready=True))
            return await ended
        finally:
            ended.cancel()

    def _show(self, container: Container) -> None:
        self.container = container
        self._changed()


async def launch(program: str, command: Command, address: str) -> asyncio.subprocess.Process:
    """Start memcached on an address; it ends with this process, and with the thread that called."""
    own, null = (program, *command.arguments, "-l", address), asyncio.subprocess.DEVNULL
    launcher = (sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()))
    return await asyncio.create_subprocess_exec(*launcher, *own, stdin=null, stdout=null, stderr=null)


async def _answers(address: str, port: int, ended: asyncio.Task[int]) -> bool:
    """Wait until memcached says its version; False if its process has ended before."""
    poll_s = _FIRST_POLL_S
    while not ended.done():
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                reader, writer = await asyncio.open_connection(address, port)
                with contextlib.closing(writer):
                    writer.write(b"version\r\n")
                    if (await reader.readline()).startswith(b"VERSION") and not ended.done():
                        return True
        await asyncio.wait([ended], timeout=poll_s)
        poll_s = min(2 * poll_s, _LONGEST_POLL_S)
    return False
