"""StatefulSets: what the tests of conformance do not say."""

from __future__ import annotations

from typing import Any

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.values import Json
from tests.unit.kube_simulator.kinds.kinds_support import LABEL_VALUE, an, created, problems, resource, updated

KIND = resource("statefulsets.apps")
NOT_NEGATIVE = "must be greater than or equal to 0"


def stateful_set(**spec: Any) -> Json:
    containers = [{"name": "a", "image": "b"}]
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers, **spec.pop("pod", {})}}
    given = {"serviceName": "a", "selector": {"matchLabels": {"a": "b"}}, "template": template, **spec}
    return created(KIND, an(KIND, spec=given))


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({}, {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
        ({"rollingUpdate": {"partition": 2}}, {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}),
        ({"type": "RollingUpdate"}, {"type": "RollingUpdate"}),
        (
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
            {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        ),
        ({"type": "OnDelete"}, {"type": "OnDelete"}),
    ],
)
def test_how_pods_are_updated_has_defaults(given: Json, stored: Json) -> None:
    assert stateful_set(updateStrategy=given)["spec"]["updateStrategy"] == stored


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        ({}, set()),
        ({"replicas": 0, "ordinals": {"start": 3}, "minReadySeconds": 5, "serviceName": ""}, set()),
        (
            {"minReadySeconds": -1, "ordinals": {"start": -1}},
            {f"spec.{field}: Invalid value: -1: {NOT_NEGATIVE}" for field in ("minReadySeconds", "ordinals.start")},
        ),
        (
            {"updateStrategy": {"rollingUpdate": {"partition": -1}}},
            {f"spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: {NOT_NEGATIVE}"},
        ),
        (
            {"selector": {"matchLabels": {"a": "x y"}}},
            {
                f'spec.selector.matchLabels: Invalid value: "x y": {LABEL_VALUE}',
                'spec.selector: Invalid value: {"matchLabels":{"a":"x y"}}: ',
            },
        ),
        # The controller says what these are.
        ({"pod": {"hostname": "A_", "subdomain": "B_"}}, set()),
    ],
)
def test_what_is_wrong_with_one(spec: Json, messages: set[str]) -> None:
    assert problems(KIND, stateful_set(**spec)) == messages


def test_claims_are_refused_in_the_simulator_s_own_words() -> None:
    made = stateful_set(volumeClaimTemplates=[{"metadata": {"name": "data"}}])
    with pytest.raises(ApiError, match="the simulator does not do this: StatefulSets with volumeClaimTemplates"):
        problems(KIND, made)


def test_a_service_s_name_that_is_there_is_not_looked_at_again() -> None:
    old = stateful_set(serviceName="A_")
    assert problems(KIND, updated(KIND, old, {"spec": {**old["spec"], "replicas": 2}}), old) == set()


@pytest.mark.parametrize(
    ("status", "messages"),
    [
        ({"replicas": 2, "readyReplicas": 2, "availableReplicas": 1}, set()),
    ],
)
def test_a_status_that_cannot_be_is_not_written(status: Json, messages: set[str]) -> None:
    old = {**stateful_set(), "status": {"replicas": 0, "availableReplicas": 0, "collisionCount": 2}}
    if not messages or "collisionCount" not in status:
        status = {"collisionCount": 2, **status}
    assert problems(KIND, updated(KIND, old, {"status": status}, "status"), old) == messages
