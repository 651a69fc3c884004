"""Whatever another client writes where something of ours stands, a Memcached is reconciled, and comes to rest."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from memcached_operator.core.objects.labels import (
    APPLIED_ANNOTATION,
    IN_PLACE_ANNOTATION,
    MEMORY_ANNOTATION,
    OUTDATED_ITEMS_ANNOTATION,
    OWNER_UID_ANNOTATION,
    PEERS_ANNOTATION,
    RESTART_ANNOTATION,
    RESTORED_ANNOTATION,
    TEMPLATE_ANNOTATION,
    TRANSPORT_ANNOTATION,
    WARM_ANNOTATION,
)
from tests.unit.fake_server import Json
from tests.unit.memcached_operator.running_servers import control, template_of
from tests.unit.memcached_operator.support import NAME, NAMESPACE
from tests.unit.memcached_operator.world import DELAY_S, World

SPEC = {
    "size": 2,
    "workload": "StatefulSet",
    "warmRestart": True,
    "service": {"labels": {"team": "a"}},
    "discovery": {"configMap": {}},
    "podTemplate": {
        "metadata": {"labels": {"team": "a"}},
        "spec": {"containers": [{"name": "exporter", "image": "exporter:1", "env": [{"name": "A", "value": "1"}]}]},
    },
}
OBJECTS = ("StatefulSet", "template", "Service", "ConfigMap", "Pod", "Memcached")
NINES = "9" * 5000


async def servers(**spec: Any) -> World:
    world = World()
    world.memcached(**(SPEC | spec))
    for _ in range(4):
        world.show()
        await world.reconcile(after_s=DELAY_S)
        control(world)
    world.clock.advance(3600)
    return world


def object_of(world: World, where: str) -> Json:
    match where:
        case "template":
            return template_of(object_of(world, "StatefulSet"))
        case "ConfigMap":
            return world.api.objects["ConfigMap", NAMESPACE, f"{NAME}-servers"]
        case "Pod":
            return world.api.objects["Pod", NAMESPACE, f"{NAME}-1"]
    return world.api.objects[where, NAMESPACE, NAME]


def annotate(world: World, where: str, annotation: str, text: str) -> None:
    object_of(world, where)["metadata"].setdefault("annotations", {})[annotation] = text
    world.api.put(object_of(world, "StatefulSet" if where == "template" else where))


async def comes_to_rest(world: World) -> None:
    """It is reconciled without an error, and at last nothing is written any more."""
    for _ in range(40):
        world.show()
        await world.reconcile(after_s=90.0)
        control(world)
        if not [each for each in world.api.verbs() if not each.startswith("get ")]:
            return
    raise AssertionError(f"it never comes to rest: {world.api.verbs()}")


ANNOTATIONS: dict[str, tuple[str, list[str]]] = {
    "to what a pod is to come": (
        IN_PLACE_ANNOTATION,
        ["x 1 1_0", f"x 1 {NINES}", f"x {NINES[:4000]} 1", "x 1 -1", "a"],
    ),
    "the memory": (MEMORY_ANNOTATION, [f"{NINES}Mi,1Mi,1Mi", f"{NINES[:4000]}Gi,,", "1e99,a,b", "64Mi", ",,"]),
    "how servers are spoken to": (TRANSPORT_ANNOTATION, ["tls", "tls,tls,x", ","]),
    "the template": (TEMPLATE_ANNOTATION, ["", "x", NINES]),
    "what stays over a restart": (WARM_ANNOTATION, ["", "x"]),
    "what asks for a restart": (RESTART_ANNOTATION, ["", " \n ", NINES]),
    "of which Memcached it is": (OWNER_UID_ANNOTATION, ["", "x"]),
    "in whose place it is": (RESTORED_ANNOTATION, ["", "x"]),
    "what it was made from": (
        APPLIED_ANNOTATION,
        [
            "",
            "metadata=1234",
            "{",
            "[]",
            "1",
            "null",
            "{}",
            "[" * 5000,
            '{"a":' * 5000,
            '{"size": "two"}',
            '{"theirs": 1}',
            '{"threads": 1000000}',
            '{"service": {"labels": {"app": "theirs"}, "annotations": {"theirs": "a"}}}',
            '{"podTemplate": {"spec": {"containers": 1, "volumes": [[]], "affinity": ""}}}',
            '{"podTemplate": {"spec": {"containers": [{"name": "memcached", "image": "theirs"}]}}}',
            '{"podTemplate": {"spec": {"containers": [{"name": "exporter", "env": [{"name": "A"}]}]}}}',
            '{"podTemplate": {"spec": {"nodeSelector": []}}}',
            '{"podTemplate": {"metadata": {"annotations": {"cache.example.com/template": "a"}}}}',
            '{"tls": {"secretName": "a"}, "warmRestart": true}',
            NINES,
        ],
    ),
}


@pytest.mark.parametrize("annotation", [IN_PLACE_ANNOTATION, PEERS_ANNOTATION, OUTDATED_ITEMS_ANNOTATION])
async def test_what_a_pod_alone_has_is_taken_out_of_the_template(annotation: str) -> None:
    """Else each new pod would have it, and be replaced for it."""
    world = await servers(warmRestart=False)
    annotate(world, "template", annotation, "x 1 1")
    for _ in range(12):
        world.show()
        await world.reconcile(after_s=90.0)
        control(world)
    assert annotation not in object_of(world, "template")["metadata"]["annotations"]
    assert annotation not in object_of(world, "Pod")["metadata"]["annotations"]
    assert world.condition("Ready") == ("True", "AllServersReady")


@pytest.mark.parametrize("workload", ["StatefulSet", "Deployment"])
@pytest.mark.parametrize("spec", [{}, SPEC], ids=["nothing passed through", "something passed through"])
@pytest.mark.parametrize("text", ANNOTATIONS["what it was made from"][1])
async def test_a_record_of_another_client_is_put_right_and_nobody_is_blamed(
    spec: Json, workload: str, text: str
) -> None:
    world = World()
    fields = {
        "size": 2,
        "discovery": {"configMap": {}},
        "service": {},
        **spec,
        "workload": workload,
        "warmRestart": False,
    }
    world.memcached(**fields)
    places = (workload, "Service", "ConfigMap")
    for _ in range(4):
        world.show()
        await world.reconcile(after_s=DELAY_S)
        if workload == "StatefulSet":
            control(world)
    before = {where: dict(object_of(world, where)["metadata"]["annotations"]) for where in places}
    for where in places:
        annotate(world, where, APPLIED_ANNOTATION, text)
    for _ in range(6):
        world.show()
        await world.reconcile(after_s=90.0)
    found = {where: dict(object_of(world, where)["metadata"]["annotations"]) for where in places}
    assert found == before
    assert world.condition("Degraded") == ("False", "AsExpected")


TIMES = (
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "9999-12-31T23:59:59",
    "0001-01-01T00:00:00",
    "now",
    "",
)
DRAINS = st.fixed_dictionaries(
    {
        "workload": st.sampled_from(["Deployment", "StatefulSet", "Job"]),
        "firstOrdinal": st.sampled_from([0, 1, 2, 2**31 - 1, -1]),
        "startTime": st.sampled_from(TIMES),
    }
)
WORDS = st.sampled_from(["", "a", "cache-0", f"cache-{NINES}.x:1", "cache-1.cache.shop.svc:11211", "\x00", "-", "٣-٣"])
CONDITIONS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["Ready", "Available", "Progressing", "Degraded", "Serving", "Theirs"]),
        "status": st.sampled_from(["True", "False", "Unknown"]),
        "reason": st.sampled_from(["Pending", "AllServersReady", "Anything"]),
        "message": WORDS,
        "lastTransitionTime": st.sampled_from(TIMES),
    },
    optional={"observedGeneration": st.sampled_from([0, 1, 2**63 - 1])},
)
STATUSES = st.fixed_dictionaries(
    {},
    optional={
        "workload": st.sampled_from(["Deployment", "StatefulSet", "Job", ""]),
        "service": WORDS,
        "serverList": st.lists(WORDS, max_size=3),
        "draining": st.lists(DRAINS, max_size=3),
        "nodes": st.lists(WORDS, max_size=3),
        "replicas": st.integers(0, 2**31 - 1),
        "readyReplicas": st.integers(0, 2**31 - 1),
        "selector": WORDS,
        "image": WORDS,
        "version": WORDS,
        "observedGeneration": st.sampled_from([0, 1, 2**63 - 1]),
        "conditions": st.lists(CONDITIONS, max_size=6, unique_by=lambda each: each["type"]),
        "theirs": st.just({"a": [{}]}),
    },
)
TEXTS = st.one_of(
    st.sampled_from([text for _, texts in ANNOTATIONS.values() for text in texts]),
    st.text(max_size=20),
    st.lists(
        st.sampled_from(
            ["spec", ".template", ".spec", ".containers", "[memcached]", "[x]", ".env", "[A]", "=", "\n", "a"]
        ),
        max_size=12,
    ).map("".join),
)


@settings(max_examples=120)
@given(
    st.lists(st.tuples(st.sampled_from(OBJECTS), st.sampled_from([each for each, _ in ANNOTATIONS.values()]), TEXTS)),
    st.none() | STATUSES,
    st.none() | st.one_of(st.text(max_size=10), st.sampled_from(["[" * 5000, '["a"]', "[1]", "{}", "null", '[["a"]]'])),
    st.sampled_from(
        [
            {},
            {"size": 1},
            {"workload": "Deployment", "warmRestart": False},
            {"memory": "128Mi"},
            {"image": "memcached:2"},
        ]
    ),
)
def test_so_may_all_annotations_the_status_and_the_published_list(
    texts: list[tuple[str, str, str]], status: Json | None, published: str | None, then: Json
) -> None:
    async def run() -> None:
        world = await servers()
        for where, annotation, text in texts:
            annotate(world, where, annotation, text)
        if status is not None:
            object_of(world, "Memcached")["status"] = status
        if published is not None:
            object_of(world, "ConfigMap")["data"]["servers.json"] = published
            world.api.put(object_of(world, "ConfigMap"))
        world.memcached(**(SPEC | then))
        await comes_to_rest(world)

    asyncio.run(run())
