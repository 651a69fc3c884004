"""Objects that are kept by bodies of dicts: what differs, beside what `test_patch_model` tries."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from operator_runtime import Client, typed
from operator_runtime.owned.ensure_rules import rules_for_bodies
from tests.unit.operator_runtime.owned.bodies_kept import CLERK, CONFIG_MAPS, DEPLOYMENTS, deployment, words

PLACE = {"namespace": "default", "name": "a"}


class Nothing(msgspec.Struct, frozen=True):
    """A model that names none of a kind's fields."""


def placed(desired: dict[str, Any]) -> dict[str, Any]:
    return {**desired, "metadata": {**desired["metadata"], **PLACE}}


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
