"""The script that takes a memcached's items over a restart, run by a shell, with a real memcached; and the pod."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from memcached_operator.api.v1alpha1 import Auth, PodTemplate, Spec, Tls
from memcached_operator.core.objects import labels
from memcached_operator.core.objects.pod_template import scripts_of, template
from memcached_operator.core.objects.workload_types import Container, PodSpec
from operator_runtime.testing.waiting import until
from tests.shells import SHELLS, words_of

MEMCACHED = shutil.which("memcached")
needs_memcached = pytest.mark.skipif(MEMCACHED is None, reason="no memcached on the PATH")
KEEPS_ROOT = ("-u", "root") if os.getuid() == 0 else ()
WARM = Spec(workload="StatefulSet", warmRestart=True)


class Server:
    """A pod with a volume for items, and its container, which is started again and again."""

    def __init__(self, folder: Path, shell: str) -> None:
        self.items, self.requested = folder / "items", folder / "asked"
        self._socket, self._log = folder / "socket", folder / "log"
        self._shell = words_of(shell)
        self.process: subprocess.Popen[bytes] | None = None
        self.requested.write_text("")

    @property
    def meta(self) -> Path:
        return self.items.with_name("items.meta")

    @property
    def _up(self) -> Path:
        return self.items.with_name("items.up")

    @property
    def is_up(self) -> bool:
        """Whether the fake has said its process."""
        return self._up.is_file() and self._up.read_text().endswith("\n")

    @property
    def logged(self) -> str:
        return self._log.read_text()

    def start(self, *options: str) -> None:
        assert MEMCACHED is not None
        self._socket.unlink(missing_ok=True)
        memory = ("-m", "64", *options, *KEEPS_ROOT, "-e", str(self.items))
        self.start_command(MEMCACHED, "-s", str(self._socket), *memory)

    def start_command(self, *command: str) -> None:
        """Start another program in the place of memcached."""
        here = dict(scripts_of(WARM))["warm_restart.sh"]
        assert "every_s=5" in here
        here = here.replace("every_s=5", "every_s=0.1")
        with self._log.open("w") as log:
            words = [*self._shell, "-c", here, "warm_restart.sh", str(self.items), str(self.requested), *command]
            self.process = subprocess.Popen(words, stderr=log)

    def start_fake(self, commands: str) -> tuple[int, int]:
        """The same with a shell that runs these once it runs; the container's process and its own."""
        self.start_command("sh", "-c", commands, "memcached", str(self.items))
        assert self.process is not None
        until("it does not run", lambda: self.is_up)
        return self.process.pid, int(self._up.read_text())

    def serves(self) -> None:
        until("memcached does not listen", lambda: self._query(b"version") is not None)

    def begin(self) -> None:
        self.start()
        self.serves()

    def stop(self) -> int:
        """As the kubelet stops a container."""
        assert self.process is not None
        self.process.terminate()
        return self.ended()

    def ended(self) -> int:
        assert self.process is not None
        return self.process.wait(60)

    def close(self) -> None:
        """End all of it at once."""
        assert self.process is not None
        try:
            for each in self.children():
                with suppress(ProcessLookupError):  # it may be ending as the shell's child
                    os.kill(each, signal.SIGKILL)
        finally:
            self.process.kill()
            self.process.wait()

    def memcached(self) -> int:
        (child,) = (each for each in self.children() if _name(each) == "memcached")
        return child

    def children(self) -> list[int]:
        assert self.process is not None
        pid = self.process.pid
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def fill(self) -> None:
        for each in range(100):
            assert self._query(b"set key%d 0 0 5\r\nvalue" % each) == b"STORED\r\n"

    def hits(self) -> int:
        return sum(self._query(b"get key%d" % each) != b"END\r\n" for each in range(100))

    def _query(self, command: bytes) -> bytes | None:
        with closing(socket.socket(socket.AF_UNIX)) as connection:
            try:
                connection.connect(str(self._socket))
            except (FileNotFoundError, ConnectionRefusedError):
                return None
            connection.sendall(command + b"\r\n")
            received = b""
            while not received.endswith(b"\r\n") or (received.startswith(b"VALUE") and b"END\r\n" not in received):
                if not (part := connection.recv(65536)):
                    return None
                received += part
        return received


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.fixture(params=SHELLS)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path, request.param)
    yield server
    if server.process is not None and server.process.poll() is None:
        server.close()


