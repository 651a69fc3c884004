"""All tables of docs/performance.md, one after another."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from benchmarks import rounds, whole
from benchmarks.figures import Run
from benchmarks.operators import Command
from benchmarks.report import Report
from benchmarks.scenario import Plan
from lab.kubectl import LabError


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """What was measured: operator, count and round; of nothing that takes time."""
    done: list[tuple[str, int, int]] = []

    def measure(plan: Plan, name: str, number: int, _: object, __: object) -> Run:
        if (name, plan.count) == ("ours", 10_000):
            raise LabError("no room")
        done.append((name, plan.count, number))
        return Run(operator=name, round=number, figures={"load_cpu_s": 2.0}, requests={}, notes=[])

    class Operator:
        def prepare(self, _: bool) -> Callable[[Path], Command]:
            return lambda _: Command([], {})

    monkeypatch.setattr(rounds, "measure", measure)
    monkeypatch.setattr(rounds, "OPERATORS", {name: Operator() for name in ("go", "ours", "ours-8", "kopf")})
    return done


def test_rounds_alternate_the_order_of_the_operators(measured: list[tuple[str, int, int]], tmp_path: Path) -> None:
    assert whole.main(["--only", "500x2", "--rounds", "2", "--to", str(tmp_path)]) == 0
    assert [name for name, _, _ in measured] == ["go", "ours", "kopf", "kopf", "ours", "go"]


def test_each_table_is_written_for_documents_and_machines(measured: list[tuple[str, int, int]], tmp_path: Path) -> None:
    folder = tmp_path / "new"
    whole.main(["--only", "3000x2", "--only", "500x2", "--rounds", "1", "--to", str(folder)])
    assert {each.name for each in folder.iterdir()} == {"3000x2.json", "3000x2.md", "500x2.json", "500x2.md"}
    report = msgspec.json.decode((folder / "3000x2.json").read_bytes(), type=Report)
    assert [each.operator for each in report.runs] == [name for name, count, _ in measured if count == 3000]


def test_what_was_measured_before_a_failure_stays(measured: list[tuple[str, int, int]], tmp_path: Path) -> None:
    assert whole.main(["--only", "10000x1", "--rounds", "1", "--to", str(tmp_path)]) == 1
    assert measured == [("go", 10_000, 1)]
    assert "| CPU of the operator for the load, s | 2.00 |" in (tmp_path / "10000x1.md").read_text()


def test_a_figure_that_could_not_be_had_is_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, measured: list[tuple[str, int, int]], tmp_path: Path
) -> None:
    def failed(plan: Plan, name: str, number: int, _: object, __: object) -> Run:
        return Run(operator=name, round=number, figures={}, requests={}, notes=["it took too long"])

    monkeypatch.setattr(rounds, "measure", failed)
    assert whole.main(["--only", "500x2", "--rounds", "1", "--to", str(tmp_path)]) == 1
    assert measured == []
