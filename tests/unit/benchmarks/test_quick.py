"""`./dev bench --quick` as a command; of nothing that takes time."""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import __main__ as command, history, rounds
from benchmarks.figures import Run
from benchmarks.history import HistoryError, read
from benchmarks.operators import Command
from benchmarks.scenario import Plan

Plans = list[tuple[str, Plan]]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A history with nothing but its header, in the place of the project's."""
    path = tmp_path / "history.csv"
    path.write_text(history.PATH.read_text().partition("\n")[0] + "\n")
    monkeypatch.setattr(history, "PATH", path)
    monkeypatch.setattr(command, "_ROOT", tmp_path)
    return path


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Plans:
    done: Plans = []

    def measure(plan: Plan, name: str, number: int, _: object, __: object) -> Run:
        done.append((name, plan))
        figures: dict[str, float | None] = {"load_cpu_s": 4.0 if name == "go" else 3.0}
        return Run(operator=name, round=number, figures=figures, requests={"get pods 200": 1}, notes=[])

    class Operator:
        def prepare(self, _: bool) -> Callable[[Path], Command]:
            return lambda _: Command([], {})

    monkeypatch.setattr(rounds, "measure", measure)
    monkeypatch.setattr(rounds, "OPERATORS", {name: Operator() for name in ("go", "ours")})
    return done


def commits(monkeypatch: pytest.MonkeyPatch, *answers: str | HistoryError) -> None:
    """What the checkout is said to have, each time that it is asked."""
    left = list(answers)

    def committed(_: Path) -> str:
        answer = left.pop(0)
        if isinstance(answer, HistoryError):
            raise answer
        return answer

    monkeypatch.setattr(history, "committed", committed)


def test_the_last_recorded_line_is_what_the_next_run_is_compared_with(
    kept: Path, measured: Plans, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commits(monkeypatch, "ffff000", "ffff000", "0abc123", "0abc123")
    assert [command.main(["--quick", "--record"]) for _ in range(2)] == [0, 0]
    first, entry = read(kept.read_text())
    assert (first.commit, entry.commit) == ("ffff000", "0abc123")
    assert (entry.values["load_cpu"], entry.values["restart_cpu"]) == (0.75, None)
    capsys.readouterr()
    assert command.main(["--quick"]) == 0
    printed = capsys.readouterr().out
    assert "last recorded: 0abc123" in printed
    assert "+0 %" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--quick", "--count", "3"], "leave out --count"),
        (["--quick", "--operator", "kopf", "--extras"], "leave out --extras, --operator"),
        (["--quick", "--peers"], "leave out --peers"),
        (["--record"], "--record is for --quick"),
    ],
)
def test_what_would_not_be_comparable_is_refused(
    arguments: list[str], message: str, measured: Plans, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        command.main(arguments)
    assert refused.value.code == 2
    assert message in capsys.readouterr().err
    assert measured == []
