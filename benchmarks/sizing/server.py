"""A real memcached with the settings of a pod, and what memory it takes."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.process import free_port, memory_mib
from benchmarks.sizing.group import Group, group
from lab.image import bases, images, newest
from memcached_operator.api.memcached_flags import SIZE_CLASSES
from memcached_operator.api.sizing import disk_layout, memory_of_server_mib
from memcached_operator.api.v1alpha1 import EmptyDirVolume, Extstore, ExtstoreVolume, Spec

# Memcached gives up root's rights, and wants to be told for whose.
_USER = "nobody"
_HOST = "127.0.0.1"
_MEMORY = "/dev/shm"
_DEADLINE_S = 60.0
_POLL_S = 0.02


class ServerError(Exception):
    """Memcached did not start, or not do in time what it was expected to; the message says which."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a specification decides of a server.

    Attributes:
        memory_file: its items are in a file in memory, as those of a server with ``spec.warmRestart``.
        disk_mib: of the volume of a server with ``spec.extstore``, 0 for none.
    """

    memory_mib: int
    connections: int = 1024
    threads: int = 4
    item_size_kib: int = 1024
    memory_file: bool = False
    disk_mib: int = 0

    @property
    def rule_mib(self) -> int:
        """What it takes at most by the rule."""
        volume = ExtstoreVolume(emptyDir=EmptyDirVolume())
        spec = Spec(
            memory=f"{self.memory_mib}Mi",
            maxConnections=self.connections,
            threads=self.threads,
            maxItemSize=f"{self.item_size_kib}Ki",
            extstore=Extstore(size=f"{self.disk_mib}Mi", volume=volume) if self.disk_mib else None,
        )
        return memory_of_server_mib(spec)

    def options(self, folder: str) -> tuple[str, ...]:
        """Those that name a file, which is in that folder."""
        if self.memory_file:
            return ("-e", f"{folder}/items")
        if not self.disk_mib:
            return ()
        layout = disk_layout(self.disk_mib, self.item_size_kib)
        sizes = f"ext_page_size={layout.page_mib},ext_wbuf_size={layout.buffer_mib}"
        return ("-o", f"{sizes},ext_path={folder}/items:{layout.file_mib}m")

    def arguments(self) -> tuple[str, ...]:
        """As a pod's container has them."""
        size = f"{self.item_size_kib}k"
        items_mib = self.memory_mib + (SIZE_CLASSES - 1 if self.memory_file else 0)
        return (
            *("-m", str(items_mib), "-c", str(self.connections), "-t", str(self.threads)),
            *("-I", size, "-o", "modern", "-v"),
        )


class Memcached:
    """A memcached that runs somewhere."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)

    def connect(self) -> socket.socket:
        """A connection; the caller closes it."""
        return socket.create_connection(self._address, _DEADLINE_S)

    def stats(self, which: str = "") -> dict[str, str]:
        """What it answers to ``stats``."""
        with self.connect() as connection:
            connection.sendall(f"stats {which}".strip().encode() + b"\r\nquit\r\n")
            with connection.makefile() as answer:
                words = [line.split() for line in answer if line.startswith("STAT ")]
        return {name: value for _, name, value, *_ in words}

    def wait(self, what: str, done: Callable[[], bool]) -> None:
        """Until something is so. Raises ServerError: it is not in time."""
        deadline = time.monotonic() + _DEADLINE_S
        while not done():
            if time.monotonic() > deadline:
                raise ServerError(f"memcached: {what}")
            time.sleep(_POLL_S)


class Server(Memcached):
    """One that this process has started."""

    def __init__(self, port: int, process: subprocess.Popen[bytes], counted: Group | None) -> None:
        super().__init__(_HOST, port)
        self._process = process
        self._counted = counted

    def peak_mib(self) -> float:
        """The most that it took so far: what its cgroup counts, or its resident set where there is none."""
        if self._counted is not None:
            return self._counted.peak_mib()
        return memory_mib(Path(f"/proc/{self._process.pid}/status").read_text())[1]

    def answers(self) -> bool:
        """Whether it has started. Raises ServerError: it has ended."""
        if (code := self._process.poll()) is not None:
            raise ServerError(f"memcached: it ended with code {code}")
        with contextlib.suppress(OSError):
            return bool(self.stats())
        return False


@contextlib.contextmanager
def started(settings: Settings) -> Iterator[Server]:
    """Memcached on loopback, until the end of the block.

    Raises:
        BuildError: there is no memcached to run.
        ServerError: it does not start.
    """
    root = bases.unpacked(bases.MEMCACHED, images.images_dir())
    words = newest.command(root, root / bases.MEMCACHED_PROGRAM)
    # A cgroup counts what the kernel has of the file besides, and gives up for whatever else needs room.
    counting = contextlib.nullcontext() if settings.disk_mib else group()
    with counting as counted, tempfile.TemporaryDirectory(dir=_MEMORY if settings.memory_file else None) as folder:
        port = free_port()
        Path(folder).chmod(0o777)  # for that user
        command = (*words, *settings.arguments(), *settings.options(folder), "-u", _USER, "-l", _HOST, "-p", str(port))
        process = subprocess.Popen(
            counted.entered_by(command) if counted is not None else command,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        server = Server(port, process, counted)
        try:
            server.wait("it does not answer", server.answers)
            yield server
        finally:
            process.kill()
            process.wait()
