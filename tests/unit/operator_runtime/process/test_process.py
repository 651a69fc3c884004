"""The operator's process: what it is handed, what it runs on, how it ends."""

import asyncio
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import msgspec
import pytest

from operator_runtime.client.errors import AuthenticationUnavailable
from operator_runtime.config import RuntimeConfig
from operator_runtime.identity import Program
from operator_runtime.process import logs, process
from operator_runtime.process.settings import RuntimeSettings, settings_of
from operator_runtime.serving.http_server import ListenError

pytestmark = pytest.mark.usefixtures("no_variables", "logging_as_it_was")

ROOT = Path(__file__).parents[4]
KETTLE = Program("kettle-operator", "1.2.3")


def settings_with(**values: object) -> str:
    """The settings as the process that validates them hands them on."""
    return settings_of(RuntimeSettings, KETTLE).model_validate(values).model_dump_json()


def config_with(**values: object) -> RuntimeConfig:
    return msgspec.json.decode(settings_with(**values), type=RuntimeConfig)


def test_every_setting_reaches_the_operator_and_nothing_else_does() -> None:
    assert set(RuntimeConfig.__struct_fields__) == set(RuntimeSettings.model_fields)


def test_a_value_arrives_as_it_was_validated() -> None:
    config = config_with(workers=3, watch_namespaces="a,b", kubeconfig="/k", reconcile_timeout_s=1.5)
    assert (config.workers, config.watch_namespaces, config.kubeconfig, config.reconcile_timeout_s) == (
        3,
        ("a", "b"),
        "/k",
        1.5,
    )


def test_what_was_validated_is_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_KETTLE_OPERATOR_VALIDATED_SETTINGS", "{}")
    assert process.validated_settings(Program("other", "1")) is None
    assert process.validated_settings(KETTLE) == "{}"
    # Programs that the operator starts, say an exec plugin, inherit nothing of it.
    assert process.validated_settings(KETTLE) is None


@pytest.mark.parametrize("way", ["module", "file", "command"])
def test_the_operator_is_the_same_command_line_and_process_again(tmp_path: Path, way: str) -> None:
    program = dedent("""
        import os, sys
        from operator_runtime.process import process
        from operator_runtime.identity import Program

        KETTLE = Program("kettle-operator", "1.2.3")
        settings = process.validated_settings(KETTLE)
        print(os.getpid(), settings, *sys.argv[1:])
        if settings is None:
            process.become_operator(KETTLE, '{"of":"first"}')
    """)
    (tmp_path / "kettles").mkdir()
    (tmp_path / "kettles" / "__main__.py").write_text(program)
    how = {"module": ["-m", "kettles"], "file": ["kettles/__main__.py"], "command": ["-c", program]}[way]
    ended = subprocess.run(
        [sys.executable, *how, "--cups", "a b"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    first, second = ended.stdout.splitlines()
    pid = first.split()[0]
    assert (first, second) == (f"{pid} None --cups a b", f'{pid} {{"of":"first"}} --cups a b')


def test_lines_logged_by_the_operator_have_the_format_that_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    async def serve(config: RuntimeConfig) -> int:
        logging.getLogger("operator_runtime.operator").debug("ready")
        logging.getLogger("kettles.tea").debug("steeping")
        return 7

    asked = settings_with(log_format="json", log_level="debug")
    assert process.operate(KETTLE, asked, RuntimeConfig, serve, own_packages=["kettles"]) == 7
    assert [json.loads(line)["message"] for line in capsys.readouterr().err.splitlines()] == ["ready", "steeping"]


def test_what_cannot_be_served_is_one_plain_line(capsys: pytest.CaptureFixture[str]) -> None:
    async def run(config: RuntimeConfig) -> int:
        raise ListenError("cannot listen on :8080 for metrics: address already in use.")

    assert process.run_to_the_end(KETTLE, run, config_with()) == process.FAILED
    assert capsys.readouterr().err == ("kettle-operator: cannot listen on :8080 for metrics: address already in use.\n")


def test_its_result_is_the_exit_code() -> None:
    async def run(config: RuntimeConfig) -> int:
        return config.workers

    assert process.run_to_the_end(KETTLE, run, config_with(workers=5)) == 5


def test_it_runs_on_uvloop_where_there_is_one() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def run(config: RuntimeConfig) -> int:
        return 0 if isinstance(asyncio.get_running_loop(), uvloop.Loop) else 1

    assert process.run_to_the_end(KETTLE, run, config_with()) == 0


def test_it_runs_on_asyncios_loop_where_there_is_no_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)

    async def run(config: RuntimeConfig) -> int:
        return 0

    assert process.run_to_the_end(KETTLE, run, config_with()) == 0


def test_what_keeps_it_from_starting_is_one_plain_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert process.run_to_the_end(KETTLE, fails_to_start, config_with()) == 1
    assert capsys.readouterr().err == r"kettle-operator: no token in /sa:\nmount it" + "\n"


def test_for_machines_that_line_is_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(log_format="json", level="info", current_reconcile=lambda: None)
    assert process.run_to_the_end(KETTLE, fails_to_start, config_with(log_format="json")) == 1
    document = json.loads(capsys.readouterr().err)
    assert (document["level"], document["message"]) == ("critical", "no token in /sa:\nmount it")
    assert "exception" not in document


def test_a_fault_of_its_own_is_logged_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    async def run(config: RuntimeConfig) -> int:
        raise RuntimeError("a bug")

    logs.configure(log_format="text", level="info", current_reconcile=lambda: None)
    assert process.run_to_the_end(KETTLE, run, config_with()) == 1
    first, second, *_, last = capsys.readouterr().err.splitlines()
    assert first.endswith("FATAL process.process: ended by a fault of its own")
    assert (second, last) == ("    Traceback (most recent call last):", "    RuntimeError: a bug")


def test_an_exit_in_its_midst_does_not_pass_without_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    async def run(config: RuntimeConfig) -> int:
        sys.exit(3)

    logs.configure(log_format="text", level="info", current_reconcile=lambda: None)
    with pytest.raises(SystemExit) as ended:
        process.run_to_the_end(KETTLE, run, config_with())
    assert ended.value.code == 3
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith("FATAL process.process: ended by sys.exit(3) in its midst: raise an error instead")
    assert any(line.endswith(", in run") for line in lines), "the traceback names who did it"


def test_ctrl_c_before_the_operator_listens_ends_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    async def run(config: RuntimeConfig) -> int:
        raise KeyboardInterrupt

    assert process.run_to_the_end(KETTLE, run, config_with()) == 130
    assert "Traceback" not in capsys.readouterr().err


async def fails_to_start(config: RuntimeConfig) -> int:
    raise AuthenticationUnavailable("no token in /sa:\nmount it")
