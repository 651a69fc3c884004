from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from memcached_operator.check.findings import Verdict
from memcached_operator.check.installing import (
    DEFINITION,
    HOME,
    command,
    definition_command,
    definition_permissions,
    escalation_permissions,
    granted_by_install,
    install_permissions,
    judge_granting,
    judge_install,
)
from memcached_operator.check.required_permissions import RequiredPermission, Scope, required_permissions
from memcached_operator.permissions import TENANTS, Permission
from operator_runtime.cache.store import ObjectKey

MANIFESTS = Path(__file__).parents[4] / "manifests"


def kinds(path: str) -> set[tuple[str, str]]:
    """Group and kind, in the plural, of each object in a file."""
    documents: list[dict[str, Any]] = list(yaml.safe_load_all((MANIFESTS / path).read_text()))
    groups = ((each["apiVersion"].rpartition("/")[0], each["kind"].lower() + "s") for each in documents)
    return set(groups)


def permitted(desired: Iterable[RequiredPermission]) -> set[tuple[str, str]]:
    return {(required.permission.group, required.permission.resource) for required in desired}


def test_who_installs_is_asked_for_each_kind_of_object_in_the_file() -> None:
    lock = ObjectKey(HOME, "lock")
    assert permitted([DEFINITION, *install_permissions(Scope((), "lease", lock), HOME)]) == kinds(
        "install/cluster.yaml"
    )
    assert permitted(install_permissions(Scope(("shop",)), "shop")) == kinds("install/namespaced.yaml")
    assert permitted(definition_permissions(Scope(("shop",)))) == kinds("install/crds.yaml")
    # For all namespaces it is `memcached-operator crd`, the CRD alone.
    assert list(definition_permissions(Scope(()))) == [DEFINITION]


def test_who_installs_for_several_namespaces_is_asked_for_what_the_cluster_install_has_but_its_binding() -> None:
    found = permitted([*definition_permissions(Scope(("a", "b"))), *install_permissions(Scope(("a", "b")), HOME)])
    assert found == kinds("install/cluster.yaml") - {("rbac.authorization.k8s.io", "clusterrolebindings")}


def test_several_namespaces_want_a_role_in_each() -> None:
    found = {(each.namespace, each.permission.resource) for each in install_permissions(Scope(("a", "b")), "ops")}
    assert {namespace for namespace, resource in found if resource == "roles"} == {"ops", "a", "b"}
    assert {namespace for namespace, resource in found if resource == "deployments"} == {"ops"}


def test_where_the_operator_is_there_only_its_permissions_are_to_be_made() -> None:
    found = permitted(install_permissions(Scope(("shop",), secure_metrics=True), "shop", rbac_only=True))
    rbac = "rbac.authorization.k8s.io"
    assert found == {(rbac, kind) for kind in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")}


def test_permissions_are_granted_by_users_that_have_them_or_may_escalate() -> None:
    assert {each.permission for each in granted_by_install(Scope(()), HOME)} > set(TENANTS)
    assert {each.permission for each in granted_by_install(Scope(("a", "b")), HOME)} > set(TENANTS)
    assert not {each.permission for each in granted_by_install(Scope(("a",)), "a")} & set(TENANTS)
    assert not {each.permission for each in granted_by_install(Scope(()), HOME, rbac_only=True)} & set(TENANTS)
    assert may_pass(Scope(("a",)), "a") == {("a", "roles")}
    assert may_pass(Scope(("a",)), "ops") == {("ops", "roles"), ("a", "roles"), (None, "clusterroles")}
    assert (None, "clusterroles") in may_pass(Scope(()), "ops")


def may_pass(scope: Scope, home: str) -> set[tuple[str | None, str]]:
    return {(each.namespace, each.permission.resource) for each in escalation_permissions(scope, home)}


@pytest.mark.parametrize(
    ("watched", "home", "words"),
    [
        ((), HOME, "-f manifests/install/cluster.yaml"),
        ((), "ops", "manifests/cluster as its base and the namespace ops"),
        (("shop",), "shop", "-n shop -f manifests/install/namespaced.yaml"),
        (("a", "b"), HOME, "manifests/components/several-namespaces that has a, b in the place of team-a and team-b ("),
        (("a",), HOME, "manifests/components/several-namespaces that has a in the place of team-a and team-b ("),
        (("a", "ops"), "ops", f"team-b and ops in that of {HOME} (docs/namespaces.md)"),
    ],
)
def test_the_command_that_installs_fits_what_is_watched(watched: tuple[str, ...], home: str, words: str) -> None:
    found = command(watched, home)
    assert words in found
    assert found.startswith("kubectl apply --server-side ")
    # That file gives permissions in the one namespace that it is applied to.
    assert ("namespaced.yaml" in found) is (watched == (home,))


def test_what_a_remedy_names_is_there() -> None:
    commands = (
        command(("a", "b"), HOME),
        command(("a",), "a"),
        command((), HOME),
        definition_command(("a",), force=False),
    )
    paths = re.findall(r"(?:manifests|docs)/[-\w/.]*\w", " ".join(commands))
    assert len(paths) == 6
    assert all((MANIFESTS.parent / path).exists() for path in paths)
    component = (MANIFESTS / "components/several-namespaces/kustomization.yaml").read_text()
    assert "value: team-a,team-b\n" in component


def test_what_the_user_may_not_is_named() -> None:
    finding = judge_install(DEFINITION, {"get"})
    assert finding.verdict is Verdict.MISSING
    assert finding.text == "you may not create, patch customresourcedefinitions.apiextensions.k8s.io"
    assert finding.remedy
    assert judge_install(DEFINITION, DEFINITION.permission.verbs).verdict is Verdict.OK


SHOP = Scope(("shop",))
STATUS = RequiredPermission(Permission("cache.example.com", "memcacheds/status", ("patch",)), "shop")
PODS = RequiredPermission(Permission("", "pods", ("watch",)), "shop")


def test_who_lacks_what_the_users_cluster_roles_give_is_told_of_their_file() -> None:
    nothing = judge_granting([], SHOP, "shop")
    assert (nothing.verdict, nothing.remedy, nothing.details) == (Verdict.OK, "", ())
    finding = judge_granting([STATUS], SHOP, "shop")
    assert finding.verdict is Verdict.MISSING
    assert finding.remedy.endswith("kubectl apply --server-side -f manifests/install/crds.yaml")
    assert "memcached-admin" in finding.remedy
    assert finding.details == ("you may not patch memcacheds.cache.example.com/status in shop",)
    of_the_group = [each for each in required_permissions(SHOP) if each.permission.group == "cache.example.com"]
    assert "crds.yaml" in judge_granting(of_the_group, SHOP, "shop").remedy


@pytest.mark.parametrize(
    ("lacking", "scope", "home"), [([STATUS, PODS], SHOP, "shop"), ([STATUS], Scope(()), HOME), ([STATUS], SHOP, "ops")]
)
def test_where_that_file_would_not_do_none_is_named(lacking: list[RequiredPermission], scope: Scope, home: str) -> None:
    finding = judge_granting(lacking, scope, home)
    assert finding.verdict is Verdict.MISSING
    assert finding.remedy == "ask an administrator of the cluster to install it"
