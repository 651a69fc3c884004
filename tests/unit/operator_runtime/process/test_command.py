"""A program around a made-up operator, from its arguments to what the operator is given."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from operator_runtime.identity import Program
from operator_runtime.process.command import packages_of, run
from operator_runtime.settings.runtime_settings import RuntimeSettings
from operator_runtime.settings.setting import Setting

pytestmark = pytest.mark.usefixtures("no_variables", "logging_as_it_was")

ROOT = Path(__file__).parents[4]


class KettleSettings(RuntimeSettings, frozen=True):
    """What this operator may be told besides."""

    cups: Annotated[int, Meta(ge=1, le=6), Setting("Tea", help="Cups.", why="Two.", metavar="NUMBER")] = 2


def set_up(operator: object, settings: RuntimeSettings) -> None:
    raise AssertionError("no operator of these tests gets so far")


def kettle(*arguments: str, **program: Any) -> int:
    """The exit code of the program with these arguments."""
    given = {"version": "1.2.3", "settings": KettleSettings, **program}
    return run("kettle-operator", set_up, argv=arguments, **given)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[KettleSettings]:
    """The settings of each operator that the command line started; it ends at once with exit code 7."""
    seen: list[KettleSettings] = []

    async def serve(settings: KettleSettings, program: Program, asked: Callable[..., None]) -> int:
        assert (program.name, asked) == ("kettle-operator", set_up)
        seen.append(settings)
        return 7

    monkeypatch.setattr("operator_runtime.operator.serve", serve)
    return seen


class TestStart:
    def test_its_own_settings_and_those_of_any_operator_come_from_flags_and_variables(
        self, monkeypatch: pytest.MonkeyPatch, started: list[KettleSettings]
    ) -> None:
        monkeypatch.setenv("KETTLE_OPERATOR_WORKERS", "3")
        assert kettle("--cups", "4", "-n", "a", "-n", "b") == 7
        (settings,) = started
        assert (settings.cups, settings.workers, settings.watch_namespaces) == (4, 3, ("a", "b"))
        assert settings.operator_name == "kettle-operator"

    def test_an_operator_without_settings_of_its_own_has_those_of_any(self, started: list[KettleSettings]) -> None:
        run("kettle-operator", set_up, version="1", leader_election_id="a9b2e162.example.com", argv=["--workers=2"])
        assert (started[0].workers, started[0].leader_elect_id) == (2, "a9b2e162.example.com")

    def test_an_unknown_variable_with_its_prefix_is_a_warning(
        self, monkeypatch: pytest.MonkeyPatch, started: list[KettleSettings], capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("KETTLE_OPERATOR_CUP", "3")
        monkeypatch.setenv("MEMCACHED_OPERATOR_WORKER", "3")
        kettle()
        (line,) = capsys.readouterr().err.splitlines()
        assert line.endswith(
            "the environment variable KETTLE_OPERATOR_CUP sets nothing; did you mean KETTLE_OPERATOR_CUPS?"
        )


class TestWords:
    def test_help_is_of_this_operator_alone(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("COLUMNS", "100")
        assert kettle("--workers=0", "--help", description="Makes tea.") == 0
        out = capsys.readouterr().out
        assert out.startswith("usage: kettle-operator [flags]\n\nMakes tea.\nIn parentheses: ")
        words = " ".join(out.split())
        assert "Cups. (KETTLE_OPERATOR_CUPS; default: 2)" in words
        # Lines end at hyphens too.
        assert "default:theoperator'snameand`-lock`:kettle-operator-lock)" in words.replace(" ", "")
        assert "emcached" not in out

    def test_so_is_the_reference(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert kettle("settings-reference") == 0
        page = capsys.readouterr().out
        assert page.startswith("# Settings\n\n<!-- Made by `kettle-operator settings-reference`; do not edit. -->\n")
        assert "| `--cups` | `KETTLE_OPERATOR_CUPS` | `2` |" in page
        assert "emcached" not in page

    def test_version_is_its_own(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert kettle("--version") == 0
        assert capsys.readouterr().out == "kettle-operator 1.2.3\n"

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--workers", "0"], "--workers: '0' is not allowed, it must be a whole number from 1 to 256"),
            (["--cups=7"], "--cups: '7' is not allowed, it must be a whole number from 1 to 6"),
            (["--cusp=7"], "unknown flag '--cusp'; did you mean --cups?"),
            (["--memcached-image=x"], "unknown flag '--memcached-image'"),
            (["brew"], "unknown argument 'brew'"),
        ],
    )
    def test_wrong_usage_is_exit_code_2_and_a_message_of_this_operator(
        self, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
    ) -> None:
        assert kettle(*arguments) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err == f"kettle-operator: {message}\nTry 'kettle-operator --help'.\n"


class TestWhatAnAuthorGotWrong:
    @pytest.mark.parametrize("settings", [object, set_up, Program])
    def test_settings_that_are_none_are_refused(self, settings: object) -> None:
        with pytest.raises(TypeError, match=re.escape(f"settings={settings!r} is no subclass of RuntimeSettings")):
            kettle(settings=settings)

    def test_all_that_is_wrong_is_told_at_once_whatever_the_command_line_asks_for(self) -> None:
        class Settings(RuntimeSettings, frozen=True):
            cups: int
            lid: Annotated[str, Setting("Tea", help="Lid.", why="Dust.", metavar="LID")] = "on"

        with pytest.raises(TypeError) as caught:
            kettle("--help", settings=Settings)
        no_default, no_setting, not_allowed = str(caught.value).splitlines()
        assert no_default.startswith("the setting cups has no default: ")
        assert no_setting.startswith("the setting cups has no Setting; ")
        assert not_allowed.startswith("the setting lid does not say what is allowed: ")

    def test_defaults_that_the_settings_forbid_are_the_authors_and_no_users(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Settings(KettleSettings, frozen=True):
            cups: Annotated[int, Meta(ge=1, le=6), Setting("Tea", help="Cups.", why="All.", metavar="N")] = 7
            log_level: Annotated[
                Literal["info", "loud"], Setting("Logs", help="Words.", why="Calm.", metavar="LEVEL")
            ] = "quiet"  # type: ignore[assignment]

        monkeypatch.setenv("KETTLE_OPERATOR_CUPS", "3")  # what a user says is not looked at
        with pytest.raises(TypeError) as caught:
            kettle(settings=Settings)
        assert str(caught.value).splitlines() == [
            "the setting log_level has the default 'quiet', which it does not allow itself: it must be info or loud",
            "the setting cups has the default 7, which it does not allow itself: it must be a whole number from 1 to 6",
        ]

    def test_so_are_defaults_that_do_not_fit_together(self) -> None:
        class Settings(KettleSettings, frozen=True):
            def __post_init__(self) -> None:
                raise ValueError("a lid for each cup")

        with pytest.raises(TypeError, match=r"^the defaults of Settings do not fit: a lid for each cup$"):
            kettle(settings=Settings)

    def test_a_set_up_that_would_never_be_awaited_is_refused(self) -> None:
        async def never(operator: object, settings: RuntimeSettings) -> None: ...

        with pytest.raises(TypeError, match="set_up must be a plain function"):
            run("kettle-operator", never, version="1")  # type: ignore[arg-type]

    def test_a_name_that_no_operator_can_have_is_refused(self) -> None:
        with pytest.raises(ValueError, match="such as my-own-shell"):
            run("Kettle", set_up, version="1")


def test_lines_of_the_package_of_set_up_are_the_operators_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert packages_of(set_up)[-1] == __package__
    # As `python -m kettles` has it.
    monkeypatch.setattr(sys.modules["__main__"], "__package__", "kettles")
    assert packages_of(set_up) == ("__main__", "kettles", __package__)


@pytest.mark.parametrize("way", ["module", "file", "command"])
def test_the_operator_runs_in_the_process_that_was_started_and_loads_no_pydantic(tmp_path: Path, way: str) -> None:
    program = dedent("""
        import os, sys
        from operator_runtime import operator, run

        async def serve(settings, program, set_up):
            print(os.getpid(), settings.workers, sorted({"pydantic", "pydantic_settings", "yaml"} & set(sys.modules)))
            return 0

        operator.serve = serve
        sys.exit(run("kettle-operator", lambda operator, settings: None, version="1"))
    """)
    (tmp_path / "kettles").mkdir()
    (tmp_path / "kettles" / "__main__.py").write_text(program)
    how = {"module": ["-m", "kettles"], "file": ["kettles/__main__.py"], "command": ["-c", program]}[way]
    with subprocess.Popen(
        [sys.executable, *how, "--workers", "3"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as started:
        said, _ = started.communicate(timeout=60)
    assert (started.returncode, said) == (0, f"{started.pid} 3 []\n")
