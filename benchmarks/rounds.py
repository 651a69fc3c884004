"""Several rounds of several operators, each on a control plane of its own."""

from __future__ import annotations

import os
import platform
import signal
import sys
from collections.abc import Sequence

from benchmarks.operators import OPERATORS
from benchmarks.report import Report
from benchmarks.scenario import Plan, measure


def report_of(plan: Plan) -> Report:
    """The report of a plan on this machine, without a run yet."""
    return Report(
        count=plan.count,
        size=plan.size,
        writers=plan.writers,
        changes=plan.changes,
        extras=plan.extras,
        machine=f"{os.cpu_count()} CPUs, {platform.system()} {platform.release()}, Python {platform.python_version()}",
        runs=[],
    )


def run(report: Report, plan: Plan, names: Sequence[str], rounds: int) -> None:
    """Measure each operator in each round, and add each run to the report once it is there.

    Raises:
        BuildError, LabError: the control plane or an operator cannot be had.
    """
    commands = {name: OPERATORS[name].prepare(plan.extras) for name in names}
    for number in range(1, rounds + 1):
        # Alternating the order keeps a machine that slows down or warms up from favouring one of them.
        for name in names if number % 2 else reversed(names):
            say(f"{name}, round {number} of {rounds}")
            report.runs.append(measure(plan, name, number, commands[name], say))


def complete(report: Report, names: Sequence[str], rounds: int) -> bool:
    """Whether nothing was stopped, and each figure could be had."""
    return len(report.runs) == len(names) * rounds and not any(each.notes for each in report.runs)


def end_by_signals() -> None:
    """Let SIGTERM end this process as Ctrl-C does: through every `finally`, so that nothing stays behind.

    A shell that starts it in the background has it ignore Ctrl-C, which would take SIGTERM with it.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))


def say(message: str) -> None:
    """A line about what is under way, beside the figures."""
    print(f"bench: {message}", file=sys.stderr, flush=True)
