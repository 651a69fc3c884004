"""`kubectl memcached` on a real node, as kubectl finds it: real servers under load, through API server and kubelet."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from io import BufferedRWPair
from pathlib import Path
from typing import Any

import pytest

from lab.node.node import Node
from lab.programs import kubernetes
from operator_runtime.testing.waiting import eventually, until
from tests.certificates import Authority, secret
from tests.e2e.node_cluster import MEMCACHED_PORT, PROJECT, fresh_namespace, pod_address
from tests.integration.conftest import memcached
from tests.kubectl_in_namespace import Kubectl

NAME, NAMESPACE, SIZE, KEYS = "cache", "e2e-plugin", 3, 100_000
HOT, BIG = "user:004242", "page:huge"
_BATCH = 1_000
_TIMEOUT_S = 10.0

pytestmark = pytest.mark.usefixtures("system")


@dataclass(frozen=True, slots=True)
class Plugin:
    """kubectl, with the plugin on its PATH."""

    folder: Path
    kubeconfig: Path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start `kubectl memcached`."""
        environ = {"PATH": f"{self.folder}:{os.defpath}", "KUBECONFIG": str(self.kubeconfig), "HOME": str(self.folder)}
        command = [str(kubernetes.kubectl()), "memcached", *arguments, "--namespace", NAMESPACE]
        return subprocess.Popen(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run it: exit code, and both outputs."""
        process = self.start(*arguments)
        output, errors = process.communicate(timeout=60)
        return process.returncode, output, errors

    def json(self, *arguments: str) -> Any:
        """Run a command that succeeds; what it answers programs."""
        code, output, errors = self.run(*arguments, "-o", "json")
        assert code == 0, errors
        return json.loads(output)


@pytest.fixture(scope="module")
def kubectl_there(node: Node, system: Kubectl) -> Iterator[Kubectl]:
    """A namespace with three servers."""
    with fresh_namespace(node, NAMESPACE) as kubectl:
        kubectl.apply(memcached(NAME, SIZE, workload="StatefulSet"))
        kubectl.wait(f"mcd/{NAME}", "condition=Ready")
        yield kubectl


@pytest.fixture(scope="module")
def plugin(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Plugin:
    """The plugin of this checkout."""
    folder = tmp_path_factory.mktemp("plugin")
    program = folder / "kubectl-memcached"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={PROJECT} exec {sys.executable} -m kubectl_memcached "$@"\n')
    program.chmod(0o755)
    return Plugin(folder, node.plane.kubeconfig_path)


def key_of(number: int) -> str:
    return f"{('user', 'session', 'page')[number % 3]}:{number:06}"


class _Connection:
    def __init__(self, stream: BufferedRWPair[Any, Any]) -> None:
        self._stream = stream

    def answer(self, request: bytes) -> bytes:
        """All lines up to the answer to `mn`."""
        self._stream.write(request + b"mn\r\n")
        self._stream.flush()
        found = b""
        while not found.endswith(b"MN\r\n"):
            found += self._stream.readline()
        return found.removesuffix(b"MN\r\n")

    def store(self, keys: Sequence[str], size: int = 100) -> None:
        value = b"v" * size
        assert (
            self.answer(b"".join(b"set %b 0 0 %d noreply\r\n%b\r\n" % (key.encode(), size, value) for key in keys))
            == b""
        )

    def stat(self, name: str) -> int:
        lines = (line.split() for line in self.answer(b"stats\r\n").splitlines())
        return next(int(words[2]) for words in lines if words[1:2] == [name.encode()])


@contextmanager
def _connected(addresses: Iterable[str]) -> Iterator[list[_Connection]]:
    """A connection to each server until the end of the block."""
    with ExitStack() as stack:
        opened = (socket.create_connection((each, MEMCACHED_PORT), _TIMEOUT_S) for each in addresses)
        streams = [stack.enter_context(stack.enter_context(each).makefile("rwb")) for each in opened]
        yield [_Connection(each) for each in streams]


@dataclass
class Clients:
    """Clients that hash modulo the number of servers, as gomemcache does."""

    addresses: Sequence[str]
    errors: list[BaseException] = field(default_factory=list)
    reads: int = 0

    def fill(self) -> None:
        with _connected(self.addresses) as connections:
            for first in range(0, KEYS, _BATCH):
                keys = [key_of(number) for number in range(first, first + _BATCH)]
                for place, connection in enumerate(connections):
                    connection.store([key for key in keys if self.place(key) == place])

    def place(self, key: str) -> int:
        return zlib.crc32(key.encode()) % len(self.addresses)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Reads all the time, of which every fifth is of one key; what is missed is stored again."""
        ended = threading.Event()
        thread = threading.Thread(target=self._read, args=(ended,), daemon=True)
        thread.start()
        try:
            until("clients read", lambda: self.reads > 0 or bool(self.errors))
            yield
        finally:
            ended.set()
            thread.join(_TIMEOUT_S)
        assert self.errors == []

    def _read(self, ended: threading.Event) -> None:
        chance = random.Random(1)
        try:
            with _connected(self.addresses) as connections:
                while not ended.is_set():
                    key = HOT if chance.random() < 0.2 else key_of(chance.randrange(KEYS))
                    connection = connections[self.place(key)]
                    if not connection.answer(b"get %b\r\n" % key.encode()).startswith(b"VALUE"):
                        connection.store([key])
                    self.reads += 1
        except BaseException as error:
            self.errors.append(error)


@pytest.fixture(scope="module")
def clients(kubectl_there: Kubectl) -> Clients:
    """Clients of the servers, which have 100,000 items."""
    found = Clients([pod_address(kubectl_there, f"{NAME}-{ordinal}") for ordinal in range(SIZE)])
    found.fill()
    return found


def _servers(document: Any) -> Mapping[str, Any]:
    return {each["server"]: each for each in document["servers"]}


def test_kubectl_finds_the_plugin_and_the_servers_are_described(plugin: Plugin, clients: Clients) -> None:
    code, output, _ = plugin.run("describe", NAME)
    assert code == 0
    assert all(f"\n{NAME}-{ordinal} " in output for ordinal in range(SIZE))
    items = [each["curr_items"] for each in plugin.json("describe", NAME)["servers"]]
    assert sum(items) >= KEYS
    assert [each["name"] for each in plugin.json("list")["memcacheds"]] == [NAME]
    assert {each["server"] for each in plugin.json("slabs", NAME)["servers"]} == {
        f"{NAME}-{each}" for each in range(SIZE)
    }


def test_a_hot_key_is_found_among_100_000(plugin: Plugin, clients: Clients) -> None:
    with clients.reading():
        document = plugin.json("top", NAME, "--for", "3s")
        prefixes = plugin.json("top", NAME, "--for", "1s", "--by", "prefix")
        by_client = plugin.json("top", NAME, "--for", "1s", "--by", "client")
    first = document["top"][0]
    assert (first["key"], first["server"]) == (HOT, f"{NAME}-{clients.place(HOT)}")
    assert first["requests"] > document["requests"] / 10
    assert all(each["requests"] > 0 and "skipped" in each for each in document["servers"])
    assert {each["prefix"] for each in prefixes["top"]} == {"user:", "session:", "page:"}
    assert by_client["top"][0]["requests"] == by_client["requests"]


def test_a_big_item_is_found_among_100_000(plugin: Plugin, clients: Clients) -> None:
    with _connected([clients.addresses[clients.place(BIG)]]) as (connection,):
        connection.store([BIG], size=900_000)
    document = plugin.json("big", NAME)
    assert (document["largest"][0]["key"], document["largest"][0]["server"]) == (BIG, f"{NAME}-{clients.place(BIG)}")
    assert document["items"] >= KEYS
    assert document["prefixes"][0]["prefix"] == "page:"


def test_a_key_is_where_the_client_has_it_and_is_deleted_there(plugin: Plugin, clients: Clients) -> None:
    key = key_of(7)
    owner = plugin.json("owner", NAME, key, "--client", "modulo")["server"]
    assert owner == f"{NAME}-{clients.place(key)}.{NAME}.{NAMESPACE}.svc:{MEMCACHED_PORT}"
    there = [name for name, each in _servers(plugin.json("get", NAME, key)).items() if each["found"]]
    assert there == [owner.partition(".")[0]]
    assert [name for name, each in _servers(plugin.json("delete", NAME, key)).items() if each["deleted"]] == there


def test_ctrl_c_leaves_no_watcher(plugin: Plugin, clients: Clients) -> None:
    with _connected(clients.addresses) as servers:
        process = plugin.start("top", NAME, "--for", "10m")
        until("all are watched", lambda: all(each.stat("log_watchers") == 1 for each in servers))
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
        assert (process.returncode, output, errors) == (130, "", "")
        until("none is watched", lambda: all(each.stat("log_watchers") == 0 for each in servers))


def test_three_servers_are_flushed_one_after_the_other_under_load(plugin: Plugin, clients: Clients) -> None:
    with clients.reading():
        code, _, errors = plugin.run("flush", NAME)
        assert (code, "--yes flushes without" in errors) == (1, True)
        servers = _servers(plugin.json("flush", NAME, "--yes", "--pause", "3s"))
    assert list(servers) == [f"{NAME}-{ordinal}" for ordinal in range(SIZE)]
    for each in servers.values():
        assert each["flushed"] > KEYS / 4
        assert 0 < each["misses"] <= each["reads"]


def test_servers_that_hand_over_are_flushed_on_the_port_of_their_peers(plugin: Plugin, kubectl_there: Kubectl) -> None:
    kubectl_there.apply(memcached("moved", 2, workload="StatefulSet", handover={}))
    kubectl_there.wait("mcd/moved", "condition=Ready")
    eventually(
        lambda: kubectl_there.get("mcd/moved")["status"].get("handover", {}).get("step"),
        lambda found: found == "Complete",
    )
    address = pod_address(kubectl_there, "moved-0")
    for number in range(10):
        with socket.create_connection((address, MEMCACHED_PORT), _TIMEOUT_S) as connection:
            connection.sendall(b"set user:%d 0 0 1\r\nx\r\n" % number)
            assert connection.recv(100) == b"STORED\r\n"
    assert plugin.json("big", "moved")["items"] == 10
    first, second = plugin.json("flush", "moved", "--yes", "--pause", "1s", "--prefix", "user:")["servers"]
    assert (first["flushed"], second["flushed"]) == (10, 0)
    assert [each["flushed"] for each in plugin.json("flush", "moved", "--yes", "--pause", "1s")["servers"]] == [0, 0]


def test_servers_with_tls_and_passwords_are_spoken_to_by_who_may_read_their_secrets(
    node: Node, plugin: Plugin, kubectl_there: Kubectl
) -> None:
    authority = Authority()
    pair = authority.issue(f"secure.{NAMESPACE}.svc", f"*.secure.{NAMESPACE}.svc")
    kubectl_there.apply(
        secret("secure-tls", pair.files),
        secret("secure-passwords", {"password-file": b"app:secret\n"}),
        memcached(
            "secure",
            1,
            workload="StatefulSet",
            tls={"secretName": "secure-tls", "clientAuth": "Require"},
            auth={"secretName": "secure-passwords"},
        ),
    )
    kubectl_there.wait("mcd/secure", "condition=Ready")
    assert plugin.json("describe", "secure")["servers"][0]["curr_items"] == 0
    assert plugin.json("top", "secure", "--for", "1s")["servers"][0]["server"] == "secure-0"
    oncall = Plugin(plugin.folder, node.plane.user_kubeconfig("oncall"))
    code, _, errors = oncall.run("describe", "secure")
    assert (code, f"you may not get memcacheds in {NAMESPACE}" in errors) == (1, True)
    rules = [
        {"apiGroups": ["cache.example.com"], "resources": ["memcacheds"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
    ]
    forward = {"apiGroups": [""], "resources": ["pods/portforward"], "verbs": ["get", "create"]}
    kubectl_there.apply(*_granted("oncall", rules))
    code, output, _ = oncall.run("describe", NAME)
    assert (code, "ask for `get` and `create` on pods/portforward" in output) == (1, True)
    kubectl_there.apply(*_granted("oncall", [*rules, forward]))
    eventually(lambda: oncall.run("describe", NAME)[0], lambda code: code == 0)
    code, output, _ = oncall.run("describe", "secure")
    assert (code, f"you may not get Secret secure-tls in {NAMESPACE}, and its servers require" in output) == (1, True)


def _granted(user: str, rules: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    api = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{api}/v1", "kind": "Role", "metadata": {"name": user}, "rules": list(rules)}
    binding = {
        "apiVersion": f"{api}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": user},
        "roleRef": {"apiGroup": api, "kind": "Role", "name": user},
        "subjects": [{"kind": "User", "apiGroup": api, "name": user}],
    }
    return role, binding
