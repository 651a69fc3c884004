"""The benchmark's command line; see README.md beside it for what is measured and how."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import history, rounds
from benchmarks.operators import OPERATORS, PEERS_OF_OURS
from benchmarks.report import Report, heading, markdown, notes, table, write_json
from benchmarks.scenario import Plan
from lab.cache import BuildError
from lab.kubectl import LabError

_ROOT = Path(__file__).resolve().parent.parent
# What `--quick` decides: lines of the history are to be of one plan. More rounds make its ratios steadier.
_DECIDED = ("count", "size", "writers", "changes", "extras", "peers", "operator")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns the exit code: 1 if a figure could not be had."""
    options = _options(arguments)
    names = _names(options)
    plan = Plan(
        count=options.count, size=options.size, writers=options.writers, changes=options.changes, extras=options.extras
    )
    report = rounds.report_of(plan)
    recorded: list[history.Entry] = []
    commit = ""
    try:
        if options.quick:
            recorded = history.read(history.PATH.read_text())
        if options.record:
            commit = history.committed(_ROOT)
        rounds.run(report, plan, names, options.rounds)
    except (BuildError, LabError, history.HistoryError) as error:
        rounds.say(str(error))
        return 1
    except KeyboardInterrupt:
        rounds.say("stopped")
    complete = rounds.complete(report, names, options.rounds)
    if options.record:
        # Before the files that were asked for: they may lie in the tree, which is to be as it was.
        complete = _record(report, commit, complete=complete)
    if report.runs:
        print(_compared(report, recorded) if options.quick else table(report))
        if options.markdown:
            options.markdown.write_text(markdown(report) + "\n")
    if options.json:
        write_json(report, options.json)
    return int(not complete)


def _names(options: argparse.Namespace) -> list[str]:
    if options.quick:
        return list(history.OPERATORS)
    return list(dict.fromkeys(options.operator or (PEERS_OF_OURS if options.peers else ["ours"])))


def _compared(report: Report, recorded: Sequence[history.Entry]) -> str:
    compared = history.comparison(report.runs, recorded[-1] if recorded else None)
    return "\n\n".join([heading(report), compared, *notes(report)])


def _record(report: Report, commit: str, *, complete: bool) -> bool:
    """Write down a report if it is complete and the commit still has what was measured; whether it did."""
    try:
        if not complete:
            raise history.HistoryError("a figure could not be had")
        if (now := history.committed(_ROOT)) != commit:
            raise history.HistoryError(f"HEAD was {commit} at first and is {now}")
    except history.HistoryError as error:
        rounds.say(f"nothing is recorded: {error}")
        return False
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    entry = history.Entry(date, commit, os.cpu_count() or 1, history.values_of(report.runs))
    history.PATH.write_text(history.appended(history.PATH.read_text(), entry))
    rounds.say(f"{commit} has its line in {history.PATH.relative_to(_ROOT)}; commit it")
    return True


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.record and not options.quick:
        parser.error("--record is for --quick")
    given = [f"--{name}" for name in _DECIDED if getattr(options, name) != parser.get_default(name)]
    if options.quick and given:
        parser.error(f"--quick always measures the same: leave out {', '.join(given)}")
    return options


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
    parser.add_argument(
        "--quick",
        action="store_true",
        help="go and ours with the numbers above, in about 2 minutes: ratios, and the last in benchmarks/history.csv",
    )
    parser.add_argument(
        "--record", action="store_true", help="with --quick: add a line to that file; everything is to be committed"
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
