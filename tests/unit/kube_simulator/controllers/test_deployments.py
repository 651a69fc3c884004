"""Deployments: their ReplicaSets, rollouts, pauses, history and status."""

from typing import Any

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.requests.types import Target, Written
from tests.unit.kube_simulator.controllers.world import World, condition, deployment

REVISION = "deployment.kubernetes.io/revision"
REPLICA_SETS = "replicasets.apps"
DEPLOYMENTS = "deployments.apps"


async def deploy(world: World, **spec: object) -> None:
    await world.create(DEPLOYMENTS, deployment(**spec))  # type: ignore[arg-type]
    await world.settle()


async def test_a_refused_replica_set_is_reported_with_the_refusal(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = world.api.create

    async def refusing(target: Target, *rest: Any) -> Written:
        if target.resource.collection == REPLICA_SETS:
            raise ApiError(403, "Forbidden", "no more of these")
        return await create(target, *rest)

    monkeypatch.setattr(world.api, "create", refusing)
    await deploy(world, replicas=1)
    progressing = condition(world.get(DEPLOYMENTS, "web"), "Progressing")
    assert (progressing["status"], progressing["reason"]) == ("False", "ReplicaSetCreateError")
    assert progressing["message"] == "no more of these"


async def test_nothing_is_written_once_all_is_as_it_should_be(world: World) -> None:
    await deploy(world, replicas=2)
    await world.ready()
    revision = world.store.revision
    await world.later(1, "web")
    assert world.store.revision == revision


async def test_what_was_changed_while_the_controllers_were_stopped_is_seen_to_later(world: World) -> None:
    await deploy(world, replicas=1)
    await world.manager.stop()
    await world.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 2}})
    await world.delete("pods", world.pods()[0]["metadata"]["name"])
    await world.settle()
    assert world.pods() == []
    world.manager.start()
    await world.settle()
    assert len(world.pods()) == 2
