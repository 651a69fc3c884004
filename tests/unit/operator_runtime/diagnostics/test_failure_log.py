"""What is said of a failure: once for each reason, then ever more seldom, and when it is over."""

from __future__ import annotations

import logging

import pytest

from operator_runtime.client.errors import Conflict, KubeError, ServerError, Unreachable
from operator_runtime.diagnostics.failure_log import FailureLog, TerminalError
from operator_runtime.testing.clock import FakeClock

LOGGER = "operator_runtime.diagnostics.failure_log"


class Logged:
    """A failure log on a fake clock, and the lines that it wrote."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self.clock = FakeClock(0.0)
        self.log = FailureLog(self.clock)
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
def logged(caplog: pytest.LogCaptureFixture) -> Logged:
    return Logged(caplog)


@pytest.mark.parametrize(
    ("error", "retry_in_s", "next_one"),
    [
        (ServerError(503), 0.25, "in 0.25 s"),
        (KubeError("what"), 0.25, "in 0.25 s"),
        (TerminalError("spec.size must be 0 or more"), None, "when the object changes"),
    ],
)
def test_an_expected_failure_is_one_line_without_a_traceback_and_another_reason_is_said_at_once(
    logged: Logged, error: Exception, retry_in_s: float | None, next_one: str
) -> None:
    for _ in range(2):
        logged.failed(error, retry_in_s)
    assert logged.lines == [f"attempt 1 failed, next one {next_one}: {error}"]
    assert logged.caplog.records[0].levelno == logging.WARNING
    assert logged.caplog.records[0].exc_info is None
    logged.failed(KubeError("refused"))
    assert len(logged.lines) == 2


def test_a_bug_brings_its_traceback_once(logged: Logged) -> None:
    for _ in range(2):
        logged.failed(KeyError("size"))
        logged.clock.advance(60.0)
    assert logged.lines[0] == "attempt 1 failed, next one in 1 s: KeyError: 'size'"
    assert [record.levelno for record in logged.caplog.records] == [logging.ERROR] * 2
    assert [bool(record.exc_info) for record in logged.caplog.records] == [True, False]


def test_a_failure_that_differs_in_numbers_alone_is_the_same_and_told_again_after_a_minute(logged: Logged) -> None:
    times = []
    for second in range(0, 180, 10):
        logged.clock.advance_to(float(second))
        before = len(logged.lines)
        logged.failed(ServerError(503, message=f"resourceVersion {second}: overloaded"))
        if len(logged.lines) > before:
            times.append(second)
    assert times == [0, 60]


def test_recovery_is_said_once_and_only_after_a_failure(logged: Logged) -> None:
    logged.log.worked("default/a")
    logged.failed(KubeError("refused"))
    logged.failed(KubeError("refused"))
    logged.clock.advance_to(2.5)
    logged.log.worked("default/b")
    logged.log.worked("default/a")
    logged.log.worked("default/a")
    assert logged.lines[1:] == ["recovered after 2 failed attempts in 2.5 s"]
    assert logged.levels == [logging.WARNING, logging.INFO]


def test_a_conflict_is_said_only_when_it_persists(logged: Logged) -> None:
    conflict = Conflict(409, "Conflict", "the object has been modified")
    logged.failed(conflict)
    logged.log.worked("default/a")
    logged.failed(Unreachable("refused"))
    logged.failed(conflict)
    assert logged.levels == [logging.DEBUG] * 4
    logged.failed(conflict)
    assert logged.levels[-1] == logging.WARNING


def test_one_key_says_of_a_server_out_of_reach_for_all_and_each_of_its_own_after_a_minute(logged: Logged) -> None:
    keys = ("default/a", "default/b", "default/c")
    warned = []
    for now in (0.0, 4.9, 5.0, 59.0, 60.0, 61.0):
        logged.clock.advance_to(now)
        for key in keys:
            before = len(logged.lines)
            logged.failed(Unreachable("refused"), key=key)
            warned += [(now, key)] if logging.WARNING in logged.levels[before:] else []
    assert warned == [(5.0, keys[0]), (60.0, keys[1]), (60.0, keys[2])]
    assert logged.lines[6] == "attempt 3 failed, next one in 1 s: refused"
    lines = len(logged.lines)
    for key in keys:
        logged.log.worked(key)
    assert logged.levels[lines:] == [logging.INFO] * 3


def test_when_the_key_that_spoke_works_again_another_may_speak(logged: Logged) -> None:
    for key in ("default/a", "default/b"):
        logged.failed(Unreachable("refused"), key=key)
        logged.clock.advance(6.0)
        logged.failed(Unreachable("refused"), key=key)
        logged.log.worked(key)
    assert logged.levels == [logging.DEBUG, logging.WARNING, logging.INFO] * 2


def test_an_outage_that_is_short_for_each_key_leaves_only_debug_lines(logged: Logged) -> None:
    logged.failed(Unreachable("refused"))
    logged.clock.advance_to(12.0)
    logged.log.worked("default/a")
    assert logged.lines[1] == "recovered after 1 failed attempts in 12 s"
    assert logged.levels == [logging.DEBUG] * 2
    logged.clock.advance_to(70.0)
    logged.failed(Unreachable("refused"))
    assert logged.levels[2:] == [logging.DEBUG], "a new streak has a time of its own"
