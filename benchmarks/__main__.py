"""The benchmark's command line; see README.md beside it for what is measured and how."""

from __future__ import annotations

import argparse
import os
import platform
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures import Run
from benchmarks.operators import OPERATORS
from benchmarks.report import Report, table, write_json
from benchmarks.scenario import Plan, measure
from lab.cache import BuildError
from lab.kubectl import LabError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns the exit code: 1 if a figure could not be had."""
    options = _parser().parse_args(arguments)
    names = list(dict.fromkeys(options.operator or (OPERATORS if options.peers else ["ours"])))
    plan = Plan(
        count=options.count, size=options.size, writers=options.writers, changes=options.changes, extras=options.extras
    )
    # SIGTERM ends a benchmark as Ctrl-C does: through every `finally`, so that nothing stays behind. A shell that
    # starts it in the background has it ignore Ctrl-C, which would take SIGTERM with it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    runs: list[Run] = []
    report = Report(
        count=plan.count,
        size=plan.size,
        writers=plan.writers,
        changes=plan.changes,
        extras=plan.extras,
        machine=_machine(),
        runs=runs,
    )
    try:
        commands = {name: OPERATORS[name].prepare(plan.extras) for name in names}
        for round_number in range(1, options.rounds + 1):
            # Alternating the order keeps a machine that slows down or warms up from favouring one of them.
            for name in names if round_number % 2 else reversed(names):
                _say(f"{name}, round {round_number} of {options.rounds}")
                runs.append(measure(plan, name, round_number, commands[name], _say))
    except (BuildError, LabError) as error:
        _say(str(error))
        return 1
    except KeyboardInterrupt:
        _say("stopped")
    if runs:
        print(table(report))
    if options.json:
        write_json(report, options.json)
    complete = len(runs) == len(names) * options.rounds
    return int(not complete or any(run.notes for run in runs))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./dev bench", description="Measure the operator on a real control plane.")
    parser.add_argument("--count", type=_positive, default=500, help="number of Memcacheds (500)")
    parser.add_argument("--size", type=_positive, default=2, help="their size (2)")
    parser.add_argument("--writers", type=_positive, default=64, help="how many are created at once (64)")
    parser.add_argument("--changes", type=_positive, default=200, help="number of timed changes of size (200)")
    parser.add_argument("--rounds", type=_positive, default=1, help="how often each operator is measured (1)")
    parser.add_argument(
        "--extras", action="store_true", help="each with a Service and a disruption budget, as by default; else neither"
    )
    parser.add_argument("--peers", action="store_true", help="measure the peers as well, for the ratios")
    parser.add_argument("--operator", action="append", choices=OPERATORS, help="measure this one; may be repeated")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every run to this file")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def _machine() -> str:
    return f"{os.cpu_count()} CPUs, {platform.system()} {platform.release()}, Python {platform.python_version()}"


def _say(message: str) -> None:
    print(f"bench: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
