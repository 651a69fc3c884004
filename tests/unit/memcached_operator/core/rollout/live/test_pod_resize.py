"""What is next about a pod that is to have other memory, as its node tells of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memcached_operator.core.objects.memory_annotation import Memory
from memcached_operator.core.rollout.live.pod_resize import Resizable, ResizeStep, next_resize_step, resizable

DESIRED = Memory(64, "100Mi", "100Mi")
INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible", "message": "no room"}


def pod(*conditions: dict[str, Any], actual: str = "100Mi", generation: int = 3) -> bytes:
    requested = {"limits": {"memory": "100Mi"}, "requests": {"memory": "100Mi"}}
    return json.dumps(
        {
            "metadata": {"name": "a-0", "uid": "u", "resourceVersion": "1", "namespace": "n", "generation": generation},
            "spec": {"containers": [{"name": "memcached", "resources": requested}]},
            "status": {
                "conditions": conditions,
                "containerStatuses": [{"name": "memcached", "resources": {"limits": {"memory": actual}}}],
            },
        }
    ).encode()


def test_a_request_that_the_node_has_no_room_for_is_not_done_though_the_limit_is_as_it_was() -> None:
    assert next_resize_step(resizable(pod(INFEASIBLE)), DESIRED, limit_set=True) is ResizeStep.WAIT
    assert next_resize_step(resizable(pod()), DESIRED, limit_set=True) is ResizeStep.DONE
    over = {"type": "PodResizeInProgress", "status": "False"}
    assert next_resize_step(resizable(pod(over)), DESIRED, limit_set=True) is ResizeStep.DONE


@pytest.mark.parametrize(
    ("requested", "desired", "actual", "step"),
    [
        ("400M", "400M", "390625Ki", ResizeStep.DONE),
        ("1Gi", "1024Mi", "1Gi", ResizeStep.DONE),
        ("400M", "500M", "390625Ki", ResizeStep.RESIZE),
        ("500M", "500M", "390625Ki", ResizeStep.WAIT),
        ("", "500M", "", ResizeStep.RESIZE),
        ("500M", "500M", "", ResizeStep.WAIT),
    ],
)
def test_quantities_are_compared_as_amounts(requested: str, desired: str, actual: str, step: ResizeStep) -> None:
    found = Resizable("n", "a-0", "u", "1", request=requested, limit=requested, actual=actual, waits="", hopeless=False)
    assert next_resize_step(found, Memory(64, desired, desired), limit_set=True) is step


def test_a_container_that_would_start_again_for_it_is_not_resized() -> None:
    desired, same = Memory(128, "200Mi", "200Mi"), resizable(pod())
    assert next_resize_step(same, desired, limit_set=False, restarts=True) is ResizeStep.REPLACE
    assert next_resize_step(same, Memory(32, "50Mi", "50Mi"), limit_set=False, restarts=True) is ResizeStep.SET_LIMIT
    assert next_resize_step(same, DESIRED, limit_set=False, restarts=True) is ResizeStep.SET_LIMIT


@pytest.mark.parametrize(("observed", "hopeless"), [(2, False), (3, True), (None, True)])
def test_what_the_node_said_of_an_earlier_wish_does_not_count(observed: int | None, hopeless: bool) -> None:
    condition = INFEASIBLE if observed is None else INFEASIBLE | {"observedGeneration": observed}
    assert resizable(pod(condition)).hopeless is hopeless
