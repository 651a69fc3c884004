"""What the quick benchmark came to, commit by commit."""

import pytest

from benchmarks import history
from benchmarks.figures import Run
from benchmarks.history import COLUMNS, Entry, HistoryError, appended, comparison, read

HEADER = history.PATH.read_text().partition("\n")[0]
NAMES = [column.name for column in COLUMNS]


def run(operator: str, number: int = 1, /, **figures: float | None) -> Run:
    return Run(operator=operator, round=number, figures=figures, requests={}, notes=[])


def entry(commit: str = "0abc123", **values: float | None) -> Entry:
    return Entry("2026-01-02", commit, 2, dict.fromkeys(NAMES) | values)


def row(text: str, label: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(label)]
    return line.removeprefix(label).split()


@pytest.mark.parametrize("before", [f"{HEADER}\n", HEADER, f"{HEADER}\n\n"])
def test_an_entry_is_read_as_it_was_written(before: str) -> None:
    written = entry(load_cpu=0.781, status_writes=0.43, our_reconciles_per_memcached=2.1)
    text = appended(before, written)
    assert read(text) == [written]
    assert read(appended(text, entry("ffff")))[-1] == entry("ffff")


LINE = "2026-01-02,0abc123,2" + ",1.000" * len(COLUMNS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{HEADER},more\n", "the first line is to be"),
        (f"{HEADER}\n{LINE},1.0\n", "line 2: "),
        (f"{HEADER}\n{LINE}\n{LINE.rpartition(',')[0]}\n", "line 3: "),
        (f"{HEADER}\n{LINE.replace(',2,', ',two,')}\n", "line 2: .*'two'"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(HistoryError, match=rf"history\.csv.*{message}"):
        read(text)


@pytest.mark.parametrize(
    ("go", "ours", "then", "shown"),
    [
        (4.0, 3.0, 0.5, ["4.00", "3.00", "0.75x", "0.50x", "+50", "%"]),
        (4.0, 3.0, None, ["4.00", "3.00", "0.75x", "-", "-"]),
        (4.0, 3.0, 0.0, ["4.00", "3.00", "0.75x", "0.00x", "-"]),
        (4.0, None, 0.75, ["4.00", "-", "-", "0.75x", "-"]),
    ],
)
def test_each_ratio_stands_beside_the_last_and_by_how_much_it_differs(
    go: float, ours: float | None, then: float | None, shown: list[str]
) -> None:
    text = comparison([run("go", load_cpu_s=go), run("ours", load_cpu_s=ours)], entry(load_cpu=then))
    assert row(text, "CPU of the operator for the load, s") == shown
