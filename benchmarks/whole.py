"""``./dev bench-table``: all tables of docs/performance.md that have peers, one after another.

Each is written as soon as it is there: what was measured before an end stays.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import rounds
from benchmarks.report import markdown, table, write_json
from benchmarks.scenario import Plan
from lab.cache import BuildError
from lab.kubectl import LabError

_WRITERS, _CHANGES, _ROUNDS = 64, 200, 3


@dataclass(frozen=True, slots=True)
class Table:
    """One table: so many Memcacheds of a size, under these operators."""

    count: int
    size: int
    operators: Sequence[str]

    @property
    def name(self) -> str:
        """As `--only` takes it."""
        return f"{self.count}x{self.size}"

    @property
    def plan(self) -> Plan:
        """What each operator has to do."""
        return Plan(count=self.count, size=self.size, writers=_WRITERS, changes=_CHANGES)


TABLES = {
    each.name: each
    for each in (
        Table(3_000, 2, ("go", "ours")),
        Table(10_000, 1, ("go", "ours")),
        Table(10_000, 3, ("go", "ours")),
        # kopf's restart grows with the square of their number.
        Table(500, 2, ("go", "ours", "kopf")),
    )
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all tables, or some; returns the exit code: 1 if a figure could not be had."""
    options = _parser().parse_args(arguments)
    options.to.mkdir(parents=True, exist_ok=True)
    complete = True
    try:
        for name in options.only or TABLES:
            rounds.say(f"{name}:")
            complete &= _measured(TABLES[name], options.rounds, options.to)
    except (BuildError, LabError) as error:
        rounds.say(str(error))
        return 1
    except KeyboardInterrupt:
        rounds.say("stopped")
        return 1
    return int(not complete)


def _measured(desired: Table, number: int, folder: Path) -> bool:
    report = rounds.report_of(desired.plan)
    try:
        rounds.run(report, desired.plan, desired.operators, number)
    finally:
        if report.runs:
            print(table(report), end="\n\n", flush=True)
            write_json(report, folder / f"{desired.name}.json")
            (folder / f"{desired.name}.md").write_text(markdown(report) + "\n")
    return rounds.complete(report, desired.operators, number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./dev bench-table", description="Measure all tables of docs/performance.md that have peers."
    )
    parser.add_argument("--only", action="append", choices=TABLES, help="this table alone; may be repeated")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help=f"how often each operator is measured ({_ROUNDS})")
    parser.add_argument(
        "--to", type=Path, default=Path(".cache/bench"), metavar="FOLDER", help="for the tables (.cache/bench)"
    )
    return parser


if __name__ == "__main__":
    rounds.end_by_signals()
    sys.exit(main())
