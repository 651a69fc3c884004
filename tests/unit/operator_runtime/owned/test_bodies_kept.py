"""Objects that are kept by bodies of dicts: which differ, and that one patch makes of them what a new one would be."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest

from operator_runtime import Client, typed
from operator_runtime.owned.ensure_rules import rules_for_bodies
from operator_runtime.testing.cluster import SimulatedCluster
from tests.unit.operator_runtime.owned.bodies_kept import (
    CHANGES_NOTHING,
    CHANGES_SOMETHING,
    CLERK,
    CONFIG_MAPS,
    DEPLOYMENTS,
    deployment,
    otherwise,
    words,
)

PLACE = {"namespace": "default", "name": "a"}


class Nothing(msgspec.Struct, frozen=True):
    """A model that names none of a kind's fields."""


@pytest.fixture(scope="module")
def shared_simulator() -> Iterator[SimulatedCluster]:
    with SimulatedCluster() as started:
        yield started


@pytest.fixture
async def client(shared_simulator: SimulatedCluster) -> AsyncIterator[Client]:
    async with shared_simulator.client() as client:
        yield client


@pytest.fixture
async def somebody(shared_simulator: SimulatedCluster) -> AsyncIterator[Client]:
    async with shared_simulator.client(name="somebody") as client:
        yield client


def placed(desired: dict[str, Any]) -> dict[str, Any]:
    return {**desired, "metadata": {**desired["metadata"], **PLACE}}


async def test_a_body_that_says_nothing_new_differs_in_nothing(client: Client, somebody: Client) -> None:
    assert await otherwise(client, somebody, CHANGES_NOTHING, (False, True)) == []


async def test_what_a_body_says_otherwise_or_no_more_is_put_right_by_one_patch(
    client: Client, somebody: Client
) -> None:
    assert await otherwise(client, somebody, CHANGES_SOMETHING, (True, True)) == []


async def test_what_the_api_server_gives_back_otherwise_differs_each_time(client: Client) -> None:
    slow, given_back = (placed(deployment({**CLERK, "resources": {"limits": {"cpu": cpu}}})) for cpu in ("1000m", "1"))
    rules = rules_for_bodies(client.field_manager, DEPLOYMENTS.resource)
    live = await client.create(DEPLOYMENTS, rules.body(given_back))
    await client.delete(DEPLOYMENTS, live)
    (found,) = rules.differences(slow, live)
    assert str(found) == 'spec.template.spec.containers[clerk].resources.limits.cpu: "1" → "1000m"'


async def test_names_that_somebody_has_spoilt_take_nothing_away_and_are_written_anew(client: Client) -> None:
    rules = rules_for_bodies(client.field_manager, CONFIG_MAPS.resource)
    applied = f"{client.field_manager}/applied-fields"
    for spoilt in ("", "{", "[]", '{"data": [1]}', '{"metadata": {"ownerReferences": [{}]}}'):
        made = await client.create(CONFIG_MAPS, rules.body(placed(words(a="1"))))
        live = await client.patch(CONFIG_MAPS, made, {"metadata": {"annotations": {applied: spoilt}}})
        await client.delete(CONFIG_MAPS, live)
        found = list(rules.differences(placed(words(a="1")), live))
        assert [each.path for each in found] == [f"metadata.annotations[{applied}]"], spoilt


async def test_a_kind_whose_type_leaves_out_what_is_compared_is_told(client: Client) -> None:
    modelled = typed("apps/v1", "Deployment", "deployments", spec=Nothing, status=Nothing)
    rules = rules_for_bodies(client.field_manager, modelled.resource)
    live = await client.create(modelled, rules.body(placed(deployment(CLERK))))
    with pytest.raises(TypeError, match=r"no whole 'spec' to compare .*: make its kind by `plain`"):
        list(rules.differences(placed(deployment(CLERK)), live))
    await client.delete(modelled, live)
