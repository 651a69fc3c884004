"""Who may give an object an owner: only where the plugin is on."""

from typing import Any

import pytest

from kube_simulator.access.rbac import BINDINGS, ROLES
from kube_simulator.values import Json
from tests.unit.kube_simulator.admission.admission_support import (
    JANE,
    World,
    creation,
    named,
    new_world,
    request,
)

CANNOT_BLOCK = (
    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"
)
CANNOT_OWN = "cannot set an ownerRef on a resource you can't delete: , <nil>"


@pytest.fixture
def strict() -> World:
    return new_world(owner_references_permission_enforcement=True)


def allow(world: World, verb: str, resource: str) -> None:
    """Jane may do that in her namespace."""
    rule = {"apiGroups": ["", "example.com"], "resources": [resource], "verbs": [verb]}
    world.put(ROLES, "r", rules=[rule])
    subject = {"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
    world.put(BINDINGS, "r", roleRef=reference, subjects=[subject])


def owned(*references: Json) -> Json:
    return named("configmaps", "new", meta={"ownerReferences": list(references)})


def reference(uid: str = "1", **fields: Any) -> Json:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": uid, **fields}


def test_a_new_object_may_have_an_owner_that_need_not_wait_for_it(strict: World) -> None:
    asked = request("CREATE", "configmaps", owned(reference()), caller=JANE)
    strict.admit(asked)


def test_an_owner_is_made_to_wait_by_those_alone_who_may_update_its_finalizers(strict: World) -> None:
    asked = request("CREATE", "configmaps", owned(reference(blockOwnerDeletion=True)), caller=JANE)
    refused = strict.refusal(asked)
    assert (refused.code, refused.message) == (403, f'configmaps "new" is forbidden: {CANNOT_BLOCK}')
    allow(strict, "update", "widgets/finalizers")
    strict.admit(asked)


def test_the_owners_of_an_object_are_changed_by_those_alone_who_may_delete_it(strict: World) -> None:
    asked = request("UPDATE", "configmaps", owned(reference()), owned(), caller=JANE)
    assert (strict.refusal(asked)).message == f'configmaps "new" is forbidden: {CANNOT_OWN}'
    allow(strict, "delete", "configmaps")
    strict.admit(asked)


def test_an_owner_that_waits_already_is_no_matter_of_a_change(strict: World) -> None:
    allow(strict, "delete", "configmaps")
    old = owned(reference(blockOwnerDeletion=True))
    strict.admit(request("UPDATE", "configmaps", {**old, "data": {}}, old, caller=JANE))
    more = owned(reference(blockOwnerDeletion=True), reference("2"))
    strict.admit(request("UPDATE", "configmaps", more, old, caller=JANE))
    another = owned(reference("2", blockOwnerDeletion=True))
    assert CANNOT_BLOCK in (strict.refusal(request("UPDATE", "configmaps", another, old, caller=JANE))).message


def test_an_owner_of_a_kind_that_nobody_knows_cannot_be_made_to_wait(strict: World) -> None:
    stranger = reference(blockOwnerDeletion=True) | {"apiVersion": "nope.example.com/v1", "kind": "Nope"}
    refused = strict.refusal(request("CREATE", "configmaps", owned(stranger)))
    assert refused.message.endswith(
        "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion "
        'nope.example.com/v1 Kind Nope: no matches for kind "Nope" in version "nope.example.com/v1"'
    )


def test_a_deletion_gives_nobody_an_owner(strict: World) -> None:
    strict.admit(request("DELETE", "configmaps", old=owned(reference()), caller=JANE))


def test_unless_it_is_asked_for_nobody_looks_at_owners(world: World) -> None:
    blocked = owned(reference(blockOwnerDeletion=True))
    world.admit(request("CREATE", "configmaps", blocked, caller=JANE))
    world.admit(creation("configmaps", caller=JANE))
