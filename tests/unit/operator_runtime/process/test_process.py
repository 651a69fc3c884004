"""The operator's process: what it runs on, how it ends."""

import asyncio
import json
import logging
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from operator_runtime.client.errors import AuthenticationUnavailable
from operator_runtime.identity import Program
from operator_runtime.process import command, flags
from operator_runtime.process.command import operate
from operator_runtime.serving.listening import ServingError
from operator_runtime.settings.runtime_settings import RuntimeSettings
from operator_runtime.settings.schema import Schema

pytestmark = pytest.mark.usefixtures("no_variables", "logging_as_it_was")

SAMPLE = Program("sample-operator", "1.2.3")
SCHEMA = Schema(RuntimeSettings, SAMPLE)


def raising(error: BaseException) -> Callable[[RuntimeSettings], Coroutine[Any, Any, int]]:
    async def run(settings: RuntimeSettings) -> int:
        raise error

    return run


def test_lines_logged_by_the_operator_have_the_format_that_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    async def serve(settings: RuntimeSettings) -> int:
        logging.getLogger("operator_runtime.operator").debug("ready")
        logging.getLogger("samples.parts").debug("making")
        return 7

    given = RuntimeSettings(log_format="json", log_level="debug")
    assert operate(SAMPLE, SCHEMA, given, serve, own_packages=["samples"]) == 7
    assert [json.loads(line)["message"] for line in capsys.readouterr().err.splitlines()] == ["ready", "making"]


@pytest.mark.parametrize("there", [True, False])
def test_it_runs_on_uvloop_where_there_is_one_and_else_on_asyncio(monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    uvloop = pytest.importorskip("uvloop")
    if not there:
        monkeypatch.setitem(sys.modules, "uvloop", None)

    async def run(settings: RuntimeSettings) -> int:
        return 0 if isinstance(asyncio.get_running_loop(), uvloop.Loop) is there else 1

    assert operate(SAMPLE, SCHEMA, RuntimeSettings(), run) == 0


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (AuthenticationUnavailable("no token in /sa:\nmount it"), 1, r"no token in /sa:\nmount it"),
        (ServingError("cannot listen on :8080."), command.FAILED, "cannot listen on :8080."),
    ],
)
def test_what_keeps_it_from_starting_is_one_plain_line(
    capsys: pytest.CaptureFixture[str], error: Exception, code: int, message: str
) -> None:
    assert operate(SAMPLE, SCHEMA, RuntimeSettings(), raising(error)) == code
    assert capsys.readouterr().err == f"sample-operator: {message}\n"


def test_for_machines_that_line_is_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    run = raising(AuthenticationUnavailable("no token in /sa:\nmount it"))
    assert operate(SAMPLE, SCHEMA, RuntimeSettings(log_format="json"), run) == 1
    document = json.loads(capsys.readouterr().err)
    assert (document["level"], document["message"]) == ("critical", "no token in /sa:\nmount it")
    assert "exception" not in document


def test_a_fault_of_its_own_is_logged_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert operate(SAMPLE, SCHEMA, RuntimeSettings(), raising(RuntimeError("a bug"))) == 1
    first, second, *_, last = capsys.readouterr().err.splitlines()
    assert first.endswith("FATAL process.command: ended by an internal error")
    assert (second, last) == ("    Traceback (most recent call last):", "    RuntimeError: a bug")


def test_an_exit_in_its_midst_does_not_pass_without_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    async def run(settings: RuntimeSettings) -> int:
        sys.exit(3)

    with pytest.raises(SystemExit) as ended:
        operate(SAMPLE, SCHEMA, RuntimeSettings(), run)
    assert ended.value.code == 3
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith("FATAL process.command: ended by sys.exit(3) in its midst: raise an error instead")
    assert any(line.endswith(", in run") for line in lines), "the traceback names who did it"


def test_ctrl_c_before_the_operator_listens_ends_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    run = raising(KeyboardInterrupt())
    assert flags.answered("sample-operator", lambda: operate(SAMPLE, SCHEMA, RuntimeSettings(), run)) == 130
    assert "Traceback" not in capsys.readouterr().err
