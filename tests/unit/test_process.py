"""The operator's process: what it is handed, what it runs on, how it ends."""

import asyncio
import json
import logging
import subprocess
import sys
from textwrap import dedent

import pytest

from memcached_operator import process
from memcached_operator.kube.errors import AuthenticationUnavailable
from memcached_operator.operator import OperatorConfig, decode_config
from memcached_operator.runtime.program import logs
from memcached_operator.runtime.serving.http_server import ListenError
from memcached_operator.settings import Settings

pytestmark = pytest.mark.usefixtures("no_variables", "logging_as_it_was")


def config_with(**values: object) -> OperatorConfig:
    return decode_config(Settings.model_validate(values).model_dump_json())


def test_every_setting_reaches_the_operator_and_nothing_else_does() -> None:
    assert set(OperatorConfig.__struct_fields__) == set(Settings.model_fields)


def test_a_value_arrives_as_it_was_validated() -> None:
    config = config_with(workers=3, watch_namespaces="a,b", kubeconfig="/k", reconcile_timeout_s=1.5)
    assert (config.workers, config.watch_namespaces, config.kubeconfig, config.reconcile_timeout_s) == (
        3,
        ("a", "b"),
        "/k",
        1.5,
    )


def test_what_was_validated_is_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(process._VALIDATED, "{}")
    assert process.validated_settings() == "{}"
    # Programs that the operator starts, say an exec plugin, inherit nothing of it.
    assert process.validated_settings() is None


def test_the_operators_process_loads_nothing_that_only_the_validation_needs() -> None:
    program = """
        import sys
        from memcached_operator import operator, process

        async def run(config):
            return 1 if {"pydantic", "pydantic_settings", "argparse", "yaml"} & set(sys.modules) else 0

        operator.run = run
        sys.exit(process.operate(sys.argv[1]))
    """
    command = [sys.executable, "-c", dedent(program), Settings().model_dump_json()]
    assert subprocess.run(command, check=False, timeout=60).returncode == 0


def test_lines_logged_by_the_operator_have_the_format_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def run(config: OperatorConfig) -> int:
        logging.getLogger("memcached_operator.operator").debug("ready")
        return 7

    monkeypatch.setattr("memcached_operator.operator.run", run)
    assert process.operate(Settings(log_format="json", log_level="debug").model_dump_json()) == 7
    assert json.loads(capsys.readouterr().err)["message"] == "ready"


def test_what_cannot_be_served_is_one_plain_line(capsys: pytest.CaptureFixture[str]) -> None:
    async def run(config: OperatorConfig) -> int:
        raise ListenError("cannot listen on :8080 for metrics: address already in use.")

    assert process.run_to_the_end(run, config_with()) == process.FAILED
    assert capsys.readouterr().err == (
        "memcached-operator: cannot listen on :8080 for metrics: address already in use.\n"
    )


def test_its_result_is_the_exit_code() -> None:
    async def run(config: OperatorConfig) -> int:
        return config.workers

    assert process.run_to_the_end(run, config_with(workers=5)) == 5


def test_it_runs_on_uvloop_where_there_is_one() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def run(config: OperatorConfig) -> int:
        return 0 if isinstance(asyncio.get_running_loop(), uvloop.Loop) else 1

    assert process.run_to_the_end(run, config_with()) == 0


def test_it_runs_on_asyncios_loop_where_there_is_no_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)

    async def run(config: OperatorConfig) -> int:
        return 0

    assert process.run_to_the_end(run, config_with()) == 0


def test_what_keeps_it_from_starting_is_one_plain_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert process.run_to_the_end(fails_to_start, config_with()) == 1
    assert capsys.readouterr().err == r"memcached-operator: no token in /sa:\nmount it" + "\n"


def test_for_machines_that_line_is_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(log_format="json", level="info", current_reconcile=lambda: None)
    assert process.run_to_the_end(fails_to_start, config_with(log_format="json")) == 1
    document = json.loads(capsys.readouterr().err)
    assert (document["level"], document["message"]) == ("critical", "no token in /sa:\nmount it")
    assert "exception" not in document


def test_a_fault_of_its_own_is_logged_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    async def run(config: OperatorConfig) -> int:
        raise RuntimeError("a bug")

    logs.configure(log_format="text", level="info", current_reconcile=lambda: None)
    assert process.run_to_the_end(run, config_with()) == 1
    first, second, *_, last = capsys.readouterr().err.splitlines()
    assert first.endswith("FATAL process: ended by a fault of its own")
    assert (second, last) == ("    Traceback (most recent call last):", "    RuntimeError: a bug")


def test_ctrl_c_before_the_operator_listens_ends_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    async def run(config: OperatorConfig) -> int:
        raise KeyboardInterrupt

    assert process.run_to_the_end(run, config_with()) == 130
    assert "Traceback" not in capsys.readouterr().err


async def fails_to_start(config: OperatorConfig) -> int:
    raise AuthenticationUnavailable("no token in /sa:\nmount it")
