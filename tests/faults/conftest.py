"""What the tests of faults share: operators that show figures, some of them behind a proxy that misbehaves."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from kube_simulator.access.pki import Authority
from tests.faults.fault_workload import FaultWorkload, workload_of
from tests.faults.figures import SERVING, Figures
from tests.faults.proxy import FaultProxy
from tests.integration.conftest import Operators, installed, kubectl, operators
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess

__all__ = ["installed", "kubectl", "operators"]  # fixtures


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Signs the proxy's certificates, and is trusted by operators behind it."""
    return Authority(tmp_path / "authority")


@pytest.fixture
def proxy(kubectl: Kubectl, authority: Authority) -> Iterator[FaultProxy]:
    """Stands before the API server."""
    port = int(kubectl.cluster.server.rpartition(":")[2])
    with FaultProxy(port, kubectl.cluster.ca_path, authority.server("proxy", ["127.0.0.1"])) as proxy:
        yield proxy


@pytest.fixture
def workload(kubectl: Kubectl) -> Iterator[FaultWorkload]:
    """Memcacheds to which things happen."""
    with workload_of(kubectl) as workload:
        yield workload


# What an operator says where something keeps it from its work. That a machine is slow is none of it.
TROUBLE = ("cannot ", "attempt", "are not written", "Traceback", " ERROR ")


@dataclass(frozen=True, slots=True)
class Watched:
    """An operator for one namespace whose log and figures a test reads; its name (`OPERATOR_NAME`) is the namespace's.

    `since` is how many lines it had logged when it was ready.
    """

    process: OperatorProcess
    figures: Figures
    since: int

    def troubles(self) -> list[str]:
        """The lines since it was ready by which somebody would have to do something."""
        return [line for line in self.process.lines[self.since :] if any(text in line for text in TROUBLE)]

    def logged(self, *texts: str) -> list[str]:
        """The lines since it was ready that hold all texts."""
        return [line for line in self.process.lines[self.since :] if all(text in line for text in texts)]


class Starter:
    """Starts operators behind the proxy."""

    def __init__(self, operators: Operators, account: Path, proxy: FaultProxy, namespace: str) -> None:
        self._operators = operators
        self._account = account
        self._proxy = proxy
        self._namespace = namespace

    def __call__(self, *arguments: str, account: Path | None = None) -> Watched:
        """Start one with further flags, by default with the account of least permissions, and wait until it is in sync.

        Args:
            account: a folder whose token it uses instead.
        """
        if account is not None:
            shutil.copy(account / "token", self._account / "token")
        process = self._operators.start(
            *("-n", self._namespace, *SERVING, *arguments),
            account_dir=self._account,
            KUBERNETES_SERVICE_PORT=str(self._proxy.port),
            OPERATOR_NAME=self._namespace,
        ).ready()
        return Watched(process, Figures(process), len(process.lines))


@pytest.fixture
def start(kubectl: Kubectl, proxy: FaultProxy, authority: Authority, tmp_path: Path) -> Iterator[Starter]:
    """Starts operators that reach the API server through the proxy, and end before it does."""
    account = tmp_path / "account"
    with ExitStack() as ends:
        operators = Operators(kubectl.cluster, ends)
        shutil.copytree(operators.account_dir(), account)
        shutil.copy(authority.certificate, account / "ca.crt")
        yield Starter(operators, account, proxy, kubectl.namespace)
