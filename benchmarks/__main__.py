"""The benchmark's command line; see README.md beside it for what is measured and how."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import rounds
from benchmarks.operators import OPERATORS, PEERS_OF_OURS
from benchmarks.report import markdown, table, write_json
from benchmarks.scenario import Plan
from lab.cache import BuildError
from lab.kubectl import LabError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns the exit code: 1 if a figure could not be had."""
    options = _parser().parse_args(arguments)
    names = list(dict.fromkeys(options.operator or (PEERS_OF_OURS if options.peers else ["ours"])))
    plan = Plan(
        count=options.count, size=options.size, writers=options.writers, changes=options.changes, extras=options.extras
    )
    report = rounds.report_of(plan)
    try:
        rounds.run(report, plan, names, options.rounds)
    except (BuildError, LabError) as error:
        rounds.say(str(error))
        return 1
    except KeyboardInterrupt:
        rounds.say("stopped")
    if report.runs:
        print(table(report))
        if options.markdown:
            options.markdown.write_text(markdown(report) + "\n")
    if options.json:
        write_json(report, options.json)
    return int(not rounds.complete(report, names, options.rounds))


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
    parser.add_argument(
        "--operator",
        action="append",
        choices=OPERATORS,
        help="measure this one; may be repeated; ours-8 and ours-16 are ours with so many --workers",
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every run to this file")
    parser.add_argument("--markdown", type=Path, metavar="PATH", help="write the table to this file as Markdown")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


if __name__ == "__main__":
    rounds.end_by_signals()
    sys.exit(main())
