"""Clients as they are published follow an endpoint from two servers to three and back, under load and without an error.

Each is a small program in `clients/`. Its servers are real ones, and the endpoint is a process, as in its pod.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from lab.cache import BuildError
from lab.programs.go import compile_module
from memcached_operator.discovery.discovery_protocol import ITEM
from memcached_operator.features.discovery.cluster_list import NO_CLUSTER, ClusterServers, next_cluster
from operator_runtime.testing.waiting import eventually, until
from tests.cluster import REQUIRED_VARIABLE
from tests.unit.kubectl_memcached.owners.record import HERE as GO_MODULE
from tests.unit.kubectl_memcached.real_servers import RealServers, real_servers

CLIENTS: Final = Path(__file__).with_name("clients")
JAVA_CLIENT: Final = "com.amazonaws:elasticache-java-cluster-client:1.2.0"
JAVA_SHA256: Final = "0cf3b2f6235049542fba6dc9023b1a756cc5f309cc081dd29ad7633813d6c604"
Command = Sequence[str | Path]


def _run(*command: str | Path, folder: Path) -> None:
    if shutil.which(command[0]) is None:
        raise BuildError(f"no {command[0]} on the PATH")
    if subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False).returncode != 0:
        raise BuildError(f"{command[0]} failed, see above")


def thanos(folder: Path) -> Command:
    """Thanos' client, whose module is that of another test."""
    compile_module(GO_MODULE, folder / "follow", package=str(CLIENTS / "follow.go"), stamps={})
    return [folder / "follow"]


def memcached_elasticache(folder: Path) -> Command:
    """memcached-elasticache of npm, by its lock file."""
    for name in ("package.json", "package-lock.json", "follow.js"):
        shutil.copy(CLIENTS / name, folder)
    _run("npm", "ci", "--ignore-scripts", folder=folder)
    return ["node", folder / "follow.js"]


def aws_java(folder: Path) -> Command:
    """AWS' client for Java, one archive that needs no other."""
    # A JDK, which runs a source.
    _run("javac", "--version", folder=folder)
    plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
    _run("mvn", "-B", "-q", plugin, f"-Dartifact={JAVA_CLIENT}", f"-DoutputDirectory={folder}", folder=folder)
    (archive,) = folder.glob("*.jar")
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == JAVA_SHA256
    return ["java", "-cp", archive, CLIENTS / "Follow.java"]


class _Published:
    """The list, as the operator makes it of servers, in the endpoint's file and as the item in each server."""

    def __init__(self, file: Path, host: str) -> None:
        self._file = file
        self._host = host
        self._last = NO_CLUSTER

    def publish(self, *servers: RealServers) -> None:
        """Have so many in the list: the first at 127.0.0.1, and the others at ::1."""
        first, *others = (port for each in servers for port in each.ports.values())
        listed = [f"127.0.0.1:{first}", *(f"{self._host}:{port}" for port in others)]
        addresses = {"localhost": "::1", "::1": "::1"}
        self._last = next_cluster(self._last, True, ClusterServers(listed, addresses=addresses, now_s=1))
        text = str(self._last).encode()
        new = self._file.with_suffix(".new")
        new.write_bytes(text)
        new.rename(self._file)
        for each in servers:
            for pod in each.ports:
                each.answer(pod, b"set %b 0 0 %d noreply\r\n%b\r\n" % (ITEM.encode(), len(text), text))


@contextmanager
def endpoint(file: Path) -> Iterator[str]:
    """A process that gives the list in a file, by its host and port."""
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    command = [sys.executable, "-m", "memcached_operator", "discovery", "-f", str(file), "--port", str(port)]
    with subprocess.Popen(command) as process:
        try:
            until("the endpoint does not listen", lambda: _listens(port))
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def _reads(servers: RealServers) -> list[int]:
    return [servers.stat(pod, "cmd_get") for pod in servers.ports]


def _read_anew(servers: RealServers) -> None:
    """Wait until each of them has been asked for some rounds."""
    before = _reads(servers)
    eventually(lambda: _reads(servers), lambda now: all(new > old + 200 for old, new in zip(before, now, strict=True)))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("client", "host"),
    # Thanos puts no brackets around an address of IPv6: such servers need names.
    [(thanos, "localhost"), (memcached_elasticache, "[::1]"), (aws_java, "[::1]")],
)
def test_a_client_follows_the_list_without_an_error(
    client: Callable[[Path], Command], host: str, tmp_path: Path
) -> None:
    try:
        command = client(tmp_path)
    except BuildError as error:
        if os.environ.get(REQUIRED_VARIABLE) or os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    published = _Published(tmp_path / "cluster", host)
    failures = tmp_path / "failures"
    lost = ""
    with real_servers(2, "-l", "::1") as lasting:
        published.publish(lasting)
        with (
            endpoint(tmp_path / "cluster") as address,
            failures.open("w") as output,
            subprocess.Popen([*command, address], stdin=subprocess.PIPE, stdout=output, text=True) as loading,
        ):
            try:
                _read_anew(lasting)
                with real_servers(1, "-l", "::1") as third:
                    published.publish(lasting, third)
                    _read_anew(third)
                    published.publish(lasting)

                    def is_left() -> bool:
                        before = _reads(third)
                        _read_anew(lasting)
                        return _reads(third) == before

                    until("a client still asks a server that left the list", is_left)
                    if client is aws_java:
                        # It can lose the request that it has under way when it polls first, or takes another list.
                        lost = failures.read_text()
                _read_anew(lasting)
                loading.communicate("\n", timeout=60)
            finally:
                loading.kill()
    assert (loading.returncode, failures.read_text()) == (0, lost)
    assert len(lost.splitlines()) <= 3
