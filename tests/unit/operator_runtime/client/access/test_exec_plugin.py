"""Exec plugins: real small programs, what they are told, what they answer, and how they fail."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from operator_runtime.client.access.exec_plugin import API_VERSIONS, ExecPlugin
from operator_runtime.client.errors import AuthenticationUnavailable
from operator_runtime.testing.waiting import async_until
from tests.unit.operator_runtime.client.access.auth_support import Authority

DEADLINE_S = 60.0
SECRET = "hunter2hunter2"
ENDLESS = "a plugin that writes without end"
V1, V1BETA1 = API_VERSIONS


def plugin(program: str, **options: object) -> ExecPlugin:
    """A plugin that runs `program` in this Python."""
    base = ExecPlugin(
        name="exec plugin test", command=sys.executable, arguments=("-S", "-c", program), environ=dict(os.environ)
    )
    return replace(base, **options)  # type: ignore[arg-type]


def credential(version: str = V1, kind: str = "ExecCredential", **status: object) -> str:
    return json.dumps({"apiVersion": version, "kind": kind, "status": status})


def answering(answer: str, **options: object) -> ExecPlugin:
    return plugin(f"print({answer!r})", **options)


async def test_a_token_and_its_expiry_are_read() -> None:
    answer = credential(token=SECRET, expirationTimestamp="1970-01-01T01:00:00.5+00:30")
    identity = await answering(answer).fetch()
    assert identity.headers == {"Authorization": f"Bearer {SECRET}"}
    assert identity.expires_at_s == 1800.5
    assert identity.certificate is None


async def test_a_client_certificate_may_come_alone_or_with_a_token() -> None:
    pair = Authority().issue("jane")
    status = {"clientCertificateData": pair.chain.decode(), "clientKeyData": pair.key.decode()}
    alone = await answering(credential(**status)).fetch()
    assert alone.headers == {}
    assert alone.certificate is not None
    assert (alone.certificate.chain, alone.certificate.key) == (pair.chain, pair.key)
    assert alone.expires_at_s is None
    both = await answering(credential(**status, token="t")).fetch()
    assert both.headers == {"Authorization": "Bearer t"}
    assert both.certificate == alone.certificate


async def test_the_plugin_is_told_that_it_may_not_ask_and_what_the_cluster_is() -> None:
    program = (
        "import json, os, sys; info = json.loads(os.environ['KUBERNETES_EXEC_INFO']);"
        "token = json.dumps([info, os.environ['EXTRA'], sys.stdin.isatty()]).replace(' ', '');"
        "print(json.dumps({'apiVersion': info['apiVersion'], 'kind': info['kind'], 'status': {'token': token}}))"
    )
    options = {"api_version": V1BETA1, "cluster_info": lambda: {"server": "https://a"}}
    identity = await plugin(program, environ={**os.environ, "EXTRA": "more"}, **options).fetch()
    info, extra, _ = json.loads(identity.headers["Authorization"].removeprefix("Bearer "))
    spec = {"interactive": False, "cluster": {"server": "https://a"}}
    assert info == {"apiVersion": V1BETA1, "kind": "ExecCredential", "spec": spec}
    assert extra == "more"


async def test_a_plugin_without_a_terminal_reads_an_empty_standard_input() -> None:
    program = f"import sys; text = sys.stdin.read(); assert text == '', text; print({credential(token='t')!r})"
    async with asyncio.timeout(DEADLINE_S):
        assert (await plugin(program).fetch()).headers == {"Authorization": "Bearer t"}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("", "its answer is not an ExecCredential"),
        (f"token: {SECRET}", "its answer is not an ExecCredential"),
        ("{}", f"not an ExecCredential of {V1}"),
        (credential(V1BETA1, token=SECRET), f"ExecCredential of {V1}"),
        (credential(kind="Status", token=SECRET), f"ExecCredential of {V1}"),
        (credential(), "neither a token nor a client certificate"),
        (credential(token=[SECRET]), r"Expected `str \| null`"),
        (credential(token=f"{SECRET}\n"), "white space"),
        (credential(clientKeyData=SECRET), "without the other"),
        (f'{{"status": {{"token": "{SECRET}\udcff"}}}}', "not an ExecCredential"),
        (f'{{"status": {{"token": "{SECRET}\\ud800"}}}}', "not an ExecCredential"),
        ('{"x": ' * 100_000, "not an ExecCredential"),
        (ENDLESS, "its answer is longer than 1 MiB"),
        (credential(token=SECRET, expirationTimestamp="soon"), "expirationTimestamp"),
        (credential(token=SECRET, expirationTimestamp="2030-01-01T00:00:00"), "expirationTimestamp"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_explained_and_never_quoted(
    answer: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "answer").write_bytes(answer.encode(errors="surrogateescape"))
    command, arguments = ("cat", (str(tmp_path / "answer"),)) if answer != ENDLESS else ("yes", ())
    with pytest.raises(AuthenticationUnavailable, match=message) as failure:
        await replace(plugin(""), command=command, arguments=arguments).fetch()
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"command": "a\0b"}, "embedded null byte"),
        ({"arguments": ("a\0b",)}, "embedded null byte"),
        ({"arguments": ("\ud800",)}, "half of a character"),
        ({"environ": {"A": "a\0b"}}, "embedded null byte"),
        ({"environ": {"A=B": SECRET}}, "illegal environment variable name"),
        ({"environ": {"A": f"{SECRET}\ud800"}}, "half of a character"),
    ],
)
async def test_words_that_no_process_can_be_given_are_a_failure_that_does_not_quote_them(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(AuthenticationUnavailable) as failure:
        await plugin("", **options).fetch()
    assert str(failure.value) == f"exec plugin test cannot be started ({message}); correct `command`, `args` and `env`"


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


async def all_ended(ids: list[int]) -> None:
    assert len(ids) == 2
    await async_until("the plugin or its child runs", lambda: all(has_ended(pid) for pid in ids))


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
    await async_until("the plugin has not started its child", path.exists)
    return [int(part) for part in path.read_bytes().split()]  # noqa: ASYNC240


@pytest.mark.parametrize("of_the_loop", [False, True])
async def test_a_cancelled_run_or_the_end_of_the_event_loop_leaves_neither_the_plugin_nor_its_child(
    tmp_path: Path, of_the_loop: bool
) -> None:
    task = asyncio.create_task(plugin(HANGING.format(path=str(tmp_path / "ids"))).fetch())
    ids = await written_ids(tmp_path / "ids")
    if of_the_loop:
        # As asyncio.run does it, which cancels in no order: here what the run has begun comes before the run itself.
        for each in asyncio.all_tasks() - {task, asyncio.current_task()}:
            each.cancel()
    task.cancel()
    await asyncio.wait({task}, timeout=DEADLINE_S)
    assert of_the_loop or task.cancelled()
    await all_ended(ids)


@pytest.mark.parametrize("forbidden", [True, False])
async def test_a_plugin_that_hangs_is_killed_at_its_deadline_and_where_it_may_not_be_it_fails_all_the_same(
    monkeypatch: pytest.MonkeyPatch, forbidden: bool
) -> None:
    kill_group = os.killpg

    def kill(group: int, signal_number: int) -> None:
        kill_group(group, signal_number)
        if forbidden:
            raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "killpg", kill)
    with pytest.raises(AuthenticationUnavailable, match="did not answer within 0 s; run it by hand"):
        await plugin("import signal; signal.pause()", timeout_s=0.05).fetch()


# Starts a child in a session of its own, which no kill of ours reaches and which keeps standard output open until the
# test closes the other end of the pipe `{path}`.
OUTLIVED = """if True:
    import subprocess, sys
    subprocess.Popen(["cat", {path!r}], start_new_session=True, stdin=subprocess.DEVNULL)
    print({answer!r}, flush=True)
    if {hangs}:
        import signal
        signal.pause()
