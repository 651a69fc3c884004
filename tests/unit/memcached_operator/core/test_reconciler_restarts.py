"""A restart of each server that a person asks for by an annotation, through the reconciler."""

from __future__ import annotations

import pytest

from memcached_operator.core.objects.labels import RESTART_ANNOTATION
from tests.unit.memcached_operator.core.test_reconciler_in_place import WRITE
from tests.unit.memcached_operator.running_servers import EVICT, PAUSE_S, costs, sent, stateful_set
from tests.unit.memcached_operator.support import NAME, NAMESPACE
from tests.unit.memcached_operator.world import PATCH, World


def annotate(world: World, text: str | None) -> None:
    found = world.api.objects["Memcached", NAMESPACE, NAME]
    found["metadata"]["annotations"] = {RESTART_ANNOTATION: text} if text is not None else {}
    world.api.put(found)


async def test_servers_that_lose_their_items_are_replaced_at_the_pace(named: World) -> None:
    annotate(named, "monday")
    assert await sent(named) == [WRITE, EVICT]
    [(reason, note)] = costs(named)
    assert reason == "RollingChange"
    assert "defaults" not in note
    for last in (False, True):
        named.clock.advance(PAUSE_S)
        assert await sent(named) == [EVICT], last
    assert named.condition("Ready") == ("True", "AllServersReady")


async def test_a_deployment_replaces_its_pods(running: World) -> None:
    annotate(running, "monday")
    assert await sent_to_deployment(running) == [PATCH]
    template = running.deployment["spec"]["template"]
    assert template["metadata"]["annotations"][RESTART_ANNOTATION] == "monday"


async def sent_to_deployment(world: World) -> list[str]:
    await world.reconcile_shown()
    return [each for each in world.api.verbs() if "Deployment" in each]


@pytest.mark.parametrize("text", [None, ""])
async def test_that_it_is_asked_for_no_more_is_no_reason_for_another(named: World, text: str | None) -> None:
    annotate(named, "monday")
    for _ in range(3):
        await sent(named)
        named.clock.advance(PAUSE_S)
    before = stateful_set(named)["metadata"]["generation"]
    annotate(named, text)
    assert await sent(named) == []
    assert stateful_set(named)["metadata"]["generation"] == before
