"""Admission as a whole: its order."""

from dataclasses import replace

from kube_simulator.access.rbac import ROLES
from tests.unit.kube_simulator.admission.admission_support import (
    JANE,
    World,
    creation,
    named,
    request,
)


def test_nobody_grants_permissions_that_they_do_not_have(world: World) -> None:
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
    asked = creation(ROLES, "r", caller=JANE, rules=rules)
    refused = world.refusal(asked)
    assert (refused.code, "attempting to grant RBAC permissions not currently held" in refused.message) == (403, True)
    world.admit(replace(asked, caller=creation("configmaps").caller))


def test_what_nobody_objects_to_is_let_in(world: World) -> None:
    found = named("configmaps", "c")
    world.admit(request("UPDATE", "configmaps", {**found, "data": {"k": "v"}}, found))
