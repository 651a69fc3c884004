"""What controllers say by events: counted, combined, and not without end."""

import itertools

import pytest

from kube_simulator.controllers.base import Context
from kube_simulator.controllers.events import Recorder
from kube_simulator.errors import ApiError
from kube_simulator.values import Json
from tests.unit.kube_simulator.controllers.world import NAMESPACE, World, stamp, turns


@pytest.fixture
async def recorder(world: World) -> Recorder:
    context = Context(world.api, world.store, world.registry, lambda: world.moment)
    names = itertools.count(0xABC)
    return Recorder(context, lambda: next(names))


@pytest.fixture
async def subject(world: World) -> Json:
    return await world.create("configmaps", {"metadata": {"name": "a"}})


async def say(world: World, recorder: Recorder, about: Json, *messages: str, reason: str = "Happened") -> None:
    recorder.start()
    for message in messages:
        recorder.say(about, "Normal", reason, message, "tester")
    await heard(recorder)
    await recorder.stop()


async def heard(recorder: Recorder) -> None:
    await turns(lambda: recorder.idle)


async def test_an_event_is_written_as_kubernetes_controllers_do(
    world: World, recorder: Recorder, subject: Json
) -> None:
    await say(world, recorder, subject, "it happened")
    found = world.get("events", "a.abc")
    meta = found.pop("metadata")
    assert (meta["name"], meta["namespace"]) == ("a.abc", NAMESPACE)
    now = stamp(world.moment)
    assert found == {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "a",
            "namespace": NAMESPACE,
            "resourceVersion": subject["metadata"]["resourceVersion"],
            "uid": subject["metadata"]["uid"],
        },
        "type": "Normal",
        "reason": "Happened",
        "message": "it happened",
        "count": 1,
        "eventTime": None,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": "tester"},
        "reportingComponent": "tester",
        "reportingInstance": "",
    }


async def test_the_same_words_again_raise_the_count(world: World, recorder: Recorder, subject: Json) -> None:
    await say(world, recorder, subject, "a", "b", "a", "a")
    found = {each["note"]: each["deprecatedCount"] for each in world.all("events")}
    assert found == {"a": 3, "b": 1}


async def test_an_event_that_is_gone_is_made_again(world: World, recorder: Recorder, subject: Json) -> None:
    await say(world, recorder, subject, "a")
    await world.delete("events", "a.abc")
    await say(world, recorder, subject, "a")
    assert [each["deprecatedCount"] for each in world.all("events")] == [1]


async def test_from_the_tenth_similar_one_on_they_are_combined(world: World, recorder: Recorder, subject: Json) -> None:
    await say(world, recorder, subject, *(f"made {number}" for number in range(12)))
    await say(world, recorder, subject, "something else", reason="Other")
    combined = "(combined from similar events): made 11"
    assert sorted(world.messages()) == sorted([*(f"made {number}" for number in range(9)), combined, "something else"])
    counts = {each["note"]: each["deprecatedCount"] for each in world.all("events")}
    assert counts[combined] == 3


async def test_who_says_too_much_of_one_object_is_not_heard_for_a_while(
    world: World, recorder: Recorder, subject: Json
) -> None:
    other = await world.create("configmaps", {"metadata": {"name": "b"}})
    await say(world, recorder, subject, *(["again"] * 40))
    await say(world, recorder, other, "of another")
    counts = {each["note"]: each["deprecatedCount"] for each in world.all("events")}
    assert counts == {"again": 25, "of another": 1}
    await world.later(300)
    await say(world, recorder, subject, "again", "again")
    assert {each["note"]: each["deprecatedCount"] for each in world.all("events")}["again"] == 26


async def test_what_cannot_be_written_is_dropped(world: World, recorder: Recorder, subject: Json) -> None:
    world.admission.forbidden["CREATE", "events"] = ApiError(403, "Forbidden", "no")
    recorder.start()
    recorder.say(subject, "Warning", "Lost", "nobody hears this", "tester")
    await heard(recorder)
    world.admission.forbidden.clear()
    recorder.say(subject, "Warning", "Heard", "x" * 2000, "tester")
    await heard(recorder)
    await recorder.stop()
    assert world.messages() == ["x" * 1024]


async def test_events_of_what_is_in_no_namespace_are_in_the_default_one(world: World, recorder: Recorder) -> None:
    await world.create("namespaces", {"metadata": {"name": "default"}}, namespace="")
    await say(world, recorder, world.get("namespaces", NAMESPACE), "seen")
    assert [each["metadata"]["namespace"] for each in world.store.list("events")] == ["default"]
