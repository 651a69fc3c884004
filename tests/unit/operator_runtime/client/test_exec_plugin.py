"""Exec plugins: real small programs, what they are told, what they answer, and how they fail."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from operator_runtime.client.errors import AuthenticationUnavailable
from operator_runtime.client.exec_plugin import API_VERSIONS, ExecPlugin
from tests.unit.operator_runtime.client.auth_support import make_authority

DEADLINE_S = 20.0
SECRET = "hunter2hunter2"
V1, V1BETA1 = API_VERSIONS


def plugin(program: str, **options: object) -> ExecPlugin:
    """A plugin that runs `program` in this Python."""
    base = ExecPlugin(
        name="exec plugin test", command=sys.executable, arguments=("-S", "-c", program), environ=dict(os.environ)
    )
    return replace(base, **options)  # type: ignore[arg-type]


def answering(status: Mapping[str, object] | None, **options: object) -> ExecPlugin:
    answer = {"apiVersion": V1, "kind": "ExecCredential", "status": status}
    return plugin(f"print({json.dumps(answer)!r})", **options)


async def test_a_token_and_its_expiry_are_read() -> None:
    identity = await answering({"token": SECRET, "expirationTimestamp": "1970-01-01T01:00:00.5+00:30"}).fetch()
    assert identity.headers == {"Authorization": f"Bearer {SECRET}"}
    assert identity.expires_at_s == 1800.5
    assert identity.certificate is None


async def test_a_client_certificate_may_come_alone_or_with_a_token() -> None:
    pair = make_authority().issue("jane")
    status = {"clientCertificateData": pair.chain.decode(), "clientKeyData": pair.key.decode()}
    alone = await answering(status).fetch()
    assert alone.headers == {}
    assert alone.certificate is not None
    assert (alone.certificate.chain, alone.certificate.key) == (pair.chain, pair.key)
    assert alone.expires_at_s is None
    both = await answering({**status, "token": "t"}).fetch()
    assert both.headers == {"Authorization": "Bearer t"}
    assert both.certificate == alone.certificate


@pytest.mark.parametrize("interactive", [True, False])
async def test_the_plugin_is_told_whether_it_may_ask_and_what_the_cluster_is(interactive: bool) -> None:
    program = (
        "import json, os, sys; info = json.loads(os.environ['KUBERNETES_EXEC_INFO']);"
        "token = json.dumps([info, os.environ['EXTRA'], sys.stdin.isatty()]).replace(' ', '');"
        "print(json.dumps({'apiVersion': info['apiVersion'], 'kind': info['kind'], 'status': {'token': token}}))"
    )
    identity = await plugin(
        program,
        api_version=V1BETA1,
        environ={**os.environ, "EXTRA": "more"},
        interactive=interactive,
        cluster_info=lambda: {"server": "https://a"},
    ).fetch()
    info, extra, _ = json.loads(identity.headers["Authorization"].removeprefix("Bearer "))
    assert info == {
        "apiVersion": V1BETA1,
        "kind": "ExecCredential",
        "spec": {"interactive": interactive, "cluster": {"server": "https://a"}},
    }
    assert extra == "more"


async def test_a_plugin_without_a_terminal_reads_an_empty_standard_input() -> None:
    program = (
        "import sys; text = sys.stdin.read(); assert text == '', text;"
        f'print(\'{{"apiVersion": "{V1}", "kind": "ExecCredential", "status": {{"token": "t"}}}}\')'
    )
    async with asyncio.timeout(DEADLINE_S):
        assert (await plugin(program).fetch()).headers == {"Authorization": "Bearer t"}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("", "its answer is not an ExecCredential"),
        (f"token: {SECRET}", "its answer is not an ExecCredential"),
        (f'["{SECRET}"]', "Expected `object`, got `array`"),
        ("{}", f"not an ExecCredential of {V1}"),
        ({"apiVersion": V1BETA1, "kind": "ExecCredential", "status": {"token": SECRET}}, f"ExecCredential of {V1}"),
        ({"apiVersion": V1, "kind": "Status", "status": {"token": SECRET}}, f"ExecCredential of {V1}"),
        ({"apiVersion": V1, "kind": "ExecCredential"}, "neither a token nor a client certificate"),
        ({"apiVersion": V1, "kind": "ExecCredential", "status": {"token": ""}}, "neither a token nor"),
        ({"apiVersion": V1, "kind": "ExecCredential", "status": {"token": [SECRET]}}, r"Expected `str \| null`"),
        ({"apiVersion": V1, "kind": "ExecCredential", "status": {"token": f"{SECRET}\n"}}, "white space"),
        ({"apiVersion": V1, "kind": "ExecCredential", "status": {"clientKeyData": SECRET}}, "without the other"),
        (
            {"apiVersion": V1, "kind": "ExecCredential", "status": {"token": SECRET, "expirationTimestamp": "soon"}},
            "expirationTimestamp",
        ),
        (
            {
                "apiVersion": V1,
                "kind": "ExecCredential",
                "status": {"token": SECRET, "expirationTimestamp": "2030-01-01T00:00:00"},
            },
            "expirationTimestamp",
        ),
    ],
)
async def test_an_answer_that_cannot_be_used_is_explained_and_never_quoted(
    answer: str | dict[str, object], said: str
) -> None:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    with pytest.raises(AuthenticationUnavailable, match=said) as failure:
        await plugin(f"print({text!r})").fetch()
    assert str(failure.value).startswith("exec plugin test: ")
    assert SECRET not in str(failure.value)


async def test_an_exit_code_is_told_and_standard_error_is_left_to_the_user(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AuthenticationUnavailable, match="exec plugin test failed with exit code 3"):
        await plugin(f"import sys; print('{SECRET}'); print('log in first', file=sys.stderr); sys.exit(3)").fetch()
    assert capfd.readouterr().err == "log in first\n"


async def test_a_missing_command_shows_the_install_hint_and_a_forbidden_one_the_reason(tmp_path: Path) -> None:
    missing = replace(plugin(""), command="no-such-plugin-here", install_hint="Get it from your cloud.\n")
    with pytest.raises(AuthenticationUnavailable, match=r"no command 'no-such-plugin-here'. Get it from your cloud.$"):
        await missing.fetch()
    with pytest.raises(AuthenticationUnavailable, match="install it, or correct `command` and PATH"):
        await replace(missing, install_hint="").fetch()
    (tmp_path / "plugin").write_text("#!/bin/sh\n")
    with pytest.raises(AuthenticationUnavailable, match=r"cannot be started \(Permission denied\)"):
        await replace(missing, command=str(tmp_path / "plugin")).fetch()


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


async def comes_true(condition: Callable[[], bool]) -> bool:
    """Whether it does within the deadline: other processes can only be polled."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        if condition():
            return True
        await asyncio.sleep(0.01)
    return False


