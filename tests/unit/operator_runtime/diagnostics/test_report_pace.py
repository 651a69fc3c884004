"""When what goes on is said again."""

from __future__ import annotations

from operator_runtime.diagnostics.report_pace import LONGEST_PAUSE_S, ReportPace


def test_it_is_said_at_once_and_after_pauses_that_double_up_to_the_longest() -> None:
    reminder = ReportPace(first_s=1000.0)
    due = [now for now in range(0, 20_000, 100) if reminder.due(float(now))]
    assert due == [0, 1000, 3000, 3000 + LONGEST_PAUSE_S, *(3000 + n * LONGEST_PAUSE_S for n in range(2, 5))]
