"""A program around a made-up operator, from its arguments to what the operator's process is handed."""

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Annotated, Any, Literal, NoReturn

import msgspec
import pytest
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from operator_runtime.config import RuntimeConfig
from operator_runtime.identity import Program
from operator_runtime.process.command import packages_of, run
from operator_runtime.process.knobs import Knob
from operator_runtime.process.settings import RuntimeSettings

pytestmark = pytest.mark.usefixtures("no_variables", "logging_as_it_was")


class KettleSettings(RuntimeSettings):
    """What this operator may be told besides."""

    cups: Annotated[int, Field(ge=1, le=6, description="Cups."), Knob("Tea", why="Two.", metavar="NUMBER")] = 2


class KettleConfig(RuntimeConfig, frozen=True):
    """The same for the operator's process."""

    cups: int = 0


def set_up(operator: object, config: RuntimeConfig) -> None:
    raise AssertionError("only the operator's process sets one up")


def kettle(*arguments: str, **program: Any) -> int:
    """The exit code of the program with these arguments."""
    given = {"version": "1.2.3", "settings": KettleSettings, "config": KettleConfig, **program}
    return run("kettle-operator", set_up, argv=arguments, **given)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[KettleConfig]:
    """The settings of each operator that the command line became; it ends at once with exit code 0."""
    seen: list[KettleConfig] = []

    def become_operator(program: Program, settings_json: str) -> NoReturn:
        assert program.name == "kettle-operator"
        seen.append(msgspec.json.decode(settings_json, type=KettleConfig))
        raise SystemExit(0)

    monkeypatch.setattr("operator_runtime.process.process.become_operator", become_operator)
    return seen


