"""Real memcacheds behind the addresses of pods: the kubelet's part where there is no node, on loopback addresses."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
from contextlib import suppress
from itertools import takewhile
from typing import Self

import pytest

from kube_simulator.controllers.memcached import PORT, find_program, free_address
from operator_runtime.testing.waiting import until
from tests.cluster import REQUIRED_VARIABLE
from tests.integration.conftest import memcached
from tests.integration.oracle import patch_pods, pods_of, wait, wait_condition
from tests.kubectl_in_namespace import Kubectl

_TIMEOUT_S = 10.0
OFTEN = "--server-stats-interval-s=0.5"
"""Of an operator that asks servers often."""


class RealServer:
    """A memcached on a loopback address of its own; a context manager that ends it."""

    def __init__(self, *arguments: str) -> None:
        program = find_program()
        if program is None and not os.environ.get(REQUIRED_VARIABLE):
            pytest.skip("no memcached on the PATH, or not on Linux")
        assert program is not None, "no memcached on the PATH"
        self.address = free_address(PORT, lambda _: False, random.Random())
        self._connections: list[socket.socket] = []
        self._process = subprocess.Popen(
            [program, *arguments, "-l", self.address, *(("-u", "nobody") if os.getuid() == 0 else ())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        # One that speaks TLS, or wants a password, does not say its version to everybody.
        closed = {"-Z", "-Y"} & {*arguments}
        until("memcached does not answer", self._listens if closed else self._answers_version)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self._process.kill()
        self._process.wait()

    @property
    def version(self) -> str:
        """Its release."""
        return self.query("version")[0].split()[1]

    def query(self, command: str) -> list[str]:
        """The lines of its answer; none where it gives none."""
        with suppress(OSError), socket.create_connection((self.address, PORT), _TIMEOUT_S) as connection:
            connection.sendall(f"{command}\r\n".encode())
            with connection.makefile() as answer:
                first = answer.readline()
                more = takewhile(lambda line: line != "END\n", answer) if first.startswith("STAT") else ()
                return [first, *more]
        return []

    def freeze(self) -> None:
        """Have it take connections, as the kernel does that, and say nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Have it go on."""
        self._process.send_signal(signal.SIGCONT)

    def saturate(self) -> None:
        """Take all connections that it gives."""
        while True:
            connection = socket.create_connection((self.address, PORT), _TIMEOUT_S)
            self._connections.append(connection)
            with suppress(ConnectionError):
                connection.sendall(b"version\r\n")
            if not connection.recv(100).startswith(b"VERSION"):
                return

    def release(self) -> None:
        """Give them back."""
        for each in self._connections:
            each.close()
        self._connections.clear()

    def _answers_version(self) -> bool:
        return any(line.startswith("VERSION") for line in self.query("version"))

    def _listens(self) -> bool:
        with suppress(OSError), socket.create_connection((self.address, PORT), _TIMEOUT_S):
            return True
        return False


def give(kubectl: Kubectl, pod: str, address: str) -> None:
    """This pod runs at that address, and is ready."""
    ready = [{"type": "Ready", "status": "True"}]
    patch_pods(kubectl, [pod], phase="Running", conditions=ready, podIP=address, podIPs=[{"ip": address}])


def run_at(kubectl: Kubectl, *addresses: str, **spec: object) -> list[str]:
    """A Memcached named shop of that specification whose servers are there; the names of its pods."""
    kubectl.apply(memcached("shop", len(addresses), **spec))
    wait(kubectl, "mcd/shop", ".status.replicas", len(addresses))
    pods = pods_of(kubectl, "shop")
    for pod, address in zip(pods, addresses, strict=True):
        give(kubectl, pod, address)
    wait_condition(kubectl, "shop", "Ready", "AllServersReady")
    return pods