"""


class PluginWithChild:
    """A plugin whose child outlives it until `close`."""

    def __init__(self, path: Path, *, hangs: bool) -> None:
        os.mkfifo(path)
        self._path = path
        self._end: int | None = None
        self.plugin = plugin(OUTLIVED.format(path=str(path), answer=credential(token="t"), hangs=hangs))

    def child_started(self) -> bool:
        with suppress(OSError):  # until it reads
            self._end = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK)
        return self._end is not None

    def close(self) -> None:
        assert self._end is not None
        os.close(self._end)


async def test_a_child_that_keeps_standard_output_open_after_the_kill_holds_up_nobody(tmp_path: Path) -> None:
    with_child = PluginWithChild(tmp_path / "end", hangs=True)
    task = asyncio.create_task(with_child.plugin.fetch())
    await async_until("its child has not started", with_child.child_started)
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=DEADLINE_S)
    with_child.close()
    assert task in done


async def test_the_answer_of_a_plugin_is_whole_when_it_ends_although_its_child_keeps_standard_output_open(
    tmp_path: Path,
) -> None:
    with_child = PluginWithChild(tmp_path / "end", hangs=False)
    task = asyncio.create_task(with_child.plugin.fetch())
    await async_until("its child has not started", with_child.child_started)
    done, _ = await asyncio.wait({task}, timeout=DEADLINE_S)
    with_child.close()
    assert task in done
    assert (await task).headers == {"Authorization": "Bearer t"}


def test_no_repr_shows_arguments_or_variables() -> None:
    assert SECRET not in repr(plugin(SECRET, environ={"AWS_SECRET_ACCESS_KEY": SECRET}))
