"""When what goes on is said again."""

from __future__ import annotations

import pytest

from operator_runtime.diagnostics.report_pace import ReportPace


def test_it_is_said_at_once_and_after_pauses_that_double_up_to_the_longest() -> None:
    reminder = ReportPace(first_s=2.0, longest_s=8.0)
    assert [now for now in range(32) if reminder.due(float(now))] == [0, 2, 6, 14, 22, 30]


def test_it_knows_how_often_it_was_kept_quiet() -> None:
    reminder = ReportPace(first_s=3.0)
    unreported = [reminder.unreported for now in range(10) if reminder.due(float(now))]
    assert unreported == [0, 2, 5]


@pytest.mark.parametrize(("rest_s", "again"), [(8.0, [0, 8]), (8.5, [0, 2, 6])])
def test_after_a_rest_of_more_than_the_longest_pause_it_is_said_as_at_first(rest_s: float, again: list[int]) -> None:
    reminder = ReportPace(first_s=2.0, longest_s=8.0)
    due = [now for now in range(15) if reminder.due(float(now))]
    assert due == [0, 2, 6, 14]
    assert [now for now in range(12) if reminder.due(14.0 + rest_s + now)] == again
