"""What can be told without a server; with one: tests/integration/test_check.py."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from memcached_operator.check.check_command import CheckOptions, check, run
from memcached_operator.check.findings import Verdict
from memcached_operator.settings_schema import SCHEMA

pytestmark = pytest.mark.usefixtures("no_variables")


def options(kubeconfig: Path, **more: object) -> CheckOptions:
    settings = SCHEMA.load({"kubeconfig": str(kubeconfig), "request_timeout_s": 5.0}, {})
    return CheckOptions(settings, **more)  # type: ignore[arg-type]


@pytest.fixture
def nobody_there(tmp_path: Path) -> Path:
    """The kubeconfig of a server that does not listen."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    path = tmp_path / "config"
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    context = {"name": "far", "context": {"cluster": "c"}}
    path.write_text(json.dumps({"current-context": "far", "clusters": [cluster], "contexts": [context]}))
    return path


async def test_a_server_that_is_not_reached_is_named_with_how_it_was_found(nobody_there: Path) -> None:
    (found,) = await check(options(nobody_there))
    assert (found.check, found.verdict) == ("server", Verdict.WRONG)
    assert found.text.startswith("http://127.0.0.1:")
    assert f"by context far of {nobody_there}" in found.text
    assert "check that the cluster is up" in found.remedy


@pytest.mark.parametrize(
    ("content", "words"),
    [("a: [", "not valid YAML"), ("current-context: gone\n", "no such context exists"), (None, "no such file")],
)
async def test_a_bad_kubeconfig_is_told_with_its_remedy(tmp_path: Path, content: str | None, words: str) -> None:
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)
    (found,) = await check(options(path))
    assert (found.check, found.verdict) == ("server", Verdict.WRONG)
    assert words in found.text


def test_what_is_not_well_makes_the_exit_code_1(nobody_there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(options(nobody_there, output="json")) == 1
    assert json.loads(capsys.readouterr().out)["ok"] is False
    assert run(options(nobody_there)) == 1
    output = capsys.readouterr().out
    assert output.startswith("wrong    server      http://127.0.0.1:")
    assert output.endswith("1 check: 1 not ok\n")