def start(*arguments: str, **program: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        kettle(*arguments, **program)
    assert ended.value.code == 0


class TestStart:
    def test_its_own_settings_and_those_of_any_operator_come_from_flags_and_variables(
        self, monkeypatch: pytest.MonkeyPatch, started: list[KettleConfig]
    ) -> None:
        monkeypatch.setenv("KETTLE_OPERATOR_WORKERS", "3")
        start("--cups", "4", "-n", "a", "-n", "b")
        (config,) = started
        assert (config.cups, config.workers, config.watch_namespaces) == (4, 3, ("a", "b"))
        assert config.operator_name == "kettle-operator"

    def test_a_model_that_is_named_is_as_good_as_a_model(self, started: list[KettleConfig]) -> None:
        start("--cups=5", settings=f"{__name__}:KettleSettings")
        assert started[0].cups == 5

    def test_an_operator_without_settings_of_its_own_has_those_of_any(self, started: list[KettleConfig]) -> None:
        with pytest.raises(SystemExit):
            run("kettle-operator", set_up, version="1", leader_election_id="a9b2e162.example.com", argv=["--workers=2"])
        assert (started[0].workers, started[0].leader_elect_id) == (2, "a9b2e162.example.com")

    def test_an_unknown_variable_with_its_prefix_is_a_warning(
        self, monkeypatch: pytest.MonkeyPatch, started: list[KettleConfig], capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("KETTLE_OPERATOR_CUP", "3")
        monkeypatch.setenv("MEMCACHED_OPERATOR_WORKER", "3")
        start()
        (line,) = capsys.readouterr().err.splitlines()
        assert line.endswith(
            "the environment variable KETTLE_OPERATOR_CUP sets nothing; did you mean KETTLE_OPERATOR_CUPS?"
        )

    def test_what_was_validated_before_is_what_runs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ran: list[tuple[str, KettleConfig, Callable[..., None]]] = []

        async def serve(config: KettleConfig, program: Program, set_up: Callable[..., None]) -> int:
            ran.append((program.version, config, set_up))
            return 7

        monkeypatch.setattr("operator_runtime.operator.serve", serve)
        monkeypatch.setenv("_KETTLE_OPERATOR_VALIDATED_SETTINGS", KettleSettings(cups=6).model_dump_json())
        assert kettle("--cups=9000") == 7
        ((version, config, asked),) = ran
        assert (version, config.cups, asked) == ("1.2.3", 6, set_up)


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

    def test_version_is_its_own_and_loads_no_settings(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert kettle("--version", settings="no_such_module:Settings") == 0
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
    @pytest.mark.parametrize(
        ("program", "message"),
        [
            ({"settings": RuntimeSettings}, "must have the same fields; only one of them has cups"),
            ({"config": RuntimeConfig}, "must have the same fields; only one of them has cups"),
            ({"settings": RuntimeConfig}, "is no subclass of RuntimeSettings"),
            ({"settings": f"{__name__}:set_up"}, "is no subclass of RuntimeSettings"),
            ({"config": KettleSettings}, "is no subclass of RuntimeConfig"),
            ({"config": RuntimeConfig}, "cups: give config= a subclass of RuntimeConfig that has cups"),
            ({"settings": RuntimeSettings}, "cups: give settings= a subclass of RuntimeSettings that has cups"),
            ({"settings": f"{__name__}:Ketle"}, "has no attribute 'Ketle'): write MODULE:CLASS, such as"),
            ({"settings": "no_such_module:Settings"}, "No module named 'no_such_module'): write MODULE:CLASS"),
        ],
    )
    def test_settings_that_do_not_fit_are_refused_saying_why(self, program: dict[str, object], message: str) -> None:
        with pytest.raises(TypeError, match=re.escape(message)):
            kettle(**program)

    def test_all_that_is_wrong_is_told_at_once_whatever_the_command_line_asks_for(self) -> None:
        class Settings(RuntimeSettings):
            cups: int
            lid: Annotated[str, Field(description="Lid."), Knob("Tea", why="Dust.", metavar="LID")] = "on"

        with pytest.raises(TypeError) as caught:
            kettle("--help", settings=Settings)
        no_default, no_knob, not_allowed, differing = str(caught.value).splitlines()
        assert no_default.startswith("the setting cups has no default: ")
        assert no_knob.startswith("the setting cups has no Knob; ")
        assert not_allowed.startswith("the setting lid does not say what is allowed: ")
        assert differing.endswith("only one of them has lid: write lid into KettleConfig")

    def test_defaults_that_the_settings_forbid_are_the_authors_and_no_users(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Settings(KettleSettings):
            cups: Annotated[int, Field(ge=1, le=6, description="Cups."), Knob("Tea", why="All.", metavar="N")] = 7
            log_level: Annotated[
                Literal["info", "loud"], Field(description="Words."), Knob("Logs", why="Calm.", metavar="LEVEL")
            ] = "quiet"  # type: ignore[assignment]

        monkeypatch.setenv("KETTLE_OPERATOR_CUPS", "3")  # what a user says is not looked at
        with pytest.raises(TypeError) as caught:
            kettle(settings=Settings)
        assert str(caught.value).splitlines() == [
            "the setting log_level has the default 'quiet', which it does not allow itself: it must be info or loud",
            "the setting cups has the default 7, which it does not allow itself: it must be a whole number from 1 to 6",
        ]

    def test_so_are_defaults_that_do_not_fit_together(self) -> None:
        class Settings(KettleSettings):
            @model_validator(mode="after")
            def _fits(self) -> "Settings":
                raise PydanticCustomError("lids", "a lid for each cup")

        with pytest.raises(TypeError, match=r"^the defaults of Settings do not fit: a lid for each cup$"):
            kettle(settings=Settings)

    def test_a_config_of_other_types_is_told_for_each_setting_before_the_operator_begins(self) -> None:
        class Config(RuntimeConfig, frozen=True):
            workers: str  # type: ignore[assignment]
            cups: str = ""

        with pytest.raises(TypeError) as caught:
            kettle(config=Config)
        assert str(caught.value).splitlines() == [
            f"the setting {name} has another type in the config Config than in the settings KettleSettings, "
            f"whose default is {default} there: Expected `str`, got `int`"
            for name, default in (("workers", 8), ("cups", 2))
        ]

    def test_a_set_up_that_would_never_be_awaited_is_refused(self) -> None:
        async def never(operator: object, config: RuntimeConfig) -> None: ...

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


def test_the_operators_process_loads_nothing_that_only_the_validation_needs() -> None:
    program = """
import os, sys
from operator_runtime import operator, run

async def serve(config, program, set_up):
    return 1 if {"pydantic", "pydantic_settings", "argparse", "yaml"} & set(sys.modules) else 0

operator.serve = serve
sys.exit(run("kettle-operator", lambda operator, config: None, version="1", argv=["--workers=9000"]))
"""
    settings = RuntimeSettings(operator_name="kettle-operator").model_dump_json()
    environment = {"_KETTLE_OPERATOR_VALIDATED_SETTINGS": settings, "PYTHONPATH": ":".join(sys.path)}
    ended = subprocess.run([sys.executable, "-c", program], check=False, timeout=60, env=environment)
    assert ended.returncode == 0