@needs_memcached
def test_a_server_that_is_stopped_comes_back_with_its_items(server: Server) -> None:
    server.begin()
    server.fill()
    stopped = time.time()
    assert server.stop() == 0
    server.begin()
    assert time.time() > int(stopped) + 1  # in the same second memcached would begin without
    assert server.hits() == 100
    assert "items are lost" not in server.logged
    server.requested.write_text("monday")
    assert server.ended() == 0, "a restart that is asked for ends the container, too"
    server.begin()
    assert server.hits() == 100


@needs_memcached
def test_one_that_is_killed_begins_without_items_and_says_so(server: Server) -> None:
    server.begin()
    server.fill()
    os.kill(server.memcached(), signal.SIGKILL)
    assert server.ended() == 128 + signal.SIGKILL
    server.begin()
    assert server.hits() == 0
    assert "The items are lost: the former memcached ended before it could write them out." in server.logged


@needs_memcached
@pytest.mark.parametrize("tear", [lambda _: b"", lambda whole: whole[:-8]], ids=["empty", "torn"])
def test_what_was_not_written_to_its_end_is_put_away(server: Server, tear: Callable[[bytes], bytes]) -> None:
    server.begin()
    server.fill()
    server.stop()
    server.meta.write_bytes(tear(server.meta.read_bytes()))
    server.begin()
    assert server.hits() == 0
    assert "The items are lost: the former memcached did not finish to write" in server.logged


@needs_memcached
def test_after_one_start_that_fails_on_what_was_written_the_next_one_begins_without_items(server: Server) -> None:
    server.begin()
    server.stop()
    server.meta.write_bytes(b"\0" * 100 + b"\n")
    server.start()
    assert server.ended() > 128
    assert "the next one begins without items" in server.logged
    server.begin()


@needs_memcached
def test_a_start_that_fails_for_another_reason_costs_no_item(server: Server) -> None:
    server.begin()
    server.fill()
    server.stop()
    server.start("--no-such-option")
    assert 0 < server.ended() < 128
    server.begin()
    assert server.hits() == 100


ENDS_IN_ORDER = """trap 'echo whole >"$1.meta"; exit 0' USR1; echo $$ >"$1.up"; while :; do sleep 0.01; done"""
TAKES_NO_SIGNAL_YET = """echo $$ >"$1.up"; exec sleep 60"""


@pytest.mark.parametrize("first", ["server", "shell"])
def test_a_server_that_is_just_ending_as_the_container_is_stopped_keeps_its_items(server: Server, first: str) -> None:
    """The shell has both to see at once: that its child has ended, and the kubelet's signal."""
    shell, child = server.start_fake(ENDS_IN_ORDER)
    os.kill(shell, signal.SIGSTOP)
    until("it does not stop", lambda: _state(shell) == "T")
    if first == "shell":
        os.kill(shell, signal.SIGTERM)
    os.kill(child, signal.SIGUSR1)
    until("it does not end", lambda: _state(child) == "Z")
    os.kill(shell, signal.SIGTERM)
    os.kill(shell, signal.SIGCONT)
    assert server.ended() == 0
    assert server.meta.read_text() == "whole\n"
    assert "begins without items" not in server.logged


@pytest.mark.parametrize("by", ["the kubelet", "what asks for a restart"])
def test_one_that_is_stopped_before_it_could_take_the_signal_keeps_its_items(server: Server, by: str) -> None:
    server.meta.write_text("whole\n")
    server.items.write_text("")
    shell, _ = server.start_fake(TAKES_NO_SIGNAL_YET)
    if by == "the kubelet":
        os.kill(shell, signal.SIGTERM)
    else:
        server.requested.write_text("monday")
    server.ended()
    assert server.meta.read_text() == "whole\n"


