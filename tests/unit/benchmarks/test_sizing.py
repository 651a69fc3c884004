"""What `./dev sizing` starts, how it fills it, and how it shows what it has measured."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from benchmarks.sizing import load
from benchmarks.sizing.__main__ import row
from benchmarks.sizing.group import Group
from benchmarks.sizing.points import Point, points
from benchmarks.sizing.server import Settings
from memcached_operator.api.sizing import memory_needed_mib


def test_a_server_has_the_arguments_of_a_pod() -> None:
    words = Settings(256, connections=10_000, threads=16, item_size_kib=512).arguments()
    assert " ".join(words) == "-m 256 -c 10000 -t 16 -I 512k -o modern -v"
    assert Settings(64, memory_file=True).arguments()[:2] == ("-m", "102")


def test_a_line_holds_the_rule_against_what_was_measured() -> None:
    rule = memory_needed_mib(64, 1024, 4)
    point = Point(Settings(64), "1 KB", connections="busy", every_size=True)
    assert row(point, rule / 2) == (
        f"| 64 | 1024 | 4 | 1024 | values of 1 KB, one of every size, all connections busy "
        f"| {rule / 2:.1f} | {rule} | 2.00 |"
    )


def test_each_point_has_a_line_of_its_own() -> None:
    lines = [row(point, 1.0) for point in points()]
    assert len(set(lines)) == len(lines)


@pytest.mark.parametrize("file", ["memory.peak", "memory.max_usage_in_bytes"])
def test_the_highest_memory_is_read_from_both_versions_of_cgroups(tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_text(f"{3 * 2**19}\n")
    assert Group(tmp_path).peak_mib() == 1.5


def test_a_busy_connection_is_in_the_midst_of_a_value_after_a_whole_read_buffer() -> None:
    ours, theirs = socket.socketpair()
    received = bytearray()
    unfinished = threading.Event()

    def serve() -> None:
        while chunk := theirs.recv(2**16):
            received.extend(chunk)
            if len(received) >= 2**14:
                unfinished.set()
            if received.endswith(b"\r\n"):
                theirs.sendall(b"STORED\r\n")

    with ours, theirs:
        thread = threading.Thread(target=serve)
        thread.start()
        load.busy([ours])
        ours.shutdown(socket.SHUT_WR)
        thread.join(60)
    assert unfinished.is_set()
    *whole, last = received.split(b"set ")[1:]
    assert {value.count(b"v") for value in (*whole, last)} == {1024}
    assert [b"noreply" in value for value in (*whole, last)] == [True] * len(whole) + [False]
