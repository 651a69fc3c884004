"""What is made of a server's answers, try by try."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import pytest

from memcached_operator.servers.certificates import Certificate, Shown
from memcached_operator.servers.server_connection import SATURATED, ErrorKind, Failure
from memcached_operator.servers.stats_answer import StatsAnswer
from memcached_operator.servers.stats_cache import (
    AnswerVerdict,
    QueriedServer,
    ServerHealth,
    StatsCache,
    health,
    is_queried,
)
from tests.unit.memcached_operator.servers.support import A, D, E, F, O, U, answer, server_pod

GOOD = answer()
REFUSED = Failure(ErrorKind.UNREACHABLE, "connection refused")
SILENT = Failure(ErrorKind.SILENT, "no answer within 1 s")
DENIED = Failure(ErrorKind.DENIED, "it requires a login")
MALFORMED = Failure(ErrorKind.MALFORMED, "strange")
# Of 1,024 connections memcached 1.6.45 takes 28 for itself where it has 4 threads.
CROWDED: list[StatsAnswer | Failure] = [
    answer(curr_connections=996, rejected_connections=number) for number in range(3)
]


TRIES: list[tuple[list[StatsAnswer | Failure], list[AnswerVerdict]]] = [
    ([SILENT, SILENT], [U, F]),
    ([GOOD, SILENT, GOOD, SILENT], [A, A, A, A]),
    ([GOOD, SILENT, SILENT, GOOD], [A, A, F, A]),
    ([GOOD, SILENT, MALFORMED, REFUSED], [A, A, F, F]),
    # What turns clients away is believed at once, and that it is over only when it says so twice.
    ([GOOD, SATURATED, GOOD, GOOD], [A, E, E, A]),
    ([SATURATED, GOOD, SATURATED, GOOD, GOOD], [E, E, E, E, A]),
    ([SATURATED, SILENT, SILENT], [E, F, F]),
    # Who lacks credentials is told at once, and one that answered before only when it says so twice.
    ([DENIED], [D]),
    ([GOOD, DENIED, GOOD], [A, A, A]),
    ([GOOD, DENIED, DENIED, GOOD], [A, A, D, A]),
    ([DENIED, SILENT, SILENT], [D, F, F]),
    # We had the place that somebody had just left.
    ([CROWDED[0], CROWDED[1]], [A, E]),
    ([CROWDED[0], CROWDED[0]], [A, A]),
    ([CROWDED[1], CROWDED[0]], [A, A]),
    ([*CROWDED, CROWDED[2], CROWDED[2]], [A, E, E, E, A]),
    ([answer(curr_connections=995, rejected_connections=number) for number in range(2)], [A, A]),
    # A crowd that is over is no exhaustion, however many were turned away in it.
    ([GOOD, answer(rejected_connections=9)], [A, A]),
]


def verdicts(tries: list[StatsAnswer | Failure], *, reached: bool = True) -> list[AnswerVerdict]:
    server, found = None, []
    for received in tries:
        server = health(server, received, restarts=0, reached=reached)
        found.append(server.verdict)
    return found


@pytest.mark.parametrize(("tries", "found"), TRIES)
def test_a_server_is_judged_over_several_tries(tries: list[StatsAnswer | Failure], found: list[AnswerVerdict]) -> None:
    assert verdicts(tries) == found


def test_what_cannot_be_connected_to_is_not_at_fault_before_any_server_answered() -> None:
    assert verdicts([REFUSED, REFUSED], reached=False) == [U, O]
    for taken in (SILENT, MALFORMED):  # whoever takes a connection can be reached
        assert verdicts([taken, taken], reached=False) == [U, F]


def test_a_reason_changes_only_when_two_tries_agree_on_another() -> None:
    server, why = None, []
    for received in (SILENT, SILENT, MALFORMED, SILENT, MALFORMED, MALFORMED):
        server = health(server, received, restarts=0, reached=True)
        why.append(server.why)
    assert why[1:] == [SILENT.why, SILENT.why, SILENT.why, SILENT.why, MALFORMED.why]


@pytest.fixture
def stats_cache() -> StatsCache:
    return StatsCache()


def test_news_are_told_once(stats_cache: StatsCache) -> None:
    pod = server_pod()
    tries: list[StatsAnswer | Failure] = [GOOD, GOOD, answer(version="1.6.46"), SILENT, SILENT, SILENT, GOOD]
    assert [stats_cache.record(pod, received) for received in tries] == [True, False, True, False, True, False, True]


def test_a_container_that_was_started_again_is_judged_anew(stats_cache: StatsCache) -> None:
    pod = server_pod()
    stats_cache.record(pod, SATURATED)
    again = msgspec.structs.replace(pod, restarts=1)
    assert stats_cache.of(again) is None
    assert stats_cache.read([again]) == [ServerHealth(pod.name)]
    assert not stats_cache.record(again, SILENT)
    server = stats_cache.of(again)
    assert server is not None
    assert server.verdict is U


@pytest.mark.parametrize("received", [GOOD, SATURATED, DENIED])
def test_once_any_server_answered_others_can_be_reached(
    stats_cache: StatsCache, received: StatsAnswer | Failure
) -> None:
    broken = server_pod("b")
    for _ in range(2):
        stats_cache.record(broken, REFUSED)
    assert [each.verdict for each in stats_cache.read([broken])] == [O]
    stats_cache.record(server_pod("a"), received)
    assert stats_cache.record(broken, REFUSED), "its verdict is another"
    assert [each.verdict for each in stats_cache.read([broken])] == [F]


@pytest.mark.parametrize("changes", [{}, {"ready": False}, {"active": False}, {"address": ""}])
def test_whoever_is_ready_and_has_an_address_is_asked(stats_cache: StatsCache, changes: dict[str, Any]) -> None:
    pod, expected = server_pod(**changes), not changes
    assert is_queried(pod) == expected
    assert [each.pod for each in stats_cache.read([pod])] == ([pod.name] if expected else [])
    assert list(stats_cache.missing.values()) == ([pod] if expected else [])


def test_those_that_are_read_in_vain_are_recorded_until_they_answer(stats_cache: StatsCache) -> None:
    first, second = server_pod("b"), server_pod("a")
    assert stats_cache.read([first, second]) == [ServerHealth("a"), ServerHealth("b")]
    assert set(stats_cache.missing) == {first.uid, second.uid}
    stats_cache.record(first, GOOD)
    assert set(stats_cache.missing) == {second.uid}
    assert stats_cache.read([first]) == [ServerHealth("b", A, "", "1.6.45")]


def test_a_server_takes_half_a_kilobyte_and_none_of_the_collectors_time() -> None:
    assert sys.getsizeof(GOOD.figures) < 512
    assert not QueriedServer.__struct_config__.gc
    assert not StatsAnswer.__struct_config__.gc


def test_another_certificate_is_news_and_the_same_one_is_none() -> None:
    stats_cache, pod = StatsCache(), server_pod()
    old, new = Certificate("old", 0.0, 9.0), Certificate("new", 1.0, 10.0)
    assert stats_cache.record(pod, GOOD, old, 100.0)
    assert not stats_cache.record(pod, GOOD, old, 200.0)
    assert not stats_cache.record(pod, SILENT, None, 300.0), "a try that showed none takes nothing back"
    assert stats_cache.read([pod])[0].shown == Shown(old, 100.0)
    assert stats_cache.record(pod, GOOD, new, 400.0)
    assert stats_cache.read([pod])[0].shown == Shown(new, 400.0)


def test_a_server_that_shows_another_certificate_than_a_new_one_would_is_late() -> None:
    stats_cache, pod = StatsCache(), server_pod()
    old, new = Certificate("old", 0.0, 9.0), Certificate("new", 1.0, 10.0)
    stats_cache.record(pod, GOOD, old, due="old")
    assert stats_cache.with_outdated_certificate([pod]) == frozenset()
    assert stats_cache.record(pod, GOOD, old, due="new"), "it is news"
    assert stats_cache.with_outdated_certificate([pod]) == {pod.uid}
    stats_cache.record(pod, GOOD, old, due=None)
    assert stats_cache.with_outdated_certificate([pod]) == frozenset(), "what nobody knows any more replaces no server"
    stats_cache.record(pod, GOOD, new, due="new")
    assert stats_cache.with_outdated_certificate([pod, server_pod("another")]) == frozenset()
