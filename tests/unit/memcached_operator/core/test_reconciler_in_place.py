"""Another image reaches servers that keep their items, through the reconciler: their containers start again."""

from __future__ import annotations

from contextlib import suppress

import pytest

from memcached_operator.core.rollout.in_place_restart import LATE_AFTER_S
from memcached_operator.servers.stats_answer import StatsAnswer
from operator_runtime.client.errors import Conflict, Forbidden, ServerError, TooManyRequests
from tests.unit.fake_server import Json
from tests.unit.memcached_operator.running_servers import (
    EVICT,
    PAUSE_S,
    control,
    costs,
    get_ready,
    pod,
    reasons,
    run_for_long,
    sent,
    stateful_set,
)
from tests.unit.memcached_operator.support import IMAGE, NAME, NAMESPACE, NO_RIGHT
from tests.unit.memcached_operator.world import DELAY_S, World

WRITE, CHANGE, SETTLE = "strategic_merge_patch StatefulSet", "strategic_merge_patch Pod", "merge_patch Pod"
AWAY = "etcd is away"


async def warm(*, queried: bool = False, size: int = 3) -> World:
    """Servers that keep their items, which have run for long."""
    world = World(queried=queried)
    return await run_for_long(world, size=size, workload="StatefulSet", warmRestart=True)


def change(world: World, **spec: object) -> None:
    size = stateful_set(world)["spec"]["replicas"]
    world.memcached(size=size, workload="StatefulSet", warmRestart=True, **spec)


def restart(world: World, ordinal: int) -> None:
    """Let the node start a container again, which is ready."""
    found = pod(world, ordinal)
    found["status"]["containerStatuses"][0]["restartCount"] += 1
    get_ready(world, ordinal)


def image(world: World, ordinal: int) -> str:
    return str(pod(world, ordinal)["spec"]["containers"][0]["image"])


def uids(world: World) -> list[Json]:
    return [each["metadata"]["uid"] for key, each in world.api.objects.items() if key[0] == "Pod"]


async def test_containers_start_again_one_at_a_time_and_no_pod_ends() -> None:
    world = await warm()
    before = uids(world)
    change(world, image="memcached:2")
    assert await sent(world) == [WRITE, CHANGE]
    assert [image(world, ordinal) for ordinal in range(3)] == [IMAGE, IMAGE, "memcached:2"]
    assert world.condition("Progressing") == ("True", "Updating")
    [(reason, note)] = costs(world)
    assert reason == "InPlaceChange"
    assert note.startswith("spec.image: 3 servers are restarted in place, one at a time, from the highest ordinal; ")
    assert "caches are kept" in note
    message = "3 of 3 servers have not been changed yet. Servers restart in their pods and keep their items, one at a "
    assert message in world.message("Progressing")
    for ordinal in (2, 1, 0):
        restart(world, ordinal)
        assert await sent(world) == [SETTLE]
        world.clock.advance(PAUSE_S)
        assert await sent(world) == ([CHANGE] if ordinal else [])
    revision = stateful_set(world)["status"]["updateRevision"]
    for ordinal in range(3):
        meta = pod(world, ordinal)["metadata"]
        assert meta["labels"]["controller-revision-hash"] == revision
        assert "cache.example.com/in-place" not in meta["annotations"]
    assert uids(world) == before
    assert world.condition("Progressing") == ("False", "Complete")
    assert world.condition("Ready") == ("True", "AllServersReady")
    assert world.status["image"] == "memcached:2"
    assert [each for each in reasons(world) if each in ("Restarting", "Restarted")] == ["Restarting", "Restarted"] * 3


async def test_what_comes_next_waits_for_the_cache_and_for_no_time() -> None:
    world = await warm()
    change(world, image="memcached:2")
    await world.reconcile_shown()
    control(world)
    world.api.refuse(CHANGE.partition(" ")[0], "Pod", Conflict(409, "Conflict", "the object has been modified"))
    for again in (CHANGE, CHANGE, SETTLE):
        world.show()
        if again == SETTLE:
            restart(world, 2)
            world.show()
        result = await world.reconcile(after_s=DELAY_S)
        assert again in world.api.verbs()
        restarted = again == CHANGE and image(world, 2) == "memcached:2"
        assert result.requeue_after_s == (LATE_AFTER_S if restarted else 0.0)


MIRROR = "mirror.example.com/memcached:1"


def mirror(world: World, *ordinals: int) -> None:
    """Let these pods have another image than their template's, as where a webhook gave it to them."""
    for ordinal in ordinals:
        pod(world, ordinal)["spec"]["containers"][0]["image"] = MIRROR
        world.api.put(pod(world, ordinal))


