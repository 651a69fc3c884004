"""The benchmark's output for people and for machines."""

import msgspec

from benchmarks.figures import Run
from benchmarks.report import Report, markdown, table

OURS = Run(
    operator="ours",
    round=1,
    figures={"load_cpu_s": 1.5, "restart_writes": 0, "rss_idle_mib": None},
    requests={"create deployments 201": 7},
    notes=["the load took longer than 9 s"],
)
GO = Run(
    operator="go", round=1, figures={"load_cpu_s": 3.0, "restart_writes": 0, "rss_idle_mib": 30}, requests={}, notes=[]
)


def report(*runs: Run) -> Report:
    return Report(count=7, size=2, writers=64, changes=5, extras=False, machine="2 CPUs", runs=list(runs))


def row(text: str, label: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(label)]
    return line.removeprefix(label).split()


def test_each_figure_stands_beside_its_ratio_to_go() -> None:
    assert row(table(report(OURS, GO)), "CPU of the operator for the load, s") == ["1.50", "(0.50x)", "3.00"]


def test_a_baseline_of_zero_gives_the_figure_without_a_ratio() -> None:
    assert row(table(report(OURS, GO)), "restart, nothing to do: writes") == ["0", "0"]


def test_a_missing_figure_is_a_dash() -> None:
    assert row(table(report(OURS, GO)), "RSS idle, MiB") == ["-", "30.0"]


def test_one_operator_alone_has_no_ratios() -> None:
    assert "x)" not in table(report(OURS))


def test_without_go_ratios_are_to_the_first() -> None:
    more = msgspec.structs.replace(OURS, operator="ours-16", figures={"load_cpu_s": 3.0})
    assert row(table(report(OURS, more)), "CPU of the operator for the load, s") == ["1.50", "3.00", "(2.00x)"]


def test_a_document_has_the_same_figures() -> None:
    lines = markdown(report(GO, OURS)).splitlines()
    assert lines[:4] == [
        "7 Memcacheds of size 2 by 64 writers, 5 changes of size; rounds: 1; 2 CPUs.",
        "",
        "|  | go | ours |",
        "| --- | --- | --- |",
    ]
    assert "| CPU of the operator for the load, s | 3.00 | 1.50 (0.50 \N{MULTIPLICATION SIGN}) |" in lines


def test_requests_and_notes_follow() -> None:
    text = table(report(OURS, GO))
    assert row(text, "create deployments 201") == ["7"]
    assert "ours, round 1: the load took longer than 9 s" in text
