"""The ConfigMap with the scripts of pods: there before the pods, for as long as one may need it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import pytest

from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects import pod_template
from memcached_operator.core.objects.labels import OWNER_UID_ANNOTATION, RESTORED_ANNOTATION, labels
from memcached_operator.core.objects.scripts import suffix
from memcached_operator.features.tls import secrets
from operator_runtime import ObjectKey
from operator_runtime.client.errors import Forbidden
from tests.unit.fake_server import Json
from tests.unit.memcached_operator.support import NAME, NAMESPACE, NO_RIGHT, UID
from tests.unit.memcached_operator.world import DELAY_S, KEY, PATCH, SLOWLY, WRITE_STATUS, World

AUTH: Json = {"size": 2, "auth": {"secretName": "passwords"}}
REFUSED = Forbidden(403, "Forbidden", NO_RIGHT)


def named(world: World) -> list[str]:
    return sorted(name for kind, _, name in world.api.objects if kind == "ConfigMap")


def mounted(world: World) -> str:
    """The ConfigMap that the template names."""
    volumes = world.deployment["spec"]["template"]["spec"]["volumes"]
    (found,) = (each["configMap"]["name"] for each in volumes if "configMap" in each)
    return str(found)


async def writes(world: World) -> list[str]:
    return [each for each in await world.writes() if each != WRITE_STATUS]


def ready(world: World, scripts: str) -> None:
    """Have all servers ready, made with these scripts, and the Deployment rolled out."""
    world.pods(2)
    for (kind, _, _), pod in [*world.api.objects.items()]:
        if kind == "Pod":
            template = world.deployment["spec"]["template"]
            pod["metadata"]["annotations"] = copy.deepcopy(template["metadata"]["annotations"])
            pod["spec"]["volumes"] = [{"name": "operator-scripts", "configMap": {"name": scripts}}]
            world.api.put(pod)
    deployment = world.deployment
    deployment["status"] = {
        "observedGeneration": deployment["metadata"].get("generation", 1),
        "conditions": [{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}],
    }
    world.api.put(deployment)


@pytest.fixture
async def running(world: World) -> World:
    """Servers that are ready."""
    world.memcached(**AUTH)
    await world.reconcile_shown()
    ready(world, mounted(world))
    await world.settle()
    assert world.condition("Ready")[0] == "True"
    return world


@pytest.fixture
def upgrade(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Has another release of the operator run, whose script differs."""

    def upgraded() -> None:
        monkeypatch.setattr(secrets, "script", lambda _: "exit 1\n")
        pod_template._made.cache_clear()

    yield upgraded
    pod_template._made.cache_clear()


async def test_it_is_made_before_the_servers_and_without_such_a_feature_there_is_none(world: World) -> None:
    world.memcached(**AUTH)
    assert await writes(world) == ["create ConfigMap", "create Deployment"]
    assert named(world) == [mounted(world)]
    made = world.api.objects["ConfigMap", NAMESPACE, mounted(world)]
    assert (made["immutable"], list(made["data"])) == (True, ["reloader.sh"])
    assert made["metadata"]["ownerReferences"][0]["uid"] == UID
    plain = World()
    plain.memcached(size=2)
    assert await writes(plain) == ["create Deployment"]


async def test_one_that_somebody_deletes_or_makes_otherwise_is_made_again(running: World) -> None:
    name = mounted(running)
    made = copy.deepcopy(running.api.objects["ConfigMap", NAMESPACE, name])
    del running.api.objects["ConfigMap", NAMESPACE, name]
    assert await writes(running) == ["create ConfigMap"]
    other = copy.deepcopy(running.api.objects["ConfigMap", NAMESPACE, name])
    running.api.put(other | {"data": {"reloader.sh": "exit 1\n"}})
    assert await writes(running) == ["delete ConfigMap", "create ConfigMap"]
    assert running.api.objects["ConfigMap", NAMESPACE, name]["data"] == made["data"]


async def test_a_former_one_stays_until_no_pod_has_it(running: World, upgrade: Callable[[], None]) -> None:
    former = mounted(running)
    upgrade()
    assert await writes(running) == ["create ConfigMap", PATCH]
    new = mounted(running)
    assert new != former
    ready(running, former)
    assert await writes(running) == []
    assert named(running) == sorted([former, new])
    ready(running, new)
    assert await writes(running) == ["delete ConfigMap"]
    assert named(running) == [new]


async def test_one_of_another_release_is_not_reported_as_one_that_was_deleted(
    running: World, upgrade: Callable[[], None]
) -> None:
    running.recorder.events.clear()
    upgrade()
    assert await writes(running) == ["create ConfigMap", PATCH]
    notes = [each.note for each in running.recorder.events if each.reason == "Created"]
    assert notes == [f"Created ConfigMap {mounted(running)}"]


