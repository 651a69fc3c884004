"""What is measured: settings, and what the server has to do with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from benchmarks.sizing import load
from benchmarks.sizing.server import Settings, started

Connections = Literal["few", "idle", "busy"]

_BYTES = {"1 B": 1, "64 B": 64, "1 KB": 1000, "2 KB": 2000, "50 KB": 50_000, "1 MB": 1_000_000}
# Of a server's memory, what is stored by one with a disk.
_TIMES = 3
_LARGEST = "almost the item size"

# Of the connections: those that it listens on, and the ones that ask for its state. It takes some for itself, too.
_OTHERS = 8


@dataclass(frozen=True, slots=True)
class Point:
    """One server to measure.

    Attributes:
        values: that it is filled with beyond full, by a name of ``_BYTES``, or of almost the item size.
        connections: whether all of its connections are opened, and whether all are in the midst of a value at once.
        every_size: then one value of each of its size classes is set.
    """

    settings: Settings
    values: str
    connections: Connections = "few"
    every_size: bool = False

    def __str__(self) -> str:
        """As a row of the table says what the server has to do."""
        parts = [f"values of {self.values}"]
        if self.every_size:
            parts.append("one of every size")
        if self.settings.memory_file:
            parts.append("in a memory file")
        if self.settings.disk_mib:
            parts.append("three times the memory with a disk")
        if self.connections != "few":
            parts.append(f"all connections {self.connections}")
        return ", ".join(parts)


def points() -> Iterator[Point]:
    """All of them, the quickest settings first."""
    yield Point(Settings(64), "1 B")
    for memory_mib in (64, 256, 1024):
        for values in ("64 B", "1 KB", "50 KB"):
            yield Point(Settings(memory_mib), values)
        yield Point(Settings(memory_mib), "64 B", every_size=True)
    for connections in (1024, 10_000):
        for state in ("idle", "busy"):
            yield Point(Settings(64, connections), "1 KB", connections=state)
    for threads in (16, 64):
        yield Point(Settings(64, threads=threads), "1 KB", connections="busy")
    for memory_mib, item_size_kib in ((64, 512), (64, 16 * 1024), (256, 16 * 1024), (256, 128 * 1024)):
        yield Point(Settings(memory_mib, item_size_kib=item_size_kib), _LARGEST)
    for memory_mib in (64, 1024):
        yield Point(Settings(memory_mib), "64 B", connections="busy", every_size=True)
    for memory_mib in (64, 256, 1024):
        in_file = Settings(memory_mib, memory_file=True)
        for values in ("64 B", "1 KB", "50 KB"):
            yield Point(in_file, values)
        yield Point(in_file, "64 B", every_size=True, connections="busy")
        for values in ("2 KB", "50 KB", "1 MB"):
            yield Point(Settings(memory_mib, disk_mib=2 * _TIMES * memory_mib), values)


def measured_mib(point: Point) -> tuple[float, str]:
    """The most memory that it took, and memcached's version.

    Raises:
        BuildError: there is no memcached to run.
        ServerError: it does not do in time what it was told.
        OSError: it closed a connection.
    """
    settings = point.settings
    with started(settings) as server:
        if settings.disk_mib:
            load.put(server, _TIMES * settings.memory_mib, _BYTES[point.values])
        elif point.values == _LARGEST:
            load.fill_with_large(server, settings.memory_mib, settings.item_size_kib * 1000)
        else:
            load.fill(server, settings.memory_mib, _BYTES[point.values])
        if point.every_size:
            load.one_of_each_size(server, settings.item_size_kib * 1000)
        if point.connections != "few":
            server.wait("connections stay", lambda: int(server.stats()["curr_connections"]) < _OTHERS)
            own = int(server.stats()["reserved_fds"]) + _OTHERS + settings.memory_file  # which is open, too
            with load.idle(server, settings.connections - own) as connections:
                if point.connections == "busy":
                    load.busy(connections)
        return server.peak_mib(), server.stats()["version"]
