"""Namespaces that are missing, on their way out, or not to be deleted."""

import pytest

from tests.unit.kube_simulator.admission.admission_support import (
    NAMESPACE,
    World,
    creation,
    elsewhere,
    named,
    request,
)

DELETED = {"deletionTimestamp": "2026-11-21T15:00:00Z"}


def test_nothing_is_created_in_a_namespace_that_does_not_exist(world: World) -> None:
    refused = world.refusal(elsewhere(creation("configmaps"), "nowhere"))
    assert (refused.code, refused.message) == (404, 'namespaces "nowhere" not found')
    assert refused.details == {"name": "nowhere", "kind": "namespaces"}


def test_nothing_is_created_in_a_namespace_that_is_being_deleted(world: World) -> None:
    world.put("namespaces", NAMESPACE, meta=DELETED)
    refused = world.refusal(creation("configmaps", "a"))
    why = f"unable to create new content in namespace {NAMESPACE} because it is being terminated"
    assert (refused.code, refused.message) == (403, f'configmaps "a" is forbidden: {why}')
    message = f"namespace {NAMESPACE} is being terminated"
    cause = {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}
    assert refused.details == {"name": "a", "kind": "configmaps", "causes": [cause]}


def test_what_is_in_a_namespace_on_its_way_out_may_be_changed_and_deleted(world: World) -> None:
    world.put("namespaces", NAMESPACE, meta=DELETED)
    found = named("configmaps", "a")
    world.admit(request("UPDATE", "configmaps", {**found, "data": {"k": "v"}}, found))
    world.admit(request("DELETE", "configmaps", old=found))


def test_what_belongs_to_no_namespace_needs_none(world: World) -> None:
    world.admit(creation("namespaces", "another"))
    world.admit(creation("clusterroles.rbac.authorization.k8s.io", rules=[]))


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_a_namespace_that_a_cluster_needs_is_not_deleted(world: World, name: str) -> None:
    refused = world.refusal(request("DELETE", "namespaces", old=named("namespaces", name)))
    assert (refused.code, refused.message) == (
        403,
        f'namespaces "{name}" is forbidden: this namespace may not be deleted',
    )


def test_any_other_namespace_may_be_deleted(world: World) -> None:
    world.admit(request("DELETE", "namespaces", old=named("namespaces", "kube-node-lease")))
