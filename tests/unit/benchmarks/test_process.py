"""Reading a process's figures from /proc, and waiting for its rest."""

import asyncio
import sys
from pathlib import Path

import pytest

from benchmarks.process import OperatorDied, OperatorProcess, memory_mib, ticks

# Linux, shortened at the end.
STAT = "4242 ({name}) S 1 4242 4242 0 -1 4194560 900 0 3 0 1234 56 7 8 20 0 5 0 9999 123456789 2000"
STATUS = "Name:\tpython\nVmPeak:\t  999999 kB\nVmHWM:\t   61440 kB\nVmRSS:\t   46592 kB\nThreads:\t5\n"


@pytest.mark.parametrize("name", ["python", "a program) R 1", "((", ""])
def test_ticks_are_user_and_system_time_whatever_the_program_is_called(name: str) -> None:
    assert ticks(STAT.format(name=name)) == 1234 + 56


def test_memory_is_resident_and_peak_in_mib() -> None:
    assert memory_mib(STATUS) == (45.5, 60.0)


async def test_an_operator_that_ends_by_itself_is_reported_with_its_last_words(tmp_path: Path) -> None:
    program = [sys.executable, "-c", "print('no such flag'); raise SystemExit(3)"]
    operator = OperatorProcess(program, {}, tmp_path / "operator.log")
    async with asyncio.timeout(60):
        with pytest.raises(OperatorDied, match=r"code 3; its last words:\nno such flag"):
            await operator.died()