async def test_a_pod_to_which_admission_gave_its_image_is_replaced_and_the_event_said_so() -> None:
    world = await warm()
    mirror(world, 0, 1, 2)
    change(world, image="memcached:2")
    assert await sent(world) == [WRITE, EVICT]
    ((reason, note),) = costs(world)
    assert reason == "RollingChange"
    assert note.startswith(
        "spec.image: 3 servers are replaced, one at a time, from the highest ordinal; each loses its"
    )
    assert "; the image of 3 was replaced when their pods were created, as by an admission webhook, " in note
    assert "caches are kept" not in note
    assert "Servers are replaced, one at a time" in world.message("Progressing")


async def test_of_servers_of_which_some_have_the_image_of_their_template_these_keep_their_items() -> None:
    world = await warm()
    mirror(world, 1)
    change(world, image="memcached:2")
    assert await sent(world) == [WRITE, CHANGE]
    ((reason, note),) = costs(world)
    assert reason == "InPlaceChange"
    assert "caches are kept" in note
    assert "cannot be repeated in place: 1 server is replaced, and loses its keys. spec.image: " in note
    restart(world, 2)
    await sent(world)
    world.clock.advance(PAUSE_S)
    assert await sent(world) == [EVICT]


async def test_servers_that_an_earlier_change_has_yet_to_replace_are_announced_as_such(named: World) -> None:
    """They were made without a file that has their items."""
    change(named)
    assert EVICT in await sent(named)
    change(named, image="memcached:2")
    await sent(named)
    (reason, note) = costs(named)[-1]
    assert reason == "InPlaceChange"
    assert "; an earlier change that needs new pods has not reached 2 yet: 2 servers are replaced, and lose " in note


async def test_where_an_earlier_change_has_reached_no_server_all_are_announced_to_be_replaced(named: World) -> None:
    named.memcached(size=3, workload="StatefulSet", warmRestart=True, rollout={"paused": True})
    await sent(named)
    change(named, image="memcached:2", rollout={"paused": True})
    await sent(named)
    (reason, note) = costs(named)[-1]
    assert reason == "RollingChange"
    assert "caches are kept" not in note


async def test_a_restart_alone_leaves_each_image_as_it_is() -> None:
    world = await warm()
    mirror(world, 0, 1, 2)
    memcached = world.api.objects["Memcached", NAMESPACE, NAME]
    memcached["metadata"]["annotations"] = {"cache.example.com/restart": "monday"}
    world.api.put(memcached)
    assert await sent(world) == [WRITE, CHANGE]
    assert [image(world, each) for each in range(3)] == [MIRROR] * 3
    assert [reason for reason, _ in costs(world)] == ["InPlaceChange"]
    restart(world, 2)
    assert await sent(world) == [SETTLE]


async def test_a_server_that_cannot_run_in_its_pod_after_going_back_is_replaced() -> None:
    world = await warm()
    change(world, image="memcached:wrong")
    await sent(world)
    (status,) = pod(world, 2)["status"]["containerStatuses"]
    status["state"] = {"waiting": {"reason": "ImagePullBackOff", "message": "it is so"}}
    get_ready(world, 2, ready=False)
    await sent(world)
    change(world)
    assert await sent(world) == [WRITE, CHANGE]
    assert image(world, 2) == IMAGE
    world.clock.advance(LATE_AFTER_S)
    assert await sent(world) == [EVICT]
    assert world.condition("Ready") == ("True", "AllServersReady")


async def test_a_new_leader_goes_on_where_the_former_one_was() -> None:
    world = await warm()
    change(world, image="memcached:2")
    await sent(world)
    leader = World(api=world.api)
    leader.clock.advance(world.clock.now - leader.clock.now)
    assert await sent(leader) == []
    restart(leader, 2)
    assert await sent(leader) == [SETTLE]
    leader.clock.advance(PAUSE_S)
    assert await sent(leader) == [CHANGE]
    assert image(leader, 1) == "memcached:2"


async def test_without_the_permission_servers_are_replaced_and_the_condition_says_why() -> None:
    world = await warm()
    world.api.refuse(CHANGE.partition(" ")[0], "Pod", *[Forbidden(403, "Forbidden", NO_RIGHT)] * 9)
    change(world, image="memcached:2")
    assert (await sent(world))[:3] == [WRITE, CHANGE, EVICT]
    assert world.condition("Degraded") == ("True", "Forbidden")
    assert world.message("Degraded").startswith("Servers are replaced, and lose their items, as they cannot be ")
    for _ in range(2):
        world.clock.advance(PAUSE_S)
        await sent(world)
    assert all(image(world, ordinal) == "memcached:2" for ordinal in range(3))
    assert world.condition("Degraded") == ("False", "AsExpected")


async def test_a_policy_that_refuses_the_image_stops_it_at_no_cost() -> None:
    world = await warm()
    words = 'admission webhook "images.example.com" denied the request: memcached:2 is not signed'
    world.api.refuse(CHANGE.partition(" ")[0], "Pod", *[Forbidden(403, "Forbidden", words)] * 9)
    change(world, image="memcached:2")
    assert EVICT not in await sent(world)
    assert world.condition("Degraded")[0] == "True"
    assert words in world.message("Degraded")


