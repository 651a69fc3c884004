"""What the quick benchmark came to, commit by commit."""

import subprocess
from pathlib import Path

import pytest

from benchmarks import history
from benchmarks.figures import FIGURES, Run
from benchmarks.history import COLUMNS, Entry, HistoryError, appended, committed, comparison, read, values_of

HEADER = history.PATH.read_text().partition("\n")[0]
NAMES = [column.name for column in COLUMNS]


def run(operator: str, number: int = 1, /, **figures: float | None) -> Run:
    return Run(operator=operator, round=number, figures=figures, requests={}, notes=[])


def entry(commit: str = "0abc123", **values: float | None) -> Entry:
    return Entry("2026-01-02", commit, 2, dict.fromkeys(NAMES) | values)


def row(text: str, label: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(label)]
    return line.removeprefix(label).split()


def test_the_history_can_be_read() -> None:
    entries = read(history.PATH.read_text())
    assert all(list(each.values) == NAMES for each in entries)
    assert appended_to_nothing(entries) == history.PATH.read_text(), "as this writes it"


def appended_to_nothing(entries: list[Entry]) -> str:
    text = f"{HEADER}\n"
    for each in entries:
        text = appended(text, each)
    return text


def test_each_column_has_a_name_of_its_own_and_is_of_a_figure() -> None:
    assert len(set(NAMES)) == len(COLUMNS)
    assert {column.key for column in COLUMNS} <= {figure.key for figure in FIGURES}


@pytest.mark.parametrize(
    ("go", "ours", "column", "value"),
    [
        ({"load_cpu_s": 4.0}, {"load_cpu_s": 3.0}, "load_cpu", 0.75),
        ({"load_cpu_s": 4.0}, {}, "load_cpu", None),
        ({}, {"load_cpu_s": 3.0}, "load_cpu", None),
        ({"restart_cpu_s": 0.0}, {"restart_cpu_s": 1.0}, "restart_cpu", None),
        ({}, {"reconciles_per_memcached": 2.1}, "our_reconciles_per_memcached", 2.1),
        ({"reconciles_per_memcached": 9.0}, {"reconciles_per_memcached": 2.1}, "our_reconciles_per_memcached", 2.1),
        ({"reconciles_per_memcached": 9.0}, {}, "our_reconciles_per_memcached", None),
    ],
)
def test_a_value_is_ours_over_gos_but_of_reconciles_which_are_ours_alone(
    go: dict[str, float | None], ours: dict[str, float | None], column: str, value: float | None
) -> None:
    assert values_of([run("go", **go), run("ours", **ours)])[column] == value


@pytest.mark.parametrize("before", [f"{HEADER}\n", HEADER, f"{HEADER}\n\n"])
def test_an_entry_is_read_as_it_was_written(before: str) -> None:
    written = entry(load_cpu=0.781, status_writes=0.43, our_reconciles_per_memcached=2.1)
    text = appended(before, written)
    assert read(text) == [written]
    assert read(appended(text, entry("ffff")))[-1] == entry("ffff")


def test_a_line_has_three_decimals_and_nothing_for_what_could_not_be_had() -> None:
    text = appended(HEADER, entry(load_cpu=2 / 3))
    assert text.splitlines()[1] == "2026-01-02,0abc123,2,0.667" + "," * (len(COLUMNS) - 1)
    assert text.endswith(",\n")


LINE = "2026-01-02,0abc123,2" + ",1.000" * len(COLUMNS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the first line is to be date,commit,cores,load_cpu,"),
        (f"{HEADER},more\n", "the first line is to be"),
        (f"{HEADER}\n{LINE},1.0\n", "line 2: "),
        (f"{HEADER}\n{LINE}\n{LINE.rpartition(',')[0]}\n", "line 3: "),
        (f"{HEADER}\n{LINE.replace(',2,', ',two,')}\n", "line 2: .*'two'"),
        (f"{HEADER}\n<<<<<<< HEAD\n{LINE}\n", "line 2: "),
        (f"{HEADER}\n{LINE}x\n", "line 2: .*'1.000x'"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(text: str, said: str) -> None:
    with pytest.raises(HistoryError, match=rf"history\.csv.*{said}"):
        read(text)


@pytest.mark.parametrize(
    ("go", "ours", "then", "shown"),
    [
        (4.0, 3.0, 0.5, ["4.00", "3.00", "0.75x", "0.50x", "+50", "%"]),
        (4.0, 3.0, 1.0, ["4.00", "3.00", "0.75x", "1.00x", "-25", "%"]),
        (4.0, 3.0, 0.75, ["4.00", "3.00", "0.75x", "0.75x", "+0", "%"]),
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


def test_reconciles_are_compared_with_our_own() -> None:
    text = comparison([run("go"), run("ours", reconciles_per_memcached=2.2)], entry(our_reconciles_per_memcached=2.0))
    assert row(text, "reconciles, per Memcached") == ["-", "2.20", "-", "2.00", "+10", "%"]


def test_the_last_that_was_recorded_is_named() -> None:
    runs = [run("go", load_cpu_s=4.0), run("ours", load_cpu_s=3.0)]
    assert comparison(runs, entry()).endswith("last recorded: 0abc123, 2026-01-02, 2 CPUs")
    first = comparison(runs, None)
    assert first.endswith("nothing was recorded yet")
    assert row(first, "CPU of the operator for the load, s") == ["4.00", "3.00", "0.75x", "-", "-"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """One with a file, a history and a commit."""
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "history.csv").write_text("")
    (tmp_path / "operator.py").write_text("")
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message=first"]):
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True)
    return tmp_path


def test_a_commit_is_named_by_its_short_hash_also_where_lines_of_the_history_wait_for_theirs(checkout: Path) -> None:
    (checkout / "benchmarks" / "history.csv").write_text("a line")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, capture_output=True, text=True, check=True).stdout
    for folder in (checkout, checkout / "benchmarks"):
        commit = committed(folder)
        assert len(commit) >= 4
        assert head.startswith(commit)


@pytest.mark.parametrize("path", ["operator.py", "new.py", "benchmarks/new.csv"])
def test_a_tree_with_uncommitted_changes_has_no_commit(checkout: Path, path: str) -> None:
    (checkout / path).write_text("changed")
    with pytest.raises(HistoryError, match=rf"commit first(.|\n)*{path}"):
        committed(checkout / "benchmarks")


def test_what_is_no_checkout_has_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(HistoryError, match="not a git repository"):
        committed(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HistoryError, match="needs git"):
        committed(tmp_path)