async def test_a_former_one_that_others_hold_is_nothing_to_wait_for(
    running: World, upgrade: Callable[[], None]
) -> None:
    former = running.api.objects["ConfigMap", NAMESPACE, mounted(running)]
    former["metadata"]["finalizers"] = ["backup.example.com/copy"]
    upgrade()
    await writes(running)
    ready(running, mounted(running))
    assert await writes(running) == ["delete ConfigMap"]
    for _ in range(4):
        await running.reconcile_shown()
        running.clock.advance(DELAY_S)
        assert running.condition("Ready") == ("True", "AllServersReady")


async def test_where_it_cannot_be_made_no_server_is_replaced_and_a_new_one_waits_for_it(
    running: World, upgrade: Callable[[], None]
) -> None:
    former = mounted(running)
    upgrade()
    running.api.refuse("create", "ConfigMap", REFUSED)
    assert await writes(running) == ["create ConfigMap"]
    assert running.condition("Degraded") == ("True", "Forbidden")
    assert NO_RIGHT in running.message("Degraded")
    assert mounted(running) == former
    running.clock.advance(SLOWLY.requeue_after_s or 0.0)
    assert await writes(running) == ["create ConfigMap", PATCH]

    first = World()
    first.api.refuse("create", "ConfigMap", REFUSED)
    first.memcached(**AUTH)
    assert await writes(first) == ["create ConfigMap", "create Deployment"]
    assert first.condition("Degraded") == ("True", "Forbidden")


async def test_while_it_is_missing_other_memcacheds_replace_servers_and_the_change_stays_the_users(
    running: World, upgrade: Callable[[], None]
) -> None:
    lock, other = running.reconciler._objects.lock, ObjectKey(NAMESPACE, "other")
    assert lock.take(KEY)
    running.reconciler._remembered[KEY].in_lock = True
    assert not lock.take(other)
    upgrade()
    running.api.refuse("create", "ConfigMap", REFUSED)
    running.memcached(**AUTH | {"threads": 8})
    assert await writes(running) == ["create ConfigMap"]
    assert lock.take(other)
    assert "RollingChange" not in [each.reason for each in running.recorder.events]
    running.clock.advance(SLOWLY.requeue_after_s or 0.0)
    assert await writes(running) == ["create ConfigMap", PATCH]
    (note,) = (each.note for each in running.recorder.events if each.reason == "RollingChange")
    assert note.startswith("spec.threads: 2 servers are replaced")


async def test_while_one_is_missing_servers_are_scaled_and_put_right_as_they_are(
    running: World, upgrade: Callable[[], None]
) -> None:
    former = mounted(running)
    upgrade()
    running.api.refuse("create", "ConfigMap", *[REFUSED] * 9)
    running.memcached(**AUTH | {"size": 3})
    assert await writes(running) == ["create ConfigMap", PATCH]
    assert (running.deployment["spec"]["replicas"], mounted(running)) == (3, former)
    running.deployment["spec"]["replicas"] = 1
    running.api.put(running.deployment)
    assert await writes(running) == [PATCH]
    assert (running.deployment["spec"]["replicas"], mounted(running)) == (3, former)


async def test_a_foreign_one_of_its_name_is_left_alone_and_holds_servers_back(
    running: World, upgrade: Callable[[], None]
) -> None:
    upgrade()
    new = NAME + suffix(pod_template.scripts_of(Spec.model_validate(AUTH)))
    meta = {"name": new, "namespace": NAMESPACE, "labels": labels(NAME)}
    running.api.put({"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta, "data": {"reloader.sh": "exit 3"}})
    before = copy.deepcopy(running.deployment["spec"])
    assert await writes(running) == []
    assert running.deployment["spec"] == before
    assert running.condition("Degraded") == ("True", "NotControlled")


async def test_a_restored_one_is_handed_over(running: World) -> None:
    name = mounted(running)
    for key in (("ConfigMap", NAMESPACE, name), ("Deployment", NAMESPACE, NAME)):
        restored = running.api.objects[key]
        del restored["metadata"]["ownerReferences"]
        restored["metadata"]["annotations"][OWNER_UID_ANNOTATION] = "former"
        running.api.put(restored)
    memcached = running.memcached(**AUTH)
    memcached["metadata"]["annotations"] = {RESTORED_ANNOTATION: "former"}
    running.api.put(memcached)
    await writes(running)
    handed = running.api.objects["ConfigMap", NAMESPACE, name]["metadata"]
    assert handed["annotations"][OWNER_UID_ANNOTATION] == UID
    assert handed["ownerReferences"][0]["uid"] == UID
