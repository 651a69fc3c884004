"""What tests of servers that run share: a StatefulSet with its controller and its node, and what was sent and said."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from memcached_operator.servers.server_connection import ErrorKind, Failure
from tests.unit.fake_server import Json
from tests.unit.memcached_operator.support import NAME, NAMESPACE, live_pod
from tests.unit.memcached_operator.world import DELAY_S, World

EVICT, RESIZE = "create/eviction Pod", "strategic_merge_patch/resize Pod"
START_S = 1_800_000_000
UNREACHABLE = Failure(ErrorKind.UNREACHABLE, "no connection within 1 s")
PAUSE_S = 60
# Of a container that its node starts again for other memory.
RESTARTS = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]


def stateful_set(world: World) -> Json:
    return world.api.objects["StatefulSet", NAMESPACE, NAME]


def template_of(found: Json) -> Json:
    template: Json = found["spec"]["template"]
    return template


def pod(world: World, ordinal: int) -> Json:
    return world.api.objects["Pod", NAMESPACE, f"{NAME}-{ordinal}"]


def control(world: World, *, unready: tuple[int, ...] = ()) -> None:
    """What the StatefulSet's controller and the kubelet do: name the revision, make what is missing, resize."""
    found = stateful_set(world)
    template = template_of(found)
    revision = f"{hash(json.dumps(template, sort_keys=True))}"
    status = {"observedGeneration": found["metadata"]["generation"], "updateRevision": revision}
    if found["status"] != status:
        found["status"] = status
        world.api.put(found)
    for ordinal in range(found["spec"]["replicas"]):
        if ("Pod", NAMESPACE, f"{NAME}-{ordinal}") in world.api.objects:
            continue
        made = live_pod()
        labels = {"controller-revision-hash": revision, "statefulset.kubernetes.io/pod-name": f"{NAME}-{ordinal}"}
        made["metadata"]["ownerReferences"][0] |= {"kind": "StatefulSet", "name": NAME}
        made["metadata"] |= {
            "name": f"{NAME}-{ordinal}",
            "uid": f"uid-{world.api.version}-{ordinal}",
            "annotations": dict(template["metadata"]["annotations"]),
        }
        made["metadata"]["labels"] |= labels
        made["spec"] = json.loads(json.dumps(template["spec"]))
        (condition,) = made["status"]["conditions"]
        condition["status"] = "False" if ordinal in unready else "True"
        condition["lastTransitionTime"] = rfc3339(world)
        made["status"]["podIP"] = f"10.0.0.{ordinal}"
        world.api.put(made)
    for key in [key for key in world.api.objects if key[0] == "Pod"]:
        resize(world, world.api.objects[key])


async def run_for_long(world: World, **spec: Any) -> World:
    """Servers of that specification that have run for an hour, with nothing left to do."""
    world.memcached(**spec)
    await world.reconcile_shown()
    control(world)
    await world.settle()
    world.clock.advance(3600)
    await world.settle()
    return world


def resize(world: World, found: Json, **condition: str) -> None:
    """Let the node do what is asked of it, or say why not."""
    (container,) = [each for each in found["spec"]["containers"] if each["name"] == "memcached"]
    (status,) = [each for each in found["status"]["containerStatuses"] if each["name"] == "memcached"]
    if condition:
        found["status"]["conditions"] = [found["status"]["conditions"][0], {"status": "True", **condition}]
        world.api.put(found)
    elif status.get("resources") != container["resources"] and len(found["status"]["conditions"]) == 1:
        status["resources"] = json.loads(json.dumps(container["resources"]))
        world.api.put(found)


def start_again(world: World, ordinal: int) -> None:
    """Let a container have started again."""
    pod(world, ordinal)["status"]["containerStatuses"][0]["restartCount"] += 1
    world.api.put(pod(world, ordinal))


def rfc3339(world: World, *, in_s: float = 0.0) -> str:
    return datetime.fromtimestamp(START_S + world.clock.now + in_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def sent(world: World, *, reconciles: int = 5) -> list[str]:
    """What is written besides the status while the StatefulSet's controller keeps up, within a few seconds."""
    found = []
    for _ in range(reconciles):
        world.show()
        await world.reconcile(after_s=DELAY_S)
        found += [each for each in world.api.verbs() if not each.startswith("get ") and "Memcached" not in each]
        control(world)
    return found


def get_ready(world: World, ordinal: int, *, ready: bool = True) -> None:
    """Let a server be ready now, or not any more."""
    (condition,) = pod(world, ordinal)["status"]["conditions"]
    condition |= {"status": "True" if ready else "False", "lastTransitionTime": rfc3339(world)}
    world.api.put(pod(world, ordinal))


def reasons(world: World) -> list[str]:
    return [each.reason for each in world.recorder.events]


def costs(world: World) -> list[tuple[str, str]]:
    return [(each.reason, each.note) for each in world.recorder.events if each.reason.endswith("Change")]


async def sent_of(world: World) -> None:
    for _ in range(3):
        world.show()
        await world.reconcile(after_s=DELAY_S)
