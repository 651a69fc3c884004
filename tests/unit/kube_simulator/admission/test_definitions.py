"""Custom resources whose definition is being deleted."""

from tests.unit.kube_simulator.admission.admission_support import CRDS, World, creation, named, request

NAME = "widgets.example.com"


def test_a_custom_resource_is_created_while_its_definition_stays(world: World) -> None:
    world.put(CRDS, NAME)
    world.admit(creation(NAME))


def test_none_is_created_while_its_definition_is_on_its_way_out(world: World) -> None:
    world.put(CRDS, NAME, meta={"deletionTimestamp": "2026-11-21T15:00:00Z"})
    refused = world.refusal(creation(NAME, "w"))
    assert (refused.code, refused.message) == (
        403,
        'widgets.example.com "w" is forbidden: create not allowed while custom resource definition is terminating',
    )
    old = named(NAME, "w")
    world.admit(request("UPDATE", NAME, {**old, "spec": {}}, old))
    world.admit(request("DELETE", NAME, old=old))
