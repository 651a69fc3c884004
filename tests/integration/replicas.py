"""Operators that elect a leader among them, and which of them wrote when.

The lengths of the lease are shorter here than by default, in the same proportions.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from lab.audit import AuditEvent, Mark
from tests.integration.accounts import LOCK, let_account_elect
from tests.integration.conftest import Operators
from tests.integration.requests import received_at, writes_of
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess

# A leader that gets no processor for so long as it may write ends: what a busy machine takes is well below 4 s.
LEASE_S, RENEW_DEADLINE_S, RETRY_S = 6, 4.0, 1.0
# Longer than a test lasts: who takes over has not waited for the Lease to run out. The later flags count.
LONG_LEASE = ("--leader-elect-lease-duration-s=3600", "--leader-elect-renew-deadline-s=3000")
NOT_RENEWED = f"could not be renewed within {RENEW_DEADLINE_S:g} s"
LEADS = "leading: Lease"
STANDS_BY = "waiting: Lease"


class Replicas:
    """Starts operators that elect a leader among them, each with a name of its own in the audit log."""

    def __init__(self, kubectl: Kubectl, operators: Operators) -> None:
        self.kubectl = kubectl
        self._operators = operators
        self._account = operators.account_dir()
        let_account_elect(kubectl)

    def start(self, name: str, *arguments: str, account_dir: Path | None = None, **variables: str) -> OperatorProcess:
        """One that takes part."""
        return self._operators.start(
            "-n",
            self.kubectl.namespace,
            "--leader-elect",
            f"--leader-elect-id={LOCK}",
            f"--leader-elect-namespace={self.kubectl.namespace}",
            f"--leader-elect-lease-duration-s={LEASE_S}",
            f"--leader-elect-renew-deadline-s={RENEW_DEADLINE_S}",
            f"--leader-elect-retry-period-s={RETRY_S}",
            *arguments,
            account_dir=account_dir or self._account,
            OPERATOR_NAME=name,
            POD_NAME=name,
            **variables,
        )

    def pair(self, *arguments: str) -> tuple[OperatorProcess, OperatorProcess]:
        """One that leads and one that stands by with warm caches."""
        first = self.start("first", *arguments).ready()
        first.wait_for_log(LEADS)
        second = self.start("second", *arguments).ready()
        second.wait_for_log(STANDS_BY, "first_")
        return first, second

    def writes(self, name: str, since: Mark) -> list[AuditEvent]:
        """What one of them wrote but for the Lease, oldest first."""
        events = [each for each in writes_of(self.kubectl.cluster, name, since=since) if each.resource != "leases"]
        in_namespace = [each for each in events if each.namespace == self.kubectl.namespace]
        return sorted(in_namespace, key=received_at)

    def first_write_after(self, name: str, moment: datetime, since: Mark) -> datetime:
        """When the first write of one of them came after that moment."""
        found = [received_at(each) for each in self.writes(name, since) if received_at(each) > moment]
        assert found, f"{name} wrote nothing"
        return found[0]

    def renewed(self, name: str) -> datetime:
        """When one of them renewed the Lease last."""
        own_writes = writes_of(self.kubectl.cluster, name)
        return max(
            received_at(each)
            for each in own_writes
            if each.resource == "leases" and each.namespace == self.kubectl.namespace and each.code in (200, 201)
        )
