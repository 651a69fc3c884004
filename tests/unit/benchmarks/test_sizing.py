"""What `./dev sizing` starts, how it fills it, and how it shows what it has measured."""

from __future__ import annotations

from benchmarks.sizing.__main__ import row
from benchmarks.sizing.points import Point
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
