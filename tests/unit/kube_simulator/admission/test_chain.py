"""Admission as a whole: its order."""

from tests.unit.kube_simulator.admission.admission_support import (
    World,
    named,
    request,
)


def test_what_nobody_objects_to_is_let_in(world: World) -> None:
    found = named("configmaps", "c")
    world.admit(request("UPDATE", "configmaps", {**found, "data": {"k": "v"}}, found))
