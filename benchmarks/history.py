"""What `./dev bench --quick` came to at some commits: ratios to `go`, a line each in history.csv beside this file."""

from __future__ import annotations

import csv
import io
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import FIGURES, Figure, Run, median, ratio
from benchmarks.report import BASELINE, aligned

PATH = Path(__file__).resolve().parent / "history.csv"
OURS = "ours"
OPERATORS = (BASELINE, OURS)

_DIGITS = 3
_MISSING = "-"


class HistoryError(Exception):
    """The history cannot be read, or there is no commit to write down; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Column:
    """One figure of the history.

    Attributes:
        name: of the column.
        key: the `Figure.key` of what it is of.
        without_baseline: it is our figure itself, as the baseline has none.
    """

    name: str
    key: str
    without_baseline: bool = False


COLUMNS = (
    Column("load_cpu", "load_cpu_s"),
    Column("load_apiserver_cpu", "load_apiserver_cpu_s"),
    Column("load_etcd_cpu", "load_etcd_cpu_s"),
    Column("deployments_made", "deployments_made_s"),
    Column("status_complete", "status_complete_s"),
    Column("change_to_deployment_p50", "change_to_deployment_p50_ms"),
    Column("change_to_deployment_p99", "change_to_deployment_p99_ms"),
    Column("change_to_nodes_p50", "change_to_nodes_p50_ms"),
    Column("change_to_nodes_p99", "change_to_nodes_p99_ms"),
    Column("restart_to_first_write", "restart_to_first_write_s"),
    Column("restart_cpu", "restart_cpu_s"),
    Column("rss_after_load", "rss_after_mib"),
    Column("rss_after_restart", "restart_rss_mib"),
    Column("status_writes", "status_writes_per_memcached"),
    Column("our_reconciles_per_memcached", "reconciles_per_memcached", without_baseline=True),
)
_FIRST = ("date", "commit", "cores")
_HEADER = [*_FIRST, *(column.name for column in COLUMNS)]
_FIGURES: Mapping[str, Figure] = {figure.key: figure for figure in FIGURES}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line.

    Attributes:
        date: year, month and day, in UTC.
        commit: short hash of what was measured.
        cores: how many processors the machine has: ratios differ with them.
        values: by the column's name; None could not be had.
    """

    date: str
    commit: str
    cores: int
    values: Mapping[str, float | None]


def values_of(runs: Sequence[Run]) -> dict[str, float | None]:
    """What a benchmark of both operators came to, by the column's name."""
    return {
        column.name: median(runs, OURS, column.key)
        if column.without_baseline
        else ratio(runs, OURS, BASELINE, column.key)
        for column in COLUMNS
    }


def read(text: str) -> list[Entry]:
    """All entries, in the order of the file.

    Raises:
        HistoryError: it has other columns, or something else than a number where one must be.
    """
    rows = csv.reader(io.StringIO(text))
    header = next(rows, [])
    if header != _HEADER:
        raise HistoryError(f"{PATH.name}: the first line is to be {','.join(_HEADER)}")
    return [_entry(row, rows.line_num) for row in rows]


def appended(text: str, entry: Entry) -> str:
    """The file with one entry more."""
    values = (entry.values[column.name] for column in COLUMNS)
    cells = ["" if value is None else f"{value:.{_DIGITS}f}" for value in values]
    line = ",".join([entry.date, entry.commit, str(entry.cores), *cells])
    return f"{text.rstrip()}\n{line}\n"


def comparison(runs: Sequence[Run], last: Entry | None) -> str:
    """The figures of both, the ratio of ours to the baseline's, and by how much it differs from the last recorded."""
    values, before = values_of(runs), last.values if last else {}
    rows = [["", BASELINE, OURS, f"{OURS}/{BASELINE}", "last", "differs by"]]
    for column in COLUMNS:
        figure, now, then = _FIGURES[column.key], values[column.name], before.get(column.name)
        medians = (median(runs, name, column.key) for name in OPERATORS)
        ratio_ = None if column.without_baseline else now
        rows.append(
            [
                figure.label,
                *(_shown(value, figure.digits) for value in medians),
                _shown(ratio_, 2, "x"),
                _shown(then, 2, "" if column.without_baseline else "x"),
                _difference(now, then),
            ]
        )
    recorded = f"last recorded: {last.commit}, {last.date}, {last.cores} CPUs" if last else "nothing was recorded yet"
    return f"{aligned(rows)}\n\n{recorded}"


def committed(folder: Path) -> str:
    """The short hash of what a checkout has, from which nothing but the history may differ.

    Raises:
        HistoryError: something else does, or it is no checkout.
    """
    if changed := _git(folder, "status", "--porcelain", "--", ":/", f":(exclude,top)benchmarks/{PATH.name}"):
        raise HistoryError(f"a line names a commit: commit first, or leave out --record:\n{changed}")
    return _git(folder, "rev-parse", "--short", "HEAD").strip()


def _entry(row: Sequence[str], number: int) -> Entry:
    try:
        date, commit, cores, *cells = row
        values = {column.name: float(cell) if cell else None for column, cell in zip(COLUMNS, cells, strict=True)}
        return Entry(date, commit, int(cores), values)
    except ValueError as error:
        raise HistoryError(f"{PATH.name}, line {number}: {error}") from error


def _shown(value: float | None, digits: int, unit: str = "") -> str:
    return _MISSING if value is None else f"{value:.{digits}f}{unit}"


def _difference(now: float | None, then: float | None) -> str:
    if now is None or not then:
        return _MISSING
    return f"{(now / then - 1) * 100:+.0f} %"


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, check=False, capture_output=True, text=True)
    except OSError as error:
        raise HistoryError(f"--record needs git: {error}") from error
    if done.returncode != 0:
        raise HistoryError(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout
