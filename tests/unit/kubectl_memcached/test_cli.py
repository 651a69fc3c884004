"""Command line of the plugin: what it says of arguments that make no sense, and of a cluster that is not there."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from kubectl_memcached.cli import COMMANDS, main

_HEAVY = ("aiohttp", "asyncio", "msgspec", "orjson", "pydantic", "yaml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tpo"], "unknown command 'tpo'; did you mean top?"),
        (["-n", "shop", "top"], "flags follow the command"),
        (["top"], "NAME"),
        (["top", "cache", "--fro", "1s"], "unknown flag '--fro'; did you mean --for?"),
        (["top", "cache", "--for", "soon"], "--for: 'soon' is not allowed, it must be a time such as 10s or 2m"),
        (["top", "cache", "--for", "0s"], "--for: '0s'"),
        (["top", "cache", "--by", "size"], "it must be one of: key, prefix, client"),
        (["big", "cache", "--count", "0"], "a number from 1 to 1000"),
        (["big", "cache", "--count", "9" * 5000], "a number from 1 to 1000"),
        (["big", "cache", "--separator", ""], "--separator must not be empty"),
        (["owner", "cache", "key"], "owner needs --client, one of: pymemcache, dskit"),
        (["owner", "cache", "key", "--client", "x"], "--client: 'x' is not allowed"),
        (["describe", "../x"], "name: '../x' is not allowed"),
        (["list", "-n", "A/b"], "namespace: 'A/b' is not allowed"),
        (["list", "-o", "yaml"], "--output: 'yaml' is not allowed, it must be one of: text, json"),
    ],
)
def test_arguments_that_make_no_sense_are_told(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_a_key_that_is_none_is_told_before_anything_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["get", "cache", "x" * 251]) == 1
    assert "1 to 250 bytes" in capsys.readouterr().err


def test_where_no_kubeconfig_is_that_is_told_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert main(["list"]) == 1
    assert "Give --kubeconfig PATH, or set KUBECONFIG" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert f"kubectl memcached {name}" in capsys.readouterr().out


def test_the_wheel_brings_the_program_by_the_name_that_kubectl_looks_for() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    assert project["project"]["scripts"]["kubectl-memcached"] == "kubectl_memcached.cli:main"
    assert "kubectl_memcached" in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


def test_help_loads_nothing_that_takes_long() -> None:
    program = (
        f"import sys, kubectl_memcached.cli as c; c.main(['--help']); sys.exit(sum(x in sys.modules for x in {_HEAVY}))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, stdout=subprocess.DEVNULL).returncode == 0


def test_no_command_loads_pydantic() -> None:
    program = "import sys, kubectl_memcached.flush, kubectl_memcached.describe; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