# Starts a child that keeps standard output open, writes both ids, and hangs.
HANGING = """if True:
    import os, pathlib, signal, subprocess, sys
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    part = pathlib.Path({path!r} + ".part")
    part.write_text(f"{{os.getpid()}} {{child.pid}}")
    part.rename({path!r})
    signal.pause()
"""


async def written_ids(path: Path) -> list[int]:
    assert await comes_true(path.exists)
    return [int(part) for part in path.read_bytes().split()]  # noqa: ASYNC240


async def test_a_cancelled_run_leaves_neither_the_plugin_nor_its_child(tmp_path: Path) -> None:
    task = asyncio.create_task(plugin(HANGING.format(path=str(tmp_path / "ids"))).fetch())
    ids = await written_ids(tmp_path / "ids")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(ids) == 2
    for pid in ids:
        assert await comes_true(partial(has_ended, pid))


@pytest.mark.parametrize("interactive", [True, False])
async def test_a_plugin_that_hangs_is_killed_at_its_deadline(interactive: bool) -> None:
    with pytest.raises(AuthenticationUnavailable, match="did not answer within 0 s; run it by hand"):
        await plugin("import signal; signal.pause()", timeout_s=0.05, interactive=interactive).fetch()


def test_no_repr_shows_arguments_or_variables() -> None:
    assert SECRET not in repr(plugin(SECRET, environ={"AWS_SECRET_ACCESS_KEY": SECRET}))
