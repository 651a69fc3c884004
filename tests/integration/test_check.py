"""`memcached-operator check` on clusters that are as they must be, and on such that are not."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml

from memcached_operator import cli
from operator_runtime.testing.waiting import DEADLINE_S, eventually
from tests.cluster import Cluster
from tests.definitions import forget
from tests.integration.accounts import ACCOUNT, account_with_role, grant, operator_rules
from tests.integration.conftest import CRD
from tests.integration.requests import requests_of
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import PROJECT

INSTALL = PROJECT / "manifests" / "install"
SYSTEM = "memcached-operator-system"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Checked:
    """What one run of the command said."""

    code: int
    checks: list[Json]

    def of(self, kind: str) -> list[Json]:
        return [each for each in self.checks if each["check"] == kind]

    def one(self, kind: str) -> Json:
        (found,) = self.of(kind)
        return found

    def not_ok(self) -> list[Json]:
        return [each for each in self.checks if each["verdict"] != "ok"]

    def missing_rules(self) -> set[tuple[str | None, str, str]]:
        """Namespace, resource and verb of each permission that is missing."""
        missing = [each["missing"] for each in self.of("permission") if each["verdict"] == "missing"]
        return {
            (each["namespace"], each["rule"]["resources"][0], verb)
            for each in missing
            for verb in each["rule"]["verbs"]
        }


def check(*arguments: str, **environment: str) -> Checked:
    """The command with nothing of the developer's environment. In this process: starting Python takes longer."""
    printed, complained = io.StringIO(), io.StringIO()
    bare = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    with (
        mock.patch.dict(os.environ, {**bare, **environment}, clear=True),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(complained),
    ):
        code = cli.main(["check", *arguments, "--output=json"])
    assert complained.getvalue() == ""
    found = json.loads(printed.getvalue())
    assert found["ok"] is (code == 0)
    return Checked(code, found["checks"])


def check_as(kubeconfig: Path, *arguments: str) -> Checked:
    return check("--kubeconfig", str(kubeconfig), *arguments)


def check_in_pod(kubectl: Kubectl, account: Path, *arguments: str) -> Checked:
    """As in a pod of that account."""
    return check("--service-account-dir", str(account), *arguments, **kubectl.cluster.in_cluster_environment)


def soon(run_check: Callable[[], Checked], desired: Callable[[Checked], bool]) -> Checked:
    """Ask until it is so: an API server learns of new permissions and CRDs within a moment."""
    return eventually(run_check, desired, deadline_s=DEADLINE_S)


class TestPermissions:
    @pytest.fixture
    def account(self, kubectl: Kubectl) -> str:
        account_with_role(kubectl, operator_rules())
        return f"{kubectl.namespace}/{ACCOUNT}"

    def test_with_all_permissions_all_is_well_for_an_administrator_and_in_the_pod(self, kubectl: Kubectl) -> None:
        folder = account_with_role(kubectl, operator_rules())
        flags = ("--leader-elect", f"--watch-namespace={kubectl.namespace}")
        admin = soon(
            lambda: check_as(
                kubectl.cluster.kubeconfig_path, f"--as-service-account={kubectl.namespace}/{ACCOUNT}", *flags
            ),
            lambda found: found.code == 0,
        )
        assert "and equal to this release's" in admin.one("crd")["text"]
        assert admin.one("server")["text"].startswith(kubectl.cluster.server)
        assert "1.36" in admin.one("version")["text"]
        in_pod = soon(lambda: check_in_pod(kubectl, folder, *flags), lambda found: found.code == 0)
        assert f"as system:serviceaccount:{kubectl.namespace}:{ACCOUNT}" in in_pod.one("server")["text"]
        assert "with this release's fields" in in_pod.one("crd")["text"]

    def test_rules_that_are_taken_away_are_missed_and_adding_what_is_named_mends_it(
        self, kubectl: Kubectl, account: str
    ) -> None:
        # A kind of its own, one of Kubernetes', a subresource, and the lock, which is asked for by its name.
        lost = ("memcacheds", "services", "pods/eviction", "leases")
        rest = [rule for rule in operator_rules() if rule["resources"][0] not in lost]
        grant(kubectl, rest)
        arguments = ("--leader-elect", f"--as-service-account={account}")

        def run_check() -> Checked:
            return check_as(kubectl.cluster.kubeconfig_path, *arguments)

        lacking = {
            (kubectl.namespace, resource, verb)
            for rule in operator_rules()
            for resource in rule["resources"]
            for verb in rule["verbs"]
            if resource in lost
        }
        found = soon(run_check, lambda found: found.missing_rules() == lacking)
        assert found.code == 1
        permissions = [each for each in found.not_ok() if each["check"] == "permission"]
        assert permissions == found.not_ok()
        for each in permissions:
            assert f"in {kubectl.namespace}: without it" in each["text"]
            assert f"bound to system:serviceaccount:{kubectl.namespace}:{ACCOUNT}" in each["remedy"]
        grant(kubectl, [*rest, *(each["missing"]["rule"] for each in permissions)])
        soon(run_check, lambda found: found.code == 0)

    @pytest.mark.core
    @pytest.mark.cluster("kubernetes")  # the simulator has neither the ClusterRole admin nor impersonation
    def test_an_administrator_of_a_namespace_is_led_to_an_install_that_they_can_make(self, kubectl: Kubectl) -> None:
        user = f"administrator-of-{kubectl.namespace}"
        kubectl("create", "rolebinding", "administrator", "--clusterrole=admin", f"--user={user}")
        kubeconfig = kubectl.cluster.user_kubeconfig(user)
        account = f"--as-service-account={kubectl.namespace}/memcached-operator"

        def run_check() -> Checked:
            return check_as(kubeconfig, "--leader-elect", account)

        # The kind is there, and the ClusterRoles for users are not.
        before = soon(run_check, lambda found: [each["verdict"] for each in found.of("install")].count("missing") == 1)
        lacking = before.of("install")[-1]
        assert "you may not give the operator its permissions" in lacking["text"]
        assert lacking["remedy"].endswith("kubectl apply --server-side -f manifests/install/crds.yaml")
        # The built-in ClusterRole admin has the rest; of events in releases after Kubernetes 1.33 alone.
        lacked = ("memcacheds", "pods/resize", "events.events.k8s.io")
        assert all(any(each in detail for each in lacked) for detail in lacking["details"])
        kubectl.cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(INSTALL / "crds.yaml"))
        try:
            after = soon(run_check, lambda found: all(each["verdict"] == "ok" for each in found.of("install")))
            assert "manifests/install/namespaced.yaml" in after.one("account")["remedy"]
            for document in yaml.safe_load_all((INSTALL / "namespaced.yaml").read_text()):
                kubectl("apply", "--server-side", f"--as={user}", "-f", "-", input=json.dumps(document))
            soon(run_check, lambda found: found.code == 0)
        finally:
            for role in ("admin", "edit", "view"):
                kubectl.cluster.kubectl("delete", "clusterrole", f"memcached-{role}")

    def test_nothing_is_written(self, kubectl: Kubectl, account: str) -> None:
        mark = kubectl.cluster.audit_mark()
        name = f"asker-{kubectl.namespace}"
        check_as(
            kubectl.cluster.kubeconfig_path,
            f"--operator-name={name}",
            "-A",
            "--leader-elect",
            "--metrics-secure",
            f"--as-service-account={account}",
        )
        requests_made = eventually(
            lambda: requests_of(kubectl.cluster, f"{name}-check", since=mark),
            lambda events: any(each.resource == "subjectaccessreviews" for each in events),
        )
        writes = {each.resource for each in requests_made if each.verb not in ("get", "list", "watch")}
        assert writes == {"selfsubjectreviews", "selfsubjectaccessreviews", "subjectaccessreviews"}