@pytest.mark.parametrize("error", [ServerError(500, "InternalError", AWAY), TooManyRequests(429, "", AWAY)])
async def test_a_failure_is_told_and_tried_again(error: ServerError | TooManyRequests) -> None:
    world = await warm()
    world.api.refuse(CHANGE.partition(" ")[0], "Pod", *[error] * 2)
    change(world, image="memcached:2")
    for _ in range(3):
        world.show()
        with suppress(type(error)):
            await world.reconcile(after_s=DELAY_S)
        control(world)
    assert "cannot be changed in place: etcd is away" in world.message("Ready")
    assert CHANGE in await sent(world)


async def test_a_bad_image_stops_after_one_server_and_the_former_one_comes_back_in_place() -> None:
    world = await warm()
    before = uids(world)
    change(world, image="memcached:wrong")
    await sent(world)
    (status,) = pod(world, 2)["status"]["containerStatuses"]
    running = status["state"]
    status["state"] = {"waiting": {"reason": "ImagePullBackOff", "message": "it is so"}}
    get_ready(world, 2, ready=False)
    assert await sent(world) == []
    assert world.condition("Degraded") == ("True", "RolloutStuck")
    message = f"The server {NAME}-2 is not ready after its change in place (ImagePullBackOff), so the other 2 are not "
    assert message in world.message("Degraded")
    change(world)
    assert await sent(world) == [WRITE, CHANGE]
    status["state"] = running
    restart(world, 2)
    assert await sent(world) == [SETTLE]
    assert (image(world, 2), uids(world)) == (IMAGE, before)
    assert world.condition("Ready") == ("True", "AllServersReady")


@pytest.mark.parametrize(
    ("has", "type_", "note"),
    [
        (5000, "Normal", "with 5000 of 5000 items"),
        (0, "Warning", f"with 0 of 5000 items; the log of its container says why: kubectl logs {NAME}-2"),
        (None, "Normal", "in its pod"),
    ],
)
async def test_how_many_items_came_back_is_told_if_it_is_said_in_time(has: int | None, type_: str, note: str) -> None:
    world = await warm(queried=True)
    record_event(world, 2, 5000)
    change(world, image="memcached:2")
    await sent(world)
    restart(world, 2)
    assert await sent(world, reconciles=1) == []
    if has is None:
        world.clock.advance(PAUSE_S)
    else:
        record_event(world, 2, has)
    assert (await sent(world))[0] == SETTLE
    (event,) = [each for each in world.recorder.events if each.reason == "Restarted"]
    assert event.type == type_
    assert event.note.endswith(note)


async def test_a_change_that_turns_out_to_lose_items_stops_there_and_goes_on_when_it_is_requested() -> None:
    world = await warm(queried=True)
    record_event(world, 2, 5000)
    change(world, image="memcached:2")
    await sent(world)
    restart(world, 2)
    world.show()
    record_event(world, 2, 0)
    assert await sent(world) == [SETTLE]
    for _ in range(3):
        world.clock.advance(PAUSE_S)
        assert await sent(world) == []
    assert world.condition("Degraded") == ("True", "RolloutStuck")
    assert world.message("Degraded") == (
        f"The server {NAME}-2 is back in its pod without its items, so the other 2 are not changed. The log of its "
        "container says why. Restore the previous specification, or change the annotation cache.example.com/restart "
        "of the Memcached to go on."
    )
    memcached = world.api.objects["Memcached", NAMESPACE, NAME]
    memcached["metadata"]["annotations"] = {"cache.example.com/restart": "on"}
    world.api.put(memcached)
    assert await sent(world) == [WRITE, CHANGE]
    assert world.condition("Degraded") == ("False", "AsExpected")


def record_event(world: World, ordinal: int, items: int) -> None:
    """Let a server tell how many items it has."""
    world.show()
    assert world.stats_cache is not None
    found = next(each for each in world.caches.pods.values() if each.ordinal == ordinal)
    world.stats_cache.record(found, StatsAnswer.of({b"version": b"1.6.45", b"curr_items": b"%d" % items}))


async def test_an_image_without_a_shell_is_told_once_its_container_cannot_start() -> None:
    world = await warm()
    change(world, image="memcached:bare")
    await sent(world)
    (status,) = pod(world, 2)["status"]["containerStatuses"]
    status["state"] = {"terminated": {"reason": "StartError", "message": 'exec: "sh": executable file not found'}}
    get_ready(world, 2, ready=False)
    assert await sent(world) == []
    assert world.condition("Degraded") == ("True", "InvalidSpec")
    assert "spec.warmRestart: must be false with an image that contains no sh" in world.message("Degraded")
    assert "the other 2 are not changed" in world.message("Degraded")
