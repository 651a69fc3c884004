"""What the controller says of a failure: once for each reason, then ever more seldom, and when it is over."""

from __future__ import annotations

import logging

import pytest

from operator_runtime.client.errors import Conflict, KubeError, ServerError, Unreachable
from operator_runtime.diagnostics.failure_log import FailureLog, TerminalError
from operator_runtime.testing.clock import FakeClock

LOGGER = "operator_runtime.diagnostics.failure_log"


class Said:
    """A failure log on a fake clock, and the lines that it wrote."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self.clock = FakeClock(0.0)
        self.log: FailureLog[str] = FailureLog(self.clock)
        self.caplog = caplog
        caplog.set_level(logging.DEBUG, LOGGER)

    def failed(self, error: Exception, retry_in_s: float | None = 1.0, *, key: str = "default/a") -> None:
        self.log.failed(key, error, retry_in_s)

    @property
    def lines(self) -> list[str]:
        return [record.getMessage() for record in self.caplog.records]

    @property
    def levels(self) -> list[int]:
        return [record.levelno for record in self.caplog.records]


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Said:
    return Said(caplog)


@pytest.mark.parametrize(
    ("error", "retry_in_s", "next_one"),
    [
        (ServerError(503), 0.25, "in 0.25 s"),
        (KubeError("what"), 0.25, "in 0.25 s"),
        (TerminalError("spec.size must be 0 or more"), None, "when the object changes"),
    ],
)
def test_an_expected_failure_is_one_line_without_a_traceback_and_another_reason_is_said_at_once(
    said: Said, error: Exception, retry_in_s: float | None, next_one: str
) -> None:
    for _ in range(2):
        said.failed(error, retry_in_s)
    assert said.lines == [f"attempt 1 failed, next one {next_one}: {error}"]
    assert said.caplog.records[0].levelno == logging.WARNING
    assert said.caplog.records[0].exc_info is None
    said.failed(KubeError("refused"))
    assert len(said.lines) == 2


def test_a_bug_brings_its_traceback_once(said: Said) -> None:
    for _ in range(2):
        said.failed(KeyError("size"))
        said.clock.advance(60.0)
    assert said.lines[0] == "attempt 1 failed, next one in 1 s: KeyError: 'size'"
    assert [record.levelno for record in said.caplog.records] == [logging.ERROR] * 2
    assert [bool(record.exc_info) for record in said.caplog.records] == [True, False]


def test_the_same_failure_is_repeated_at_intervals_that_double_up_to_an_hour(said: Said) -> None:
    times = []
    for second in range(0, 4 * 3600, 10):
        said.clock.advance_to(float(second))
        before = len(said.lines)
        said.failed(ServerError(503, message=f"resourceVersion {second}: overloaded"))
        if len(said.lines) > before:
            times.append(second)
    assert times == [0, 60, 180, 420, 900, 1860, 3780, 7380, 10980]


def test_recovery_is_said_once_and_only_after_a_failure(said: Said) -> None:
    said.log.worked("default/a")
    said.failed(KubeError("refused"))
    said.failed(KubeError("refused"))
    said.clock.advance_to(2.5)
    said.log.worked("default/b")
    said.log.worked("default/a")
    said.log.worked("default/a")
    assert said.lines[1:] == ["recovered after 2 failed attempts in 2.5 s"]
    assert said.levels == [logging.WARNING, logging.INFO]


def test_a_conflict_is_said_only_when_it_persists(said: Said) -> None:
    conflict = Conflict(409, "Conflict", "the object has been modified")
    said.failed(conflict)
    said.log.worked("default/a")
    said.failed(Unreachable("refused"))
    said.failed(conflict)
    assert said.levels == [logging.DEBUG] * 4
    said.failed(conflict)
    assert said.levels[-1] == logging.WARNING


def test_one_key_says_of_a_server_out_of_reach_for_all_and_each_of_its_own_after_a_minute(said: Said) -> None:
    keys = ("default/a", "default/b", "default/c")
    warned = []
    for now in (0.0, 4.9, 5.0, 59.0, 60.0, 61.0):
        said.clock.advance_to(now)
        for key in keys:
            before = len(said.lines)
            said.failed(Unreachable("refused"), key=key)
            warned += [(now, key)] if logging.WARNING in said.levels[before:] else []
    assert warned == [(5.0, keys[0]), (60.0, keys[1]), (60.0, keys[2])]
    assert said.lines[6] == "attempt 3 failed, next one in 1 s: refused"
    lines = len(said.lines)
    for key in keys:
        said.log.worked(key)
    assert said.levels[lines:] == [logging.INFO] * 3


def test_when_the_key_that_spoke_works_again_another_may_speak(said: Said) -> None:
    for key in ("default/a", "default/b"):
        said.failed(Unreachable("refused"), key=key)
        said.clock.advance(6.0)
        said.failed(Unreachable("refused"), key=key)
        said.log.worked(key)
    assert said.levels == [logging.DEBUG, logging.WARNING, logging.INFO] * 2


def test_an_outage_that_is_short_for_each_key_leaves_only_debug_lines(said: Said) -> None:
    said.failed(Unreachable("refused"))
    said.clock.advance_to(12.0)
    said.log.worked("default/a")
    assert said.lines[1] == "recovered after 1 failed attempts in 12 s"
    assert said.levels == [logging.DEBUG] * 2
    said.clock.advance_to(70.0)
    said.failed(Unreachable("refused"))
    assert said.levels[2:] == [logging.DEBUG], "a new streak has a time of its own"
