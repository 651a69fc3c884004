"""A program around a made-up operator, from its arguments to what the operator is given."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from operator_runtime.identity import Program
from operator_runtime.process.command import packages_of, run
from operator_runtime.settings.runtime_settings import RuntimeSettings
from operator_runtime.settings.setting import setting

pytestmark = pytest.mark.usefixtures("no_variables", "logging_as_it_was")

ROOT = Path(__file__).parents[4]


class SampleSettings(RuntimeSettings):
    """What this operator may be told besides."""

    parts: int = setting(2, "Parts.", "Two.", group="Tea", limits=(1, 6))


def set_up(operator: object, settings: RuntimeSettings) -> None:
    raise AssertionError("no operator of these tests gets so far")


def sample(*arguments: str, **program: Any) -> int:
    """The exit code of the program with these arguments."""
    given = {"version": "1.2.3", "settings": SampleSettings, **program}
    return run("sample-operator", set_up, argv=arguments, **given)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[SampleSettings]:
    """The settings of each operator that the command line started; it ends at once with exit code 7."""
    seen: list[SampleSettings] = []

    async def serve(settings: SampleSettings, program: Program, given_set_up: Callable[..., None]) -> int:
        assert (program.name, given_set_up) == ("sample-operator", set_up)
        seen.append(settings)
        return 7

    monkeypatch.setattr("operator_runtime.operator.serve", serve)
    return seen


class TestStart:
    def test_its_own_settings_and_those_of_any_operator_come_from_flags_and_variables(
        self, monkeypatch: pytest.MonkeyPatch, started: list[SampleSettings]
    ) -> None:
        monkeypatch.setenv("SAMPLE_OPERATOR_WORKERS", "3")
        assert sample("--parts", "4", "-n", "a", "-n", "b") == 7
        (settings,) = started
        assert (settings.parts, settings.workers, settings.watch_namespaces) == (4, 3, ("a", "b"))
        assert settings.operator_name == "sample-operator"
        run("sample-operator", set_up, version="1", leader_election_id="a9b2e162.example.com", argv=["--workers=2"])
        assert (started[1].workers, started[1].leader_elect_id) == (2, "a9b2e162.example.com")

    def test_an_unknown_variable_with_its_prefix_is_a_warning(
        self, monkeypatch: pytest.MonkeyPatch, started: list[SampleSettings], capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("SAMPLE_OPERATOR_PART", "3")
        monkeypatch.setenv("MEMCACHED_OPERATOR_WORKER", "3")
        sample()
        (line,) = capsys.readouterr().err.splitlines()
        assert line.endswith(
            "the environment variable SAMPLE_OPERATOR_PART sets nothing; did you mean SAMPLE_OPERATOR_PARTS?"
        )


class TestWords:
    def test_help_is_of_this_operator_alone(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("COLUMNS", "100")
        assert sample("--workers=0", "--help", description="Makes samples.") == 0
        out = capsys.readouterr().out
        assert out.startswith("usage: sample-operator [flags]\n\nMakes samples.\nIn parentheses: ")
        words = " ".join(out.split())
        assert "Parts. (SAMPLE_OPERATOR_PARTS; default: 2)" in words
        # Lines end at hyphens too.
        assert "default:theoperator'snameand`-lock`:sample-operator-lock)" in words.replace(" ", "")
        assert "emcached" not in out

    def test_the_version_is_printed(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert sample("--version") == 0
        assert capsys.readouterr().out == "sample-operator 1.2.3\n"


@pytest.mark.parametrize("settings", [object, Program])
def test_settings_that_are_none_are_refused(settings: object) -> None:
    with pytest.raises(TypeError, match=re.escape(f"settings={settings!r} is no subclass of RuntimeSettings")):
        sample(settings=settings)


def test_a_set_up_that_would_wait_and_a_name_that_no_reporter_has_are_refused() -> None:
    async def never(operator: object, settings: RuntimeSettings) -> None: ...

    with pytest.raises(TypeError, match="set_up must be a plain function"):
        run("sample-operator", never, version="1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="such as my-own-shell"):
        run("Sample", set_up, version="1")


def test_lines_of_the_package_of_set_up_are_the_operators_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert packages_of(set_up)[-1] == __package__
    # As `python -m samples` has it.
    monkeypatch.setattr(sys.modules["__main__"], "__package__", "samples")
    assert packages_of(set_up) == ("__main__", "samples", __package__)


@pytest.mark.parametrize("way", ["module", "file", "command"])
def test_the_operator_runs_in_the_process_that_was_started_and_loads_no_pydantic(tmp_path: Path, way: str) -> None:
    program = dedent("""
        import os, sys
        from operator_runtime import operator, run

        async def serve(settings, program, set_up):
            print(os.getpid(), settings.workers, sorted({"pydantic", "pydantic_settings", "yaml"} & set(sys.modules)))
            return 0

        operator.serve = serve
        sys.exit(run("sample-operator", lambda operator, settings: None, version="1"))
    """)
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "__main__.py").write_text(program)
    how = {"module": ["-m", "samples"], "file": ["samples/__main__.py"], "command": ["-c", program]}[way]
    with subprocess.Popen(
        [sys.executable, *how, "--workers", "3"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as started:
        output, _ = started.communicate(timeout=60)
    assert (started.returncode, output) == (0, f"{started.pid} 3 []\n")