def test_a_restart_that_is_asked_for_before_the_server_runs_is_not_lost(server: Server) -> None:
    server.meta.write_text("whole\n")
    server.items.write_text("")
    server.start_command("sh", "-c", TAKES_NO_SIGNAL_YET, "memcached", str(server.items))
    until("it does not wait for another second", lambda: server.children() != [])
    assert not server.is_up
    server.requested.write_text("monday")
    assert server.ended() == 128 + signal.SIGUSR1
    assert server.meta.read_text() == "whole\n"


def test_the_end_of_a_server_that_cannot_be_started_is_told_as_it_is(server: Server) -> None:
    server.start_command("/no/such/program")
    assert server.ended() == 127


def pod(spec: Spec, image: str = "memcached:1", restart: str = "") -> tuple[PodSpec, dict[str, str]]:
    made = template("cache", image, None, spec, restart).template
    assert made.spec is not None
    assert made.metadata is not None
    assert made.metadata.annotations is not None
    return made.spec, made.metadata.annotations


def container(spec: Spec) -> Container:
    (found,) = pod(spec)[0].containers or ()
    return found


@pytest.mark.parametrize(
    ("memory", "extra", "file_mib", "limit"),
    [
        ("64Mi", (), 102, "103Mi"),
        ("1Gi", (), 1062, "1063Mi"),
        ("985Mi", (), 1023, "1Gi"),
        ("64Mi", ("-f", "1.05"), 126, "127Mi"),
    ],
)
def test_the_file_has_a_page_for_each_size_class_besides_the_memory_and_the_volume_what_is_written_at_the_end(
    memory: str, extra: tuple[str, ...], file_mib: int, limit: str
) -> None:
    spec = WARM.model_copy(update={"memory": memory, "extraArgs": extra})
    command = container(spec).command or ()
    assert command[command.index("-m") + 1] == str(file_mib)
    items, *_ = pod(spec)[0].volumes or ()
    assert items.emptyDir is not None
    assert (items.emptyDir.medium, items.emptyDir.sizeLimit) == ("Memory", limit)
    # The file is in the place of what memcached would have for items without it.
    assert container(spec).resources == container(spec.model_copy(update={"warmRestart": False})).resources


def test_the_arguments_and_the_secrets_are_those_of_any_server() -> None:
    spec = Spec(workload="StatefulSet", extraArgs=("-vv",), tls=Tls(secretName="a"), auth=Auth(secretName="b"))
    plain, warm = container(spec), container(spec.model_copy(update={"warmRestart": True}))
    assert plain.command is not None
    assert warm.command is not None
    assert warm.command[0] == "sh"
    assert warm.command[-2] == "-e"
    assert warm.command[4:6] == ("memcached", "-m")
    assert warm.command[7:-2] == plain.command[3:]
    assert warm.args == plain.args
    assert warm.lifecycle == plain.lifecycle
    assert [each.name for each in warm.volumeMounts or ()][:2] == ["tls", "auth"]


@pytest.mark.parametrize(
    ("other", "in_place"),
    [
        (pod(WARM, "memcached:2"), True),
        (pod(WARM, restart="monday"), True),
        (pod(WARM.model_copy(update={"memory": "128Mi"})), False),
        (pod(WARM.model_copy(update={"threads": 2})), False),
        (pod(WARM.model_copy(update={"podTemplate": PodTemplate(spec={"hostNetwork": True})})), False),
        (pod(Spec(workload="StatefulSet")), False),
    ],
    ids=["image", "restart", "memory", "threads", "podTemplate", "cold"],
)
def test_an_image_and_a_restart_leave_all_else_as_it_is(other: tuple[PodSpec, dict[str, str]], in_place: bool) -> None:
    before, after = pod(WARM)[1], other[1]
    assert before[labels.TEMPLATE_ANNOTATION] != after[labels.TEMPLATE_ANNOTATION]
    assert (before[labels.WARM_ANNOTATION] == after.get(labels.WARM_ANNOTATION)) is in_place
