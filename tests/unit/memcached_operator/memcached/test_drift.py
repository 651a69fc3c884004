"""Each drift is put into a Deployment as a real API server returned it, and must be found there under its name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from memcached_operator.memcached.wanted.common import comparable
from memcached_operator.memcached.wanted.workload_types import Container, PodSpec
from operator_runtime.owned.compare import Difference, differences
from tests.unit.memcached_operator.memcached.support import (
    OTHER_UID,
    UID,
    container_of,
    decode_workload,
    deployment_of,
    live_deployment,
    wanted_deployment,
)

Edit = Callable[[dict[str, Any]], object]
CONTAINER = "spec.template.spec.containers[memcached]"


def found(edit: Edit, size: int = 2, image: str = "memcached:1.6.45-alpine") -> list[Difference]:
    live = live_deployment()
    edit(live)
    wanted = decode_workload(comparable(wanted_deployment(size, image)))
    return list(differences(wanted, decode_workload(deployment_of(live).owned)))


def untouched(_: dict[str, Any]) -> None:
    pass


def test_a_deployment_as_the_api_server_returns_it_compares_equal_byte_for_byte() -> None:
    assert deployment_of().owned == comparable(wanted_deployment())


DRIFTS: dict[str, tuple[str, Edit]] = {
    "replicas": ("spec.replicas", lambda live: live["spec"].update(replicas=5)),
    "an added argument": (f"{CONTAINER}.args", lambda live: container_of(live).update(args=["-vv"])),
    "an edited port": (f"{CONTAINER}.ports", lambda live: container_of(live)["ports"][0].update(containerPort=11212)),
    "no ports": (f"{CONTAINER}.ports", lambda live: container_of(live).pop("ports")),
    "a renamed container": (CONTAINER, lambda live: container_of(live).update(name="cache")),
    "a removed ownerReference": (
        f"metadata.ownerReferences[{UID}]",
        lambda live: live["metadata"].pop("ownerReferences"),
    ),
    "an ownerReference that controls no more": (
        f"metadata.ownerReferences[{UID}].controller",
        lambda live: live["metadata"]["ownerReferences"][0].pop("controller"),
    ),
    "an edited label": (
        "metadata.labels[app.kubernetes.io/name]",
        lambda live: live["metadata"]["labels"].update({"app.kubernetes.io/name": "redis"}),
    ),
    "a removed label": ("metadata.labels[app]", lambda live: live["metadata"]["labels"].pop("app")),
    "a removed annotation of ours": (
        "metadata.annotations[cache.example.com/memcached-uid]",
        lambda live: live["metadata"]["annotations"].pop("cache.example.com/memcached-uid"),
    ),
    "another selector": (
        "spec.selector.matchLabels[memcached_cr]",
        lambda live: live["spec"]["selector"]["matchLabels"].update(memcached_cr="other"),
    ),
    "kept capabilities": (
        f"{CONTAINER}.securityContext.capabilities.drop",
        lambda live: container_of(live)["securityContext"]["capabilities"].update(drop=["NET_RAW"]),
    ),
    "no security context": (
        f"{CONTAINER}.securityContext",
        lambda live: container_of(live).pop("securityContext"),
    ),
    "a pod that runs as root": (
        "spec.template.spec.securityContext.runAsUser",
        lambda live: live["spec"]["template"]["spec"]["securityContext"].update(runAsUser=0),
    ),
    "other memory": (
        "spec.template.spec.containers[memcached].resources.limits.memory",
        lambda live: container_of(live)["resources"]["limits"].update(memory="1Gi"),
    ),
}


@pytest.mark.parametrize(("path", "edit"), DRIFTS.values(), ids=DRIFTS)
def test_a_field_of_ours_that_was_changed_is_found_under_its_name_and_nothing_else(path: str, edit: Edit) -> None:
    assert [difference.path for difference in found(edit)] == [path]


FOREIGN: dict[str, Edit] = {
    "an annotation": lambda live: live["metadata"]["annotations"].update({"example.com/note": "x"}),
    "the annotation of kubectl rollout restart": lambda live: live["spec"]["template"]["metadata"][
        "annotations"
    ].update({"kubectl.kubernetes.io/restartedAt": "2026-11-21T12:00:00Z"}),
    "a label": lambda live: live["metadata"]["labels"].update(team="web"),
    "a sidecar after ours": lambda live: live["spec"]["template"]["spec"]["containers"].append({"name": "proxy"}),
    "a sidecar before ours": lambda live: live["spec"]["template"]["spec"]["containers"].insert(0, {"name": "proxy"}),
    "another owner": lambda live: live["metadata"]["ownerReferences"].insert(
        0, {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": OTHER_UID}
    ),
    "a limit of another resource": lambda live: container_of(live)["resources"]["limits"].update(cpu="2"),
}


@pytest.mark.parametrize("edit", FOREIGN.values(), ids=FOREIGN)
def test_what_others_added_is_no_drift(edit: Edit) -> None:
    assert found(edit) == []


def test_every_difference_is_found_at_once_in_the_order_of_the_fields() -> None:
    assert [each.path for each in found(untouched, size=3, image="memcached:2")] == [
        "spec.replicas",
        "spec.template.metadata.annotations[cache.example.com/template]",
        f"{CONTAINER}.image",
    ]


def test_a_number_of_replicas_of_0_is_not_taken_for_none() -> None:
    assert found(lambda live: live["spec"].update(replicas=0)) == [Difference(("spec", "replicas"), 2, 0)]
    assert found(lambda live: live["spec"].update(replicas=0), size=0) == []


def test_a_field_that_the_wanted_object_leaves_open_is_not_compared() -> None:
    live = PodSpec(automountServiceAccountToken=True, containers=(Container("memcached", image="a"),))
    assert list(differences(PodSpec(containers=(Container("memcached"),)), live)) == []


@pytest.mark.parametrize(
    ("difference", "text"),
    [
        (Difference(("spec", "replicas"), 3, 5), "spec.replicas was 5, is to be 3"),
        (
            Difference(("metadata", "labels", "app"), "memcached", None),
            'metadata.labels[app] was absent, is to be "memcached"',
        ),
        (Difference(("args",), (), ("-vv",)), 'args was ["-vv"], is to be []'),
    ],
)
def test_a_difference_reads_as_what_was_and_what_is_to_be(difference: Difference, text: str) -> None:
    assert str(difference) == text


def test_a_difference_in_a_whole_part_reads_as_json() -> None:
    (difference,) = found(lambda live: container_of(live).update(name="cache"))
    before, after = str(difference).split(", is to be ")
    assert before == f"{CONTAINER} was absent"
    assert json.loads(after)["name"] == "memcached"
