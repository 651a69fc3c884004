"""The rule of a server's memory against what servers took, which docs/sizing.md has."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from memcached_operator.api.sizing import memory_of_server_mib
from memcached_operator.api.v1alpha1 import EmptyDirVolume, Extstore, ExtstoreVolume, Spec, Tls

PAGE = (Path(__file__).parents[4] / "docs" / "sizing.md").read_text()
# Where a server does the most, the rule is above what it took by no more than this share.
_ABOVE_AT_MOST = 0.25


class Measured(NamedTuple):
    memory_mib: int
    connections: int
    threads: int
    what: str
    takes_mib: float
    rule_mib: int


def _measured() -> list[Measured]:
    line = r"^\| (\d+) \| (\d+) \| (\d+) \| \d+ \| (.+?) \| ([\d.]+) \| (\d+) \|"
    return [
        Measured(int(memory), int(connections), int(threads), what, float(takes), int(rule))
        for memory, connections, threads, what, takes, rule in re.findall(line, PAGE, re.MULTILINE)
    ]


MEASURED = _measured()


def _spec(measured: Measured) -> Spec:
    """With a disk six times as large as the memory, half of which is filled."""
    spec = Spec(memory=f"{measured.memory_mib}Mi", maxConnections=measured.connections, threads=measured.threads)
    if "three times the memory with a disk" not in measured.what:
        return spec
    disk = Extstore(size=f"{6 * measured.memory_mib}Mi", volume=ExtstoreVolume(emptyDir=EmptyDirVolume()))
    return spec.model_copy(update={"extstore": disk})


@pytest.mark.parametrize("measured", MEASURED, ids=lambda each: f"{each.memory_mib} MiB {each.what}")
def test_no_server_took_more_than_the_rule_says(measured: Measured) -> None:
    rule_mib = memory_of_server_mib(_spec(measured))
    assert measured.takes_mib < rule_mib
    assert measured.rule_mib == rule_mib, "docs/sizing.md has the figure of another rule"


@pytest.mark.parametrize("memory_mib", [64, 1024])
def test_the_rule_is_not_far_above_what_the_worst_took(memory_mib: int) -> None:
    took_mib = max(each.takes_mib for each in MEASURED if (each.memory_mib, each.connections) == (memory_mib, 1024))
    assert memory_of_server_mib(Spec(memory=f"{memory_mib}Mi")) < took_mib * (1 + _ABOVE_AT_MOST)


def test_the_page_says_what_pods_take_by_default() -> None:
    documented = re.findall(r"^\| `(\d+)([MG])i` \| `(\d+)Mi` \|", PAGE, re.MULTILINE)
    assert documented[0] == ("64", "M", "146")
    for number, unit, pod_mib in documented:
        assert memory_of_server_mib(Spec(memory=f"{number}{unit}i")) == int(pod_mib)


# KiB that a connection took of memcached 1.6.45 with OpenSSL 3.5: its client shows a certificate, and sent a part of a
# record; 4 KiB are the kernel's.
_TLS_CONNECTION_KIB = 26 + 13 + 4


def test_connections_by_tls_take_no_more_than_the_rule_says() -> None:
    tls = Tls(secretName="a")
    few, many = (memory_of_server_mib(Spec(maxConnections=each, tls=tls)) for each in (100, 10_100))
    more = many - few
    assert _TLS_CONNECTION_KIB * 10_000 < more * 1024 < 1.25 * _TLS_CONNECTION_KIB * 10_000


def test_the_hash_table_doubles_where_items_are_more_than_it_is_made_for() -> None:
    """2^19 buckets are for 786,432 items, which 72 MiB hold in the smallest chunks; then there is a table of 8 MiB."""
    needed = [memory_of_server_mib(Spec(memory=f"{mib}Mi")) for mib in range(60, 81)]
    steps = [after - before for before, after in pairwise(needed)]
    assert [60 + index for index, step in enumerate(steps) if step > 2] == [72]
