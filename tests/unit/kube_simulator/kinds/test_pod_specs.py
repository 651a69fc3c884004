"""What is wrong with a pod's spec, in the words of Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from kube_simulator.errors import Cause
from kube_simulator.kinds.pod_defaults import defaulted_spec
from kube_simulator.kinds.pod_specs import spec_problems
from kube_simulator.values import Json
from tests.unit.kube_simulator.kinds.kinds_support import LABEL, NAME_PART

PORT_RANGE = "must be between 1 and 65535, inclusive"
NOT_NEGATIVE = "must be greater than or equal to 0"


def listed(found: list[Cause]) -> list[str]:
    return [f"{cause.field.removeprefix('s.')}: {cause.message}" for cause in found]


def of_spec(**spec: Any) -> list[str]:
    """What is wrong with a spec that has one good container and these fields."""
    whole = defaulted_spec({"containers": [{"name": "a", "image": "b"}], **spec})
    return listed(spec_problems(whole, "s"))


def of_container(**container: Any) -> list[str]:
    found = of_spec(containers=[{"name": "a", "image": "b", **container}], volumes=[{"name": "v"}])
    return [message.removeprefix("containers[0].") for message in found]


def test_a_complete_container_has_nothing_wrong_with_it() -> None:
    probe = {"httpGet": {"port": "http"}, "successThreshold": 2}
    assert (
        of_container(
            ports=[{"name": "http", "containerPort": 80}, {"containerPort": 80}],
            env=[{"name": "A"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
            volumeMounts=[{"name": "v", "mountPath": "/v"}],
            readinessProbe=probe,
            livenessProbe={"exec": {"command": ["true"]}},
            lifecycle={"preStop": {"sleep": {"seconds": 1}}},
            resources={"limits": {"cpu": "1", "example.com/gpu": "1"}, "requests": {"cpu": "500m"}},
        )
        == []
    )


@pytest.mark.parametrize(
    ("container", "message"),
    [
        ({"name": ""}, "name: Required value"),
        ({"name": "A b"}, f'name: Invalid value: "A b": {LABEL}'),
        ({"image": ""}, "image: Required value"),
        ({"volumeMounts": [{"name": "nope", "mountPath": "/a"}]}, 'volumeMounts[0].name: Not found: "nope"'),
        ({"resources": {"limits": {"memory": "-1"}}}, f'resources.limits[memory]: Invalid value: "-1": {NOT_NEGATIVE}'),
        (
            {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2000m"}}},
            'resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
    ],
)
def test_what_is_wrong_with_a_container_is_said_of_its_field(container: Json, message: str) -> None:
    assert of_container(**container) == [message]


def test_containers_of_a_pod_have_names_of_their_own() -> None:
    one = {"name": "a", "image": "b"}
    assert of_spec(containers=[one, one]) == ['containers[1].name: Duplicate value: "a"']
    assert of_spec(initContainers=[one, {"name": "i", "image": "b"}]) == [
        'initContainers[0].name: Duplicate value: "a"'
    ]
    assert of_spec(containers=[]) == ["containers: Required value"]


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        ({"name": ""}, "volumes[0].name: Required value"),
        ({"name": "A b"}, f'volumes[0].name: Invalid value: "A b": {LABEL}'),
    ],
)
def test_what_is_wrong_with_a_volume_is_said_of_its_field(volume: Json, message: str) -> None:
    assert of_spec(volumes=[volume]) == [message]


def test_volumes_have_names_of_their_own() -> None:
    assert of_spec(volumes=[{"name": "v"}, {"name": "v"}]) == ['volumes[1].name: Duplicate value: "v"']


def test_a_node_is_selected_by_labels() -> None:
    assert of_spec(nodeSelector={"a b": "1"}) == [f'nodeSelector: Invalid value: "a b": {NAME_PART}']
