"""Another client rewrites a field in a loop: what the operator writes and says then."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from operator_runtime.client.errors import ServerError
from operator_runtime.owned.contention import CONTESTED_EVERY_S, REPAIRS
from operator_runtime.owned.owners import REASON
from tests.unit.fake_server import Json
from tests.unit.memcached_operator.support import IMAGE, NAME, NAMESPACE, container_of
from tests.unit.memcached_operator.world import CREATE, GET_DEPLOYMENT, GET_MEMCACHED, KEY, PATCH, WRITE_STATUS, World

IMAGE_FIELD = "spec.template.spec.containers[memcached].image"
IMAGE_OWNED: Json = {
    "f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"memcached"}': {"f:image": {}}}}}}
}
NODES_OWNED: Json = {"f:status": {"f:nodes": {}}}


def managed(manager: str, fields: Json, subresource: str = "") -> Json:
    return {"manager": manager, "time": "2026-11-21T12:00:00Z", "subresource": subresource, "fieldsV1": fields}


class OtherManager:
    """Rewrites something at each `strike`, and lets the operator reconcile as soon as it may."""

    def __init__(self, world: World, edit: Callable[[int], object]) -> None:
        self.world = world
        self.edit = edit
        self.number = 0
        self.writes: list[tuple[float, str]] = []

    def strike(self) -> None:
        self.number += 1
        self.edit(self.number)
        self.world.show()

    async def reconcile_shown(self) -> float | None:
        """Wait until the key may be reconciled, and reconcile; after which time it is to be reconciled again."""
        self.world.clock.advance(self.world.wait_s(KEY))
        result = await self.world.reconcile()
        verbs = [verb for verb in self.world.api.verbs() if not verb.startswith("get")]
        self.writes += [(self.world.clock.now, verb) for verb in verbs]
        self.world.show()
        return result.requeue_after_s

    async def contend(self, rounds: int) -> None:
        for _ in range(rounds):
            self.strike()
            await self.reconcile_shown()


@pytest.fixture
def of_image(running: World) -> OtherManager:
    def edit(number: int) -> None:
        container_of(running.deployment)["image"] = f"evil:{number}"
        running.deployment["metadata"]["managedFields"] = [managed("kubectl-edit", IMAGE_OWNED)]
        running.api.put(running.deployment)

    return OtherManager(running, edit)


@pytest.fixture(autouse=True)
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO):
        yield caplog


async def test_after_a_few_repairs_a_warning_names_the_field_and_the_other_manager_once(
    of_image: OtherManager, caplog: pytest.LogCaptureFixture
) -> None:
    await of_image.contend(REPAIRS - 1)
    assert [event.type for event in of_image.world.recorder.events] == ["Normal"] * (REPAIRS - 1)
    caplog.clear()
    of_image.strike()
    await of_image.reconcile_shown()
    assert of_image.world.api.verbs() == [GET_DEPLOYMENT, PATCH], "it is read before it is put right"
    *_, warning = of_image.world.recorder.events
    assert (warning.type, warning.reason) == ("Warning", REASON)
    assert warning.note.startswith(f'"kubectl-edit" keeps changing {IMAGE_FIELD} of the Deployment: corrected 5 times')
    assert "Stop that client" in warning.note
    assert caplog.messages == [f"contested: {warning.note}"]

    caplog.clear()
    of_image.world.recorder.events.clear()
    await of_image.contend(20)
    assert GET_DEPLOYMENT not in of_image.world.api.verbs()
    assert (caplog.messages, of_image.world.recorder.events) == ([], [])
    assert container_of(of_image.world.deployment)["image"] in (IMAGE, f"evil:{of_image.number}")


async def test_a_new_size_is_not_kept_waiting(running: World) -> None:
    def edit(number: int) -> None:
        running.deployment["spec"]["replicas"] = 10 + number
        running.api.put(running.deployment)

    world, of_replicas = running, OtherManager(running, edit)
    await of_replicas.contend(REPAIRS + 3)
    world.memcached(size=5)
    world.show()
    assert world.wait_s(KEY) == 0.0
    world.recorder.events.clear()
    await of_replicas.reconcile_shown()
    assert world.deployment["spec"]["replicas"] == 5
    assert world.recorder.events[0].reason == "Scaled", "and is told of as usual"
    of_replicas.strike()
    assert world.wait_s(KEY) == CONTESTED_EVERY_S, "what comes after is contention again"
    await of_replicas.reconcile_shown()
    assert world.status["observedGeneration"] == 2


@pytest.mark.parametrize(
    ("entries", "who"),
    [
        (None, "Another client keeps"),
        ([managed("test-manager", IMAGE_OWNED)], 'Another client that calls itself "test-manager"'),
        ([managed("test-manager", IMAGE_OWNED), managed("helm", IMAGE_OWNED)], '"helm" keeps'),
        ([managed("helm", {"f:spec": {"f:paused": {}}})], 'Another client (the last one to write the object is "he'),
        ([managed("kubelet", {"f:status": {}}, "status")], "Another client keeps"),
    ],
)  # fmt: skip
async def test_the_other_manager_is_named_if_known(
    of_image: OtherManager, entries: list[Json] | None, who: str
) -> None:
    await of_image.contend(REPAIRS - 1)
    of_image.strike()
    of_image.world.deployment["metadata"]["managedFields"] = entries
    await of_image.reconcile_shown()
    (warning,) = (event for event in of_image.world.recorder.events if event.type == "Warning")
    assert warning.note.startswith(who)


async def test_that_the_other_manager_cannot_be_read_keeps_nobody_from_repairing(of_image: OtherManager) -> None:
    await of_image.contend(REPAIRS - 1)
    of_image.strike()
    of_image.world.api.refuse("get", "Deployment", ServerError(500, "InternalError", "no"))
    await of_image.reconcile_shown()
    assert container_of(of_image.world.deployment)["image"] == IMAGE
    assert any(event.note.startswith("Another client keeps") for event in of_image.world.recorder.events)


async def test_what_the_gauge_shows(of_image: OtherManager) -> None:
    def contested() -> float | object:
        families = {family.name: family for family in of_image.world.reconciler.families()}
        (sample,) = families["memcached_operator_contested_memcacheds"].samples
        return sample.value

    await of_image.contend(REPAIRS - 1)
    assert contested() == 0
    await of_image.contend(1)
    assert contested() == 1
    del of_image.world.api.objects["Memcached", NAMESPACE, NAME]
    of_image.world.show()
    assert of_image.world.wait_s(KEY) == 0.0
    await of_image.reconcile_shown()
    assert contested() == 0


# The Deployment as a whole


async def test_a_deployment_that_is_deleted_in_a_loop_is_made_again_once_in_two_seconds_and_told_of_once(
    running: World, caplog: pytest.LogCaptureFixture
) -> None:
    def delete(number: int) -> None:
        running.api.objects.pop(("Deployment", NAMESPACE, NAME), None)
        running.pods(0)

    world, of_existence = running, OtherManager(running, delete)
    await of_existence.contend(REPAIRS)
    (warning,) = (event for event in world.recorder.events if event.type == "Warning")
    assert warning.reason == REASON
    assert warning.note.startswith("Another client keeps deleting the Deployment: recreated 5 times within 60 s")
    assert [event.reason for event in world.recorder.events].count("Created") == REPAIRS - 1
    assert caplog.messages[-1] == f"contested: {warning.note}"

    caplog.clear()
    world.recorder.events.clear()
    began = len(of_existence.writes)
    await of_existence.contend(40)
    times = [at for at, _ in of_existence.writes[began - 1 :]]
    assert all(later - earlier >= CONTESTED_EVERY_S for earlier, later in pairwise(times))
    assert world.status.get("readyReplicas", 0) == 0, "the status goes on"
    made = [verb for _, verb in of_existence.writes[began:] if verb == CREATE]
    assert len(made) == 20, "it is not given up either"
    assert (caplog.messages, world.recorder.events) == ([], [])


# The status


async def test_a_field_of_the_status_is_contested_alike(running: World) -> None:
    memcached = running.api.objects["Memcached", NAMESPACE, NAME]

    def edit(number: int) -> None:
        memcached["status"]["nodes"] = [f"evil-{number}"]
        memcached["metadata"]["managedFields"] = [managed("other-operator", NODES_OWNED, "status")]
        running.api.put(memcached)

    world, of_nodes = running, OtherManager(running, edit)
    desired = world.status["nodes"]
    world.pods(2)
    await of_nodes.contend(REPAIRS)
    assert world.api.verbs() == [GET_MEMCACHED, WRITE_STATUS]
    (warning,) = (event for event in world.recorder.events if event.type == "Warning")
    assert warning.note.startswith('"other-operator" keeps changing status.nodes of the Memcached: corrected 5 times')
    began = len(of_nodes.writes)
    await of_nodes.contend(20)
    assert world.status["nodes"] == desired
    times = [at for at, _ in of_nodes.writes[began - 1 :]]
    assert len(times) == 21
    assert all(later - earlier >= CONTESTED_EVERY_S for earlier, later in pairwise(times))


async def test_pods_that_come_and_go_and_a_condition_that_somebody_else_keeps_are_no_contention(running: World) -> None:
    memcached: Any = running.api.objects["Memcached", NAMESPACE, NAME]
    theirs = {"type": "Audited", "status": "True", "reason": "Fine"}
    for number in range(12):
        running.pods(number % 3)
        conditions = [each for each in memcached["status"]["conditions"] if each["type"] != "Audited"]
        memcached["status"]["conditions"] = [*conditions, theirs | {"message": str(number)}]
        running.api.put(memcached)
        await running.settle()
    assert not [event for event in running.recorder.events if event.type == "Warning"]
    assert len(running.owners.contention) == 0
