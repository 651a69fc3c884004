"""The log as another thread writes it, to wait by."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

DEADLINE_S = 60.0


def block_until(is_so: Callable[[], object]) -> None:
    """Block this thread, and its event loop, until it is so."""
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.002)


class Log(logging.Handler):
    """What was logged, by any thread."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def wait_for(self, text: str) -> str:
        block_until(lambda: any(text in line for line in self.lines))
        return next(line for line in self.lines if text in line)


@contextmanager
def logged() -> Iterator[Log]:
    log, logger = Log(), logging.getLogger("operator_runtime")
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(log)
    try:
        yield log
    finally:
        logger.removeHandler(log)
        logger.setLevel(before)
