"""What becomes of all else while the API server fails to write one object, such as the workload, for now."""

from __future__ import annotations

import pytest

from operator_runtime.client.errors import KubeError, ServerError, TooManyRequests
from tests.unit.memcached_operator.support import NAME, NAMESPACE
from tests.unit.memcached_operator.world import CREATE, DELAY_S, World

WEBHOOK = 'failed calling webhook "pods.example.com": connection refused'
DOWN = ServerError(500, "InternalError", WEBHOOK)
REPORTED = f"The API server failed to write the Deployment: {WEBHOOK}."
WRITES = ("create", "merge_patch", "strategic_merge_patch")
FAILURES: list[KubeError] = [DOWN, TooManyRequests(429, "TooManyRequests", WEBHOOK)]


async def fail(world: World, error: KubeError = DOWN, *, times: int = 3) -> None:
    """Look several times while the API server fails so; each ends as a failure, to be tried again with backoff."""
    for _ in range(times):
        for verb in WRITES:
            world.api.refuse(verb, "Deployment", error)
        world.show()
        with pytest.raises(type(error)):
            await world.reconcile(after_s=DELAY_S)
        world.api.refusals_of.clear()


@pytest.mark.parametrize("error", FAILURES, ids=["500", "429"])
async def test_a_new_memcached_is_told_of_and_has_all_else(world: World, error: KubeError) -> None:
    world.memcached(size=2, service={"type": "Headless"})
    await fail(world, error)
    assert ("Service", NAMESPACE, NAME) in world.api.objects
    assert world.condition("Ready")[0] == "False"
    assert REPORTED in world.message("Ready")
    assert world.condition("Available") == ("False", "MinimumReplicasUnavailable")
    assert world.condition("Degraded") == ("False", "AsExpected")
    assert world.message("Degraded") == "Requests to the API server are failing; see the condition Ready."
    assert world.status["observedGeneration"] == 2

    await world.reconcile_shown()
    assert CREATE in world.api.verbs()
    assert any(event.note.startswith("Created Deployment") for event in world.recorder.events)
    assert world.repairs_counted() == {}


async def test_another_image_that_cannot_be_written_is_not_told_as_done(running: World) -> None:
    running.memcached(size=2, image="memcached:2")
    running.pods(ready=1)
    await fail(running)
    assert len(running.status["nodes"]) == running.status["readyReplicas"] == 1, "one is lost meanwhile"
    assert running.condition("Ready")[0] == "False"
    assert running.condition("Progressing") == ("True", "Updating")
    assert REPORTED in running.message("Ready")
    assert "have been rolled out" not in running.message("Progressing")


async def test_a_new_leader_knows_by_the_status_that_it_is_what_the_user_asked_for(running: World) -> None:
    running.memcached(size=3)
    await fail(running)
    assert running.status["pendingWrites"] == ["Deployment"]
    leader = World(api=running.api)
    await leader.reconcile_shown()
    (note,) = [event.note for event in leader.recorder.events if event.reason == "Scaled"]
    assert note.endswith("spec.size changed")
    assert leader.repairs_counted() == {}
    await leader.settle()
    assert "pendingWrites" not in leader.status
