"""What `covers` says of an apply, and what the simulator, which keeps managedFields, then makes of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest

from operator_runtime import Client, typed
from operator_runtime.objects.drift import covers
from operator_runtime.testing.cluster import SimulatedCluster
from tests.unit.operator_runtime.objects.applies import (
    CHANGES_NOTHING,
    CHANGES_SOMETHING,
    CLERK,
    CONFIG_MAPS,
    DEPLOYMENTS,
    NOTHING,
    Case,
    body,
    deployment,
    is_spared,
    otherwise,
    words,
)


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


async def test_an_apply_that_would_change_nothing_is_spared(client: Client, somebody: Client) -> None:
    assert await otherwise(client, somebody, CHANGES_NOTHING, (True, True)) == []


async def test_an_apply_that_would_change_something_is_not(client: Client, somebody: Client) -> None:
    assert await otherwise(client, somebody, CHANGES_SOMETHING, (False, False)) == []


async def test_what_the_api_server_gives_back_otherwise_is_applied_each_time(client: Client, somebody: Client) -> None:
    slow = deployment({**CLERK, "resources": {"limits": {"cpu": "1000m"}}})
    assert await is_spared(client, somebody, Case(DEPLOYMENTS, slow, NOTHING, slow)) == (False, True)


async def test_what_another_manager_applied_says_nothing_about_ours(client: Client, somebody: Client) -> None:
    live = await somebody.apply(CONFIG_MAPS, words(a="1", b="2"))
    # Ours would be the field from then on.
    assert not covers(live, words(a="1"), client.field_manager)
    live = await client.apply(CONFIG_MAPS, words(a="1"))
    assert live.body["data"] == {"a": "1", "b": "2"}
    assert covers(live, words(a="1"), client.field_manager)
    await client.delete(CONFIG_MAPS, live)


async def test_another_object_of_the_name_is_not_it(client: Client) -> None:
    live = await client.apply(CONFIG_MAPS, words(a="1"))
    assert covers(live, body({"uid": live.uid}, data={"a": "1"}), client.field_manager)
    assert not covers(live, body({"uid": "another"}, data={"a": "1"}), client.field_manager)
    assert not covers(live, body({"name": "b"}, data={"a": "1"}), client.field_manager)
    await client.delete(CONFIG_MAPS, live)


async def test_a_kind_whose_type_leaves_out_what_is_compared_is_told(client: Client) -> None:
    modelled = typed("apps/v1", "Deployment", "deployments", spec=Nothing, status=Nothing)
    live = await client.apply(modelled, deployment(CLERK))
    with pytest.raises(TypeError, match=r"no whole 'spec' to compare .*: make its kind by `plain`"):
        covers(live, deployment(CLERK), client.field_manager)
