"""What is made of a server's disk, answer by answer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from memcached_operator.servers.stats_answer import StatsAnswer
from memcached_operator.servers.stats_cache import GOOD, DiskProblem, QueriedServer, disk, health
from tests.unit.memcached_operator.servers.support import answer

DISK = {"extstore_limit_maxbytes": 2**30, "extstore_pages_free": 50, "extstore_pages_used": 50}


def with_disk(seconds: int, **stats: int) -> StatsAnswer:
    return answer(**{**DISK, "time": seconds, "badcrc_from_extstore": 0, **stats})


def problems(answers: Sequence[StatsAnswer]) -> list[DiskProblem | None]:
    known, before, found = GOOD, None, []
    for each in answers:
        known = disk(known, before, each)
        before = each
        found.append(known.problem)
    return found


def queues(*depths: int) -> list[StatsAnswer]:
    return [with_disk(0, extstore_io_queue=depth) for depth in depths]


def evictions(*counts: int, free: int = 50) -> list[StatsAnswer]:
    """With 30 seconds between two."""
    return [
        answer(**{**DISK, "extstore_pages_free": free, "evictions": count, "time": 30 * number})
        for number, count in enumerate(counts)
    ]


@pytest.mark.parametrize(
    ("answers", "problems_shown"),
    [
        (queues(0, 50, 50, 50, 50), [None] * 5),
        (queues(0, 51, 51, 51), [None, None, None, DiskProblem.SLOW]),
        (queues(0, 51, 51, 0, 51), [None] * 5),
        (evictions(0, 31, 62, 93), [None, None, None, DiskProblem.BEHIND]),
        (evictions(0, 30, 60, 90), [None] * 4),
        # A full disk evicts, too, and that is what it is for.
        (evictions(0, 900, 1800, 2700, free=20), [None] * 4),
        # Nor is it new what happened before the first answer.
        ([with_disk(0, badcrc_from_extstore=9), with_disk(30, badcrc_from_extstore=9)], [None, None]),
        ([with_disk(0), with_disk(30, badcrc_from_extstore=1)], [None, DiskProblem.DAMAGED]),
        # A server without a disk.
        ([answer(evictions=0), answer(evictions=10**6)] * 4, [None] * 8),
    ],
)
def test_it_is_told_what_lasts_and_at_once_what_is_damaged(
    answers: list[StatsAnswer], problems_shown: list[DiskProblem | None]
) -> None:
    assert problems(answers) == problems_shown


def test_it_is_over_once_it_has_not_been_so_for_long() -> None:
    damaged = [with_disk(0), with_disk(30, badcrc_from_extstore=1)]
    found = problems([*damaged, *(with_disk(60, badcrc_from_extstore=1) for _ in range(25))])
    assert found[1:21] == [DiskProblem.DAMAGED] * 20
    assert found[21:] == [None] * 6


def test_what_was_damaged_stays_told_while_requests_wait() -> None:
    found = problems([with_disk(0), with_disk(30, badcrc_from_extstore=1), with_disk(60, badcrc_from_extstore=1)])
    assert found[-1] is DiskProblem.DAMAGED


def test_what_was_damaged_is_told_until_as_many_answers_show_no_damage_whatever_else_they_show() -> None:
    damaged = [with_disk(0), with_disk(30, badcrc_from_extstore=1)]
    slow = [with_disk(60, badcrc_from_extstore=1, extstore_io_queue=90)] * 21
    assert problems([*damaged, *slow])[1:] == [DiskProblem.DAMAGED] * 20 + [DiskProblem.SLOW] * 2


def test_problems_that_take_turns_are_told_by_the_worst_of_them() -> None:
    answers = [
        answer(**{**DISK, "evictions": 1000 * number, "time": 30 * number, "extstore_io_queue": number % 2 * 90})
        for number in range(30)
    ]
    assert problems(answers) == [None] * 3 + [DiskProblem.SLOW] * 27


def test_a_server_that_answers_keeps_what_is_known_of_its_disk_and_a_new_one_has_nothing() -> None:
    server: QueriedServer | None = None
    for each in queues(0, 90, 90, 90):
        server = health(server, each, restarts=0, reached=True)
    assert server is not None
    assert server.disk.why == "more than 50 requests wait for its disk"
    assert health(None, queues(90)[0], restarts=1, reached=True).disk.why == ""
