"""What the operator does while something that it needs is missing, refused or down, and when it comes back."""

from __future__ import annotations

import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from kube_simulator.access.pki import Authority
from lab.audit import Mark
from operator_runtime.testing.waiting import DEADLINE_S, eventually
from tests.cluster import Cluster
from tests.faults.proxy import FaultProxy
from tests.integration.accounts import ACCOUNT, LOCK, account_with_role, operator_rules
from tests.integration.conftest import CRD, Operators, install_crd, memcached
from tests.integration.named import EVERYTHING
from tests.integration.oracle import catch_up, wait_condition
from tests.integration.requests import requests_of, writes_of, written
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess, logged_in_a_loop

_POLL_S = 0.1
REMEDY_CRD = "install it with `kubectl apply --server-side -f manifests/crd/cache.example.com_memcacheds.yaml`"


def logged(operator: OperatorProcess, *texts: str, after: int = 0) -> list[str]:
    """The log's lines, from a line number on, that hold all texts."""
    return [line for line in operator.lines[after:] if all(text in line for text in texts)]


class TestCrd:
    @pytest.fixture
    def crd(self, installed: Cluster) -> Iterator[Cluster]:
        """A cluster whose CRD a test may remove."""
        yield installed
        install_crd(installed)

    def test_deleted_and_installed_again_while_running_it_is_said_once_and_all_goes_on(
        self, crd: Cluster, kubectl: Kubectl, operators: Operators
    ) -> None:
        operator = operators.start("-n", kubectl.namespace).ready()
        kubectl.apply(memcached("before", 1))
        kubectl.wait_field("mcd/before", ".status.replicas", 1)
        crd.kubectl("delete", "-f", str(CRD))
        operator.wait_for_log("cannot watch memcacheds", REMEDY_CRD)
        kubectl.wait("deployment/before", "delete")  # the garbage collector's work, not the operator's
        install_crd(crd)
        operator.wait_for_log("watching memcacheds", "again")
        kubectl.apply(memcached("before", 2))
        kubectl.wait_field("mcd/before", ".status.replicas", 2)
        assert logged_in_a_loop(logged(operator, "cannot watch", REMEDY_CRD)) == []


class TestApiServer:
    def test_after_a_crash_everything_heals_and_nothing_is_written_in_vain(
        self, kubectl: Kubectl, operators: Operators
    ) -> None:
        account = operators.account_dir()
        name = kubectl.namespace
        operator = operators.start("-n", name, account_dir=account, OPERATOR_NAME=name).ready()
        kubectl.apply(memcached("calm", 1), memcached("changed", 1), memcached("drifted", 1))
        for each in ("calm", "changed", "drifted"):
            kubectl.wait_field(f"mcd/{each}", ".status.replicas", 1)
        catch_up(kubectl, pods=True)
        mark = kubectl.cluster.audit_mark()
        kubectl.cluster.kill_apiserver()
        operator.wait_for_log("cannot watch")
        kubectl.cluster.start_apiserver()
        kubectl("scale", "mcd/changed", "--replicas=3")
        kubectl("scale", "deployment/drifted", "--replicas=2")
        kubectl.wait_field("mcd/changed", ".status.replicas", 3)
        kubectl.wait_field("deployment/drifted", ".spec.replicas", 1)
        kubectl.wait_field("mcd/drifted", ".status.replicas", 1)
        catch_up(kubectl, pods=True)
        writes = written(writes_of(kubectl.cluster, name, since=mark))
        assert [write for write in writes if write.endswith(" calm")] == []
        scaled = {write for write in writes if write.startswith("patch deployments") and "later-" not in write}
        assert scaled == {"patch deployments changed", "patch deployments drifted"}

    def test_changes_made_while_the_operator_was_down_are_healed_and_a_restart_without_any_only_reads(
        self, kubectl: Kubectl, operators: Operators
    ) -> None:
        name = kubectl.namespace
        operator = operators.start("-n", name).ready()
        kubectl.apply(memcached("calm", 1), memcached("resized", 1), memcached("bared", 1), memcached("gone", 1))
        kubectl.apply(memcached("full", 1, **EVERYTHING))
        for each in ("calm", "resized", "bared", "gone", "full"):
            kubectl.wait_field(f"mcd/{each}", ".status.replicas", 1)
        catch_up(kubectl, pods=True)
        assert operator.stop() == 0

        kubectl("scale", "mcd/resized", "--replicas=2")
        kubectl("delete", "deployment/bared", "mcd/gone")
        kubectl.apply(memcached("new", 1))
        mark = kubectl.cluster.audit_mark()
        second = operators.start("-n", name, OPERATOR_NAME=f"{name}-second").ready()
        kubectl.wait_field("deployment/resized", ".spec.replicas", 2)
        for each, size in {"calm": 1, "resized": 2, "bared": 1, "new": 1}.items():
            kubectl.wait_field(f"mcd/{each}", ".status.replicas", size)
        catch_up(kubectl, pods=True)
        writes = written(writes_of(kubectl.cluster, f"{name}-second", since=mark))
        assert [write for write in writes if write.endswith((" calm", " gone", " full", " full-servers"))] == []
        assert second.stop() == 0

        mark = kubectl.cluster.audit_mark()
        third = operators.start("-n", name, "--log-level=debug", OPERATOR_NAME=f"{name}-third").ready()
        kubectl.apply(memcached("later", 0))  # reconciled after all those that came with the first lists
        wait_condition(kubectl, "later", "Progressing", "Complete")
        requests = requests_of(kubectl.cluster, f"{name}-third", since=mark)
        others = [each for each in requests if each.name != "later" and each.resource != "events"]
        assert {each.verb for each in others} <= {"get", "list", "watch"}
        assert third.stop() == 0


