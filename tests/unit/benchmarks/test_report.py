"""The benchmark's output for people and for machines."""

from benchmarks.figures import Run
from benchmarks.report import Report, markdown, table


def run(operator: str, requests: dict[str, int], **figures: float | None) -> Run:
    return Run(operator=operator, round=1, figures=figures, requests=requests, notes=[])


OURS = run("ours", {"create deployments 201": 7}, load_cpu_s=1.5, restart_writes=0, rss_idle_mib=None)
GO = run("go", {}, load_cpu_s=3.0, restart_writes=0, rss_idle_mib=30)


def report(*runs: Run) -> Report:
    return Report(count=7, size=2, writers=64, changes=5, extras=False, machine="2 CPUs", runs=list(runs))


def row(text: str, label: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(label)]
    return line.removeprefix(label).split()


def test_each_figure_stands_beside_its_ratio_to_go_where_there_is_one() -> None:
    text = table(report(OURS, GO))
    assert row(text, "CPU of the operator for the load, s") == ["1.50", "(0.50x)", "3.00"]
    assert row(text, "restart, nothing to do: writes") == ["0", "0"]
    assert row(text, "RSS idle, MiB") == ["-", "30.0"]
    assert row(text, "create deployments 201") == ["7"]


def test_a_document_has_the_same_figures() -> None:
    lines = markdown(report(GO, OURS)).splitlines()
    assert lines[:4] == [
        "7 Memcacheds of size 2 by 64 writers, 5 changes of size; rounds: 1; 2 CPUs.",
        "",
        "|  | go | ours |",
        "| --- | --- | --- |",
    ]
    assert "| CPU of the operator for the load, s | 3.00 | 1.50 (0.50 \N{MULTIPLICATION SIGN}) |" in lines
