"""Each drift is put into a Deployment as a real API server returned it, and must be found there under its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memcached_operator.core.objects.owned_object import comparable
from memcached_operator.core.objects.workload_types import Container, PodSpec
from operator_runtime.owned.compare import Difference, differences
from tests.unit.memcached_operator.support import (
    OTHER_UID,
    UID,
    container_of,
    decode_workload,
    deployment_of,
    desired_deployment,
    live_deployment,
)

Json = dict[str, Any]
Edit = Callable[[Json], object]
CONTAINER = "spec.template.spec.containers[memcached]"


def found(edit: Edit, size: int = 2, image: str = "memcached:1.6.45-alpine") -> list[Difference]:
    live = live_deployment()
    edit(live)
    desired = decode_workload(comparable(desired_deployment(size, image)))
    return list(differences(desired, decode_workload(deployment_of(live).owned)))


def test_a_deployment_as_the_api_server_returns_it_compares_equal_byte_for_byte() -> None:
    assert deployment_of().owned == comparable(desired_deployment())


def changed(part: Callable[[Json], Json], **fields: object) -> Edit:
    return lambda live: part(live).update(fields)


def without(part: Callable[[Json], Json], field: str) -> Edit:
    return lambda live: part(live).pop(field)


def meta(live: Json) -> Json:
    found: Json = live["metadata"]
    return found


def pod(live: Json) -> Json:
    found: Json = live["spec"]["template"]["spec"]
    return found


MADE_FOR = "cache.example.com/memcached-uid"
OWNER = f"metadata.ownerReferences[{UID}]"
SECURITY = f"{CONTAINER}.securityContext"
DRIFTS: dict[str, tuple[str, Edit]] = {
    "replicas": ("spec.replicas", changed(lambda live: live["spec"], replicas=5)),
    "no replicas": ("spec.replicas", changed(lambda live: live["spec"], replicas=0)),
    "an added argument": (f"{CONTAINER}.args", changed(container_of, args=["-vv"])),
    "an edited port": (f"{CONTAINER}.ports", changed(lambda live: container_of(live)["ports"][0], containerPort=1)),
    "no ports": (f"{CONTAINER}.ports", without(container_of, "ports")),
    "a renamed container": (CONTAINER, changed(container_of, name="cache")),
    "a removed owner": (OWNER, without(meta, "ownerReferences")),
    "an owner that controls no more": (
        f"{OWNER}.controller",
        without(lambda live: meta(live)["ownerReferences"][0], "controller"),
    ),
    "an edited label": ("metadata.labels[app]", changed(lambda live: meta(live)["labels"], app="redis")),
    "a removed label": ("metadata.labels[app]", without(lambda live: meta(live)["labels"], "app")),
    "a removed annotation of ours": (
        f"metadata.annotations[{MADE_FOR}]",
        without(lambda live: meta(live)["annotations"], MADE_FOR),
    ),
    "another selector": (
        "spec.selector.matchLabels[app]",
        changed(lambda live: live["spec"]["selector"]["matchLabels"], app="other"),
    ),
    "kept capabilities": (
        f"{SECURITY}.capabilities.drop",
        changed(lambda live: container_of(live)["securityContext"]["capabilities"], drop=["NET_RAW"]),
    ),
    "no security context": (SECURITY, without(container_of, "securityContext")),
    "a pod that runs as root": (
        "spec.template.spec.securityContext.runAsUser",
        changed(lambda live: pod(live)["securityContext"], runAsUser=0),
    ),
    "other memory": (
        f"{CONTAINER}.resources.limits.memory",
        changed(lambda live: container_of(live)["resources"]["limits"], memory="1Gi"),
    ),
}


@pytest.mark.parametrize(("path", "edit"), DRIFTS.values(), ids=DRIFTS)
def test_a_changed_owned_field_is_found_under_its_name_and_nothing_else(path: str, edit: Edit) -> None:
    assert [difference.path for difference in found(edit)] == [path]


RESTARTED = {"kubectl.kubernetes.io/restartedAt": "2026-11-21T12:00:00Z"}
OTHER_OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": OTHER_UID}
FOREIGN: dict[str, Edit] = {
    "an annotation": lambda live: meta(live)["annotations"].update({"example.com/note": "x"}),
    "kubectl rollout restart": lambda live: live["spec"]["template"]["metadata"]["annotations"].update(RESTARTED),
    "a label": lambda live: meta(live)["labels"].update(team="web"),
    "a sidecar after ours": lambda live: pod(live)["containers"].append({"name": "proxy"}),
    "a sidecar before ours": lambda live: pod(live)["containers"].insert(0, {"name": "proxy"}),
    "another owner": lambda live: meta(live)["ownerReferences"].insert(0, OTHER_OWNER),
    "a limit of another resource": lambda live: container_of(live)["resources"]["limits"].update(cpu="2"),
}


@pytest.mark.parametrize("edit", FOREIGN.values(), ids=FOREIGN)
def test_what_others_added_is_no_drift(edit: Edit) -> None:
    assert found(edit) == []


def test_every_difference_is_found_at_once_in_the_order_of_the_fields() -> None:
    assert [each.path for each in found(lambda _: None, size=3, image="memcached:2")] == [
        "spec.replicas",
        "spec.template.metadata.annotations[cache.example.com/template]",
        f"{CONTAINER}.image",
    ]


def test_a_field_that_the_desired_object_leaves_open_is_not_compared() -> None:
    live = PodSpec(automountServiceAccountToken=True, containers=(Container("memcached", image="a"),))
    assert list(differences(PodSpec(containers=(Container("memcached"),)), live)) == []


@pytest.mark.parametrize(
    ("difference", "text"),
    [
        (Difference(("spec", "replicas"), 3, 0), "spec.replicas: 0 → 3"),
        (Difference(("metadata", "labels", "a"), "b", None), 'metadata.labels[a]: absent → "b"'),
        (Difference(("args",), (), ("-vv",)), 'args: ["-vv"] → []'),
    ],
)
def test_a_difference_reads_as_what_was_and_what_is_to_be(difference: Difference, text: str) -> None:
    assert str(difference) == text