class TestServer:
    def test_one_that_does_not_know_the_user_is_named_with_the_kubeconfig(
        self, cluster: Cluster, tmp_path: Path
    ) -> None:
        config = yaml.safe_load(cluster.kubeconfig_path.read_text())
        config["users"][0]["user"] = {"token": "of-nobody"}
        path = tmp_path / "kubeconfig"
        path.write_text(json.dumps(config))
        found = check_as(path)
        assert found.code == 1
        (server,) = found.checks
        assert (server["check"], server["verdict"]) == ("server", "wrong")
        assert server["text"].startswith(f"{cluster.server}, by context ")
        assert "401 Unauthorized" in server["text"]
        assert "log in again" in server["remedy"]


@pytest.mark.timeout(300)
class TestCrd:
    """On clusters of their own: others' tests need the CRD."""

    def test_from_before_the_install_until_after_it(self, fresh: Cluster) -> None:
        arguments = ("-A", "--leader-elect", f"--as-service-account={SYSTEM}/memcached-operator")

        def run_check() -> Checked:
            return check_as(fresh.kubeconfig_path, *arguments)

        before = run_check()
        assert before.code == 1
        assert before.one("crd")["verdict"] == "missing"
        assert before.one("crd")["remedy"].startswith("memcached-operator crd | kubectl apply")
        assert "manifests/install/cluster.yaml" in before.one("namespace")["remedy"]
        assert "manifests/install/cluster.yaml" in before.one("account")["remedy"]
        assert all(each["verdict"] == "missing" and "remedy" not in each for each in before.of("permission"))
        assert all(each["verdict"] == "ok" for each in before.of("install"))
        # All but the pods, which nobody would start.
        documents = [
            each
            for each in yaml.safe_load_all((INSTALL / "cluster.yaml").read_text())
            if each["kind"] not in ("Deployment", "PodDisruptionBudget")
        ]
        fresh.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(documents))
        after = soon(run_check, lambda found: found.code == 0)
        assert "is established and equal to this release's" in after.one("crd")["text"]

    def test_a_user_who_may_not_look_at_crds_still_learns_whether_it_is_there_and_what_differs(
        self, fresh: Cluster
    ) -> None:
        kubeconfig = fresh.user_kubeconfig("plain")
        forget(fresh)

        def crd() -> Json:
            return check_as(kubeconfig, "-n", "default").one("crd")

        eventually(crd, lambda found: found["verdict"] == "missing")
        fresh.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(older(smaller)))
        found = eventually(crd, lambda found: bool(found.get("details")))
        assert any(each.startswith("spec.image is missing, ") for each in found["details"])
        fresh.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRD))
        eventually(crd, lambda found: found["verdict"] == "ok")


def older(change: Callable[[Json], None]) -> Json:
    """The CRD as an older release had it."""
    document: Json = copy.deepcopy(yaml.safe_load(CRD.read_text()))
    change(document)
    return document


def smaller(document: Json) -> None:
    (version,) = document["spec"]["versions"]
    fields = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    del fields["image"]
    fields["size"]["maximum"] = 100
    columns = version["additionalPrinterColumns"]
    version["additionalPrinterColumns"] = [each for each in columns if each["name"] != "Image"]
    del document["spec"]["names"]["shortNames"]
