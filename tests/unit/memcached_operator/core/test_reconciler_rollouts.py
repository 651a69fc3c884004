"""Other images reach servers that run, through the reconciler."""

from __future__ import annotations

from contextlib import suppress

import pytest

from memcached_operator.core.objects.labels import APPLIED_ANNOTATION
from memcached_operator.core.rollout.server_rollout import BUDGET_RETRY_S
from operator_runtime.client.errors import Conflict, Forbidden, Invalid, ServerError, TooManyRequests
from tests.unit.memcached_operator.running_servers import (
    EVICT,
    PAUSE_S,
    control,
    costs,
    pod,
    reasons,
    sent,
    stateful_set,
    template_of,
)
from tests.unit.memcached_operator.support import IMAGE, NO_RIGHT
from tests.unit.memcached_operator.world import DELAY_S, World


async def test_another_image_is_written_and_servers_are_evicted_one_at_a_time(named: World) -> None:
    named.memcached(size=3, workload="StatefulSet", image="memcached:2")
    assert await sent(named) == ["strategic_merge_patch StatefulSet", EVICT]
    assert [ordinal for ordinal in range(3) if is_new(named, ordinal)] == [2]
    assert named.condition("Progressing") == ("True", "Updating")
    assert "2 of 3 servers have not been replaced yet" in named.message("Progressing")
    named.clock.advance(PAUSE_S)
    assert await sent(named) == [EVICT]
    named.clock.advance(PAUSE_S)
    assert await sent(named) == [EVICT]
    assert all(is_new(named, ordinal) for ordinal in range(3))
    assert named.condition("Progressing") == ("False", "Complete")
    assert named.condition("Ready") == ("True", "AllServersReady")
    assert reasons(named).count("Replacing") == 3


def is_new(world: World, ordinal: int) -> bool:
    return bool(pod(world, ordinal)["spec"]["containers"][0]["image"] == "memcached:2")


@pytest.mark.parametrize("refusal", [TooManyRequests, Conflict])
async def test_a_budget_that_forbids_it_is_told_and_asked_again(
    named: World, refusal: type[TooManyRequests | Conflict]
) -> None:
    words = "Cannot evict pod as it would violate the pod's disruption budget."
    named.api.refuse("create/eviction", "Pod", *[refusal(429, "TooManyRequests", words)] * 9)
    named.memcached(size=3, workload="StatefulSet", image="memcached:2")
    await sent(named)
    named.show()
    result = await named.reconcile(after_s=DELAY_S)
    assert result.requeue_after_s is not None
    assert result.requeue_after_s <= BUDGET_RETRY_S
    assert words in named.message("Ready")
    assert "Replacing" not in reasons(named)


async def test_an_eviction_that_fails_is_told_and_tried_again(named: World) -> None:
    words = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    named.memcached(size=3, workload="StatefulSet", image="memcached:2")
    named.api.refuse("create/eviction", "Pod", *[ServerError(500, "InternalError", words)] * 3)
    for _ in range(3):
        named.show()
        with suppress(ServerError):
            await named.reconcile(after_s=DELAY_S)
        control(named)
    assert named.api.verbs() == [EVICT]
    assert words in named.message("Ready")


async def test_no_server_is_replaced_by_one_of_a_template_that_somebody_else_wrote(named: World) -> None:
    """Nor is the present one put right at once, where somebody writes it again and again."""
    for _ in range(60):
        if template_of(stateful_set(named))["spec"]["containers"][0]["image"] == IMAGE:
            template_of(stateful_set(named))["spec"]["containers"][0]["image"] = "somebody's"
            stateful_set(named)["metadata"]["generation"] += 1
            named.api.put(stateful_set(named))
        control(named)
        named.show()
        await named.reconcile(after_s=1)
        assert EVICT not in named.api.verbs()
    assert "Contested" in reasons(named)


async def test_a_deployment_that_servers_move_from_keeps_its_template(world: World) -> None:
    sidecar = {"name": "exporter", "image": "exporter", "args": ["-v"]}
    world.memcached(size=2, podTemplate={"spec": {"containers": [sidecar]}})
    await world.reconcile_shown()
    world.deployment["status"] = {"observedGeneration": 1}
    world.pods(2)
    await world.settle()
    world.memcached(size=2, workload="StatefulSet", image="memcached:2")
    for _ in range(3):
        world.show()
        await world.reconcile(after_s=DELAY_S)
    server, added = world.deployment["spec"]["template"]["spec"]["containers"]
    assert (server["image"], added) == (IMAGE, sidecar)
    assert "exporter" in world.deployment["metadata"]["annotations"][APPLIED_ANNOTATION]
    assert template_of(stateful_set(world))["spec"]["containers"][0]["image"] == "memcached:2"


DENIED = "ValidatingAdmissionPolicy 'evictions' with binding 'all' denied request: no pods/eviction today"


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (Forbidden(403, "Forbidden", NO_RIGHT.replace('"pods"', '"pods/eviction"')), "Forbidden"),
        # The code that such a policy has where its author chose none.
        (Invalid(422, "Invalid", DENIED), "DeniedByPolicy"),
    ],
)
async def test_an_eviction_that_is_refused_blocks_nothing_else(
    named: World, refusal: Forbidden | Invalid, reason: str
) -> None:
    named.api.refuse("create/eviction", "Pod", *[refusal] * 9)
    named.memcached(size=3, workload="StatefulSet", image="memcached:2")
    await sent(named)
    assert named.condition("Degraded") == ("True", reason)
    assert "pods/eviction" in named.message("Degraded")
    named.memcached(size=4, workload="StatefulSet", image="memcached:2")
    assert "strategic_merge_patch StatefulSet" in await sent(named)


async def test_what_a_change_costs_is_told_once_and_before_a_server_is_touched(named: World) -> None:
    named.memcached(size=4, workload="StatefulSet", drainPeriodSeconds=5, rollout={"minReadySeconds": 5})
    await sent(named)
    assert costs(named) == [], "not of one beside the servers, or of their number"
    for image in ("memcached:2", "memcached:3", IMAGE):
        named.memcached(size=3, workload="StatefulSet", image=image, threads=8)
        await sent(named, reconciles=2)
    assert reasons(named)[1:4] == ["RollingChange", "Updated", "Replacing"]
    (first, note), *others = costs(named)
    assert first == "RollingChange"
    assert note.startswith(
        "spec.image, spec.threads: 3 servers are replaced, one at a time, from the highest ordinal; "
    )
    assert note.endswith(f'spec.image: "{IMAGE}" → "memcached:2"; spec.threads: 4 → 8')
    assert [note.rpartition(" ")[2] for _, note in others] == ['"memcached:3"', f'"{IMAGE}"'], "also what is put back"
