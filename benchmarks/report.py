"""The figures as a table for people and as JSON for machines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.figures import FIGURES, Figure, Run, median, ratio

BASELINE = "go"
_TIMES = " \N{MULTIPLICATION SIGN}"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A whole benchmark: how it was called, on what, and every run of it."""

    count: int
    size: int
    writers: int
    changes: int
    extras: bool
    machine: str
    runs: list[Run]


def write_json(report: Report, path: Path) -> None:
    """Write the report for machines, indented."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")


def table(report: Report) -> str:
    """The medians side by side, ratios to the baseline in brackets, then requests and notes.

    The baseline is the peer of the best users, or without it the first of several operators.
    """
    parts = [heading(report), aligned(_rows(report, "x"))]
    parts += [_requests(run) for run in _last_runs(report.runs) if run.requests]
    return "\n\n".join([*parts, *notes(report)])


def notes(report: Report) -> list[str]:
    """What went wrong, as one paragraph; none if nothing did."""
    found = [f"{run.operator}, round {run.round}: {note}" for run in report.runs for note in run.notes]
    return ["\n".join(found)] if found else []


def markdown(report: Report) -> str:
    """The medians and ratios alone, as a document shows them."""
    head, *rows = ([cell.replace("->", "→") for cell in row] for row in _rows(report, _TIMES))
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join([f"{heading(report)}.", "", *(f"| {' | '.join(line)} |" for line in lines)])


def heading(report: Report) -> str:
    """What was measured, and on what."""
    rounds = max((run.round for run in report.runs), default=0)
    beside = ", each with Service and budget," if report.extras else ""
    return (
        f"{report.count} Memcacheds of size {report.size}{beside} by {report.writers} writers, "
        f"{report.changes} changes of size; rounds: {rounds}; {report.machine}"
    )


def _rows(report: Report, times: str) -> list[list[str]]:
    operators = list(dict.fromkeys(run.operator for run in report.runs))
    baseline = BASELINE if BASELINE in operators else operators[0]
    return [
        ["", *operators],
        *(
            [figure.label, *(_cell(report.runs, name, baseline, figure, times) for name in operators)]
            for figure in FIGURES
        ),
    ]


def _cell(runs: Sequence[Run], operator: str, baseline: str, figure: Figure, times: str) -> str:
    value = median(runs, operator, figure.key)
    if value is None:
        return "-"
    text = f"{value:.{figure.digits}f}"
    if operator == baseline or (ratio_ := ratio(runs, operator, baseline, figure.key)) is None:
        return text
    return f"{text} ({ratio_:.2f}{times})"


def _last_runs(runs: Sequence[Run]) -> list[Run]:
    return list({run.operator: run for run in runs}.values())


def _requests(run: Run) -> str:
    counted = [[what, str(number)] for what, number in run.requests.items()]
    return aligned([[f"requests of {run.operator} during the load", ""], *counted])


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows as lines of text: the first column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        first, *rest = row
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
