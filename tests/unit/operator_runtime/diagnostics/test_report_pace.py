"""When what goes on is said again."""

from __future__ import annotations

import pytest

from operator_runtime.diagnostics.report_pace import LONGEST_PAUSE_S, ReportPace


def test_it_is_said_at_once_and_after_pauses_that_double_up_to_the_longest() -> None:
    reminder = ReportPace(first_s=1000.0)
    due = [now for now in range(0, 20_000, 100) if reminder.due(float(now))]
    assert due == [0, 1000, 3000, 3000 + LONGEST_PAUSE_S, *(3000 + n * LONGEST_PAUSE_S for n in range(2, 5))]


@pytest.mark.parametrize(("rest_s", "next_s"), [(LONGEST_PAUSE_S, LONGEST_PAUSE_S), (LONGEST_PAUSE_S + 1, 1000.0)])
def test_after_a_rest_of_more_than_the_longest_pause_it_is_said_as_at_first(rest_s: float, next_s: float) -> None:
    reminder = ReportPace(first_s=1000.0)
    last = [now for now in range(0, 20_000, 100) if reminder.due(float(now))][-1]
    assert not reminder.due(last + 1.0)
    assert reminder.due(last + 1.0 + rest_s)
    due = [now for now in range(1, 20_000) if reminder.due(last + 1.0 + rest_s + now)]
    assert due[0] == next_s
