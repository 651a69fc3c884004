from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from memcached_operator.check.demands import Demand, Scope
from memcached_operator.check.findings import Verdict
from memcached_operator.check.installing import (
    DEFINITION,
    HOME,
    command,
    handed_on,
    install_demands,
    judge_handing_on,
    judge_install,
    passes,
)
from memcached_operator.rights import TENANTS
from memcached_operator.runtime.store import ObjectKey

MANIFESTS = Path(__file__).parents[3] / "manifests"


def kinds(path: str) -> set[tuple[str, str]]:
    """Group and kind, in the plural, of each object in a file."""
    documents: list[dict[str, Any]] = list(yaml.safe_load_all((MANIFESTS / path).read_text()))
    groups = ((each["apiVersion"].rpartition("/")[0], each["kind"].lower() + "s") for each in documents)
    return set(groups)


def asked(wanted: Iterable[Demand]) -> set[tuple[str, str]]:
    return {(demand.right.group, demand.right.resource) for demand in wanted}


def test_who_installs_for_the_cluster_is_asked_for_each_kind_of_object_in_the_file() -> None:
    lock = ObjectKey(HOME, "lock")
    assert asked([DEFINITION, *install_demands(Scope((), "lease", lock), HOME)]) == kinds("install/cluster.yaml")


def test_who_installs_for_a_namespace_is_asked_for_each_kind_of_object_in_the_file() -> None:
    assert asked(install_demands(Scope(("shop",)), "shop")) == kinds("install/namespaced.yaml")


def test_several_namespaces_want_a_role_in_each() -> None:
    found = {(each.namespace, each.right.resource) for each in install_demands(Scope(("a", "b")), "ops")}
    assert {namespace for namespace, resource in found if resource == "roles"} == {"ops", "a", "b"}
    assert {namespace for namespace, resource in found if resource == "deployments"} == {"ops"}


def test_where_the_operator_is_there_only_its_rights_are_to_be_made() -> None:
    found = asked(install_demands(Scope(("shop",), secure_metrics=True), "shop", rights_alone=True))
    rbac = "rbac.authorization.k8s.io"
    assert found == {(rbac, kind) for kind in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")}


def test_rights_are_handed_on_by_who_has_them_or_may_go_beyond() -> None:
    assert {each.right for each in handed_on(Scope(()))} > set(TENANTS)
    assert not {each.right for each in handed_on(Scope(("a",)))} & set(TENANTS)
    assert {(each.namespace, each.right.resource) for each in passes(Scope(("a",)), "ops")} == {
        ("ops", "roles"),
        ("a", "roles"),
    }
    assert (None, "clusterroles") in {(each.namespace, each.right.resource) for each in passes(Scope(()), "ops")}


@pytest.mark.parametrize(
    ("watched", "home", "words"),
    [
        ((), HOME, "kubectl apply --server-side -f manifests/install/cluster.yaml"),
        ((), "ops", "manifests/cluster as its base and the namespace ops"),
        (("shop",), "shop", "kubectl apply -n shop -f manifests/install/namespaced.yaml"),
    ],
)
def test_the_command_that_installs_fits_what_is_watched(watched: tuple[str, ...], home: str, words: str) -> None:
    assert words in command(watched, home)


def test_what_the_user_may_not_is_named() -> None:
    finding = judge_install(DEFINITION, {"get"})
    assert finding.verdict is Verdict.MISSING
    assert finding.text == "you may not create, patch customresourcedefinitions.apiextensions.k8s.io"
    assert finding.remedy
    assert judge_install(DEFINITION, DEFINITION.right.verbs).verdict is Verdict.OK
    assert judge_handing_on(True).verdict is Verdict.OK
    assert judge_handing_on(False).verdict is Verdict.MISSING