class TestRotation:
    @pytest.mark.core
    @pytest.mark.cluster("kubernetes")  # the simulator binds tokens to nothing
    def test_a_new_token_is_read_when_the_old_one_is_revoked(self, kubectl: Kubectl, operators: Operators) -> None:
        folder = account_with_role(kubectl, operator_rules())
        for number in ("first", "second"):
            kubectl("create", "secret", "generic", number)
        (folder / "token").write_text(_bound_token(kubectl, "first"))
        name = kubectl.namespace
        elects = ["--leader-elect", f"--leader-elect-id={LOCK}", f"--leader-elect-namespace={name}"]
        operator = operators.start("-n", name, *elects, account_dir=folder, OPERATOR_NAME=name).ready()
        operator.wait_for_log("leading: Lease")
        first = (folder / "token").read_text()
        (folder / "token").write_text(_bound_token(kubectl, "second"))
        mark = kubectl.cluster.audit_mark()
        kubectl("delete", "secret", "first")
        _await_refusal(kubectl.cluster, first)
        kubectl.apply(memcached("rotated", 1))
        kubectl.wait_field("mcd/rotated", ".status.replicas", 1)
        # The election has the same credentials, and may be the first to be refused.
        refused = calls(kubectl, mark).count(401) + renewed(kubectl, mark).count(401)
        assert refused, "the operator still had the first token"
        second = kubectl.cluster.audit_mark()
        kubectl("scale", "mcd/rotated", "--replicas=2")
        kubectl.wait_field("mcd/rotated", ".status.replicas", 2)
        eventually(lambda: calls(kubectl, second), lambda codes: 200 in codes)
        assert 401 not in calls(kubectl, second)
        assert "rotated: attempt" not in operator.log
        renewals = eventually(lambda: renewed(kubectl, mark), lambda codes: codes[-1:] == [200])
        assert renewals.count(401) <= 1
        assert kubectl.get("lease", LOCK)["spec"]["leaseTransitions"] == 0
        assert " FATAL" not in operator.log

    def test_a_replaced_authority_is_trusted_once_its_file_is_there(
        self, kubectl: Kubectl, operators: Operators, tmp_path: Path
    ) -> None:
        cluster = kubectl.cluster
        authorities = [Authority(tmp_path / name) for name in ("old", "new")]
        pairs = [each.server("front", ["127.0.0.1"]) for each in authorities]
        folder = account_with_role(kubectl, operator_rules())
        (folder / "ca.crt").write_bytes(authorities[0].certificate.read_bytes())
        port = int(cluster.server.rpartition(":")[2])
        with FaultProxy(port, cluster.ca_path, pairs[0]) as front:
            operator = operators.start(account_dir=folder, KUBERNETES_SERVICE_PORT=str(front.port)).ready()
            front.show(pairs[1])
            front.cut()
            operator.wait_for_log("cannot watch", "certificate is not trusted")
            (folder / "ca.crt").write_bytes(authorities[1].certificate.read_bytes())
            operator.wait_for_log("The certificate authority or the client certificate changed")
            kubectl.apply(memcached("trusted", 1))
            kubectl.wait_field("mcd/trusted", ".status.replicas", 1)
            assert operator.stop() == 0


def calls(kubectl: Kubectl, since: Mark) -> list[int]:
    """The answers to what was asked besides watches and the Lease."""
    requests_made = requests_of(kubectl.cluster, kubectl.namespace, since=since)
    return [each.code for each in requests_made if each.verb != "watch" and each.resource != "leases"]


def renewed(kubectl: Kubectl, since: Mark) -> list[int]:
    """The answers to the renewals of the Lease."""
    requests_made = requests_of(kubectl.cluster, kubectl.namespace, since=since)
    return [each.code for each in requests_made if each.resource == "leases" and each.verb == "patch"]


def _bound_token(kubectl: Kubectl, secret: str) -> str:
    """A token of the account that is worth nothing once the Secret is gone."""
    return kubectl("create", "token", ACCOUNT, "--bound-object-kind=Secret", f"--bound-object-name={secret}").strip()


def _await_refusal(cluster: Cluster, token: str) -> None:
    """The API server remembers for 10 s that a token was good."""
    context = ssl.create_default_context(cafile=cluster.ca_path)
    request = urllib.request.Request(f"{cluster.server}/version", headers={"Authorization": f"Bearer {token}"})
    ends = time.monotonic() + DEADLINE_S
    while time.monotonic() < ends:
        try:
            with urllib.request.urlopen(request, context=context):
                time.sleep(_POLL_S)
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 401:
                    return
            raise
    raise AssertionError("the revoked token is still good")
