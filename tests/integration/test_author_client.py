"""What an API server makes of the bodies that reconcilers want of their objects."""

from __future__ import annotations

import pytest

from operator_runtime import Client
from operator_runtime.client.access.auth import load_access
from operator_runtime.client.api_client import ApiClient
from tests.cluster import Cluster
from tests.unit.operator_runtime.owned.bodies_kept import CHANGES_NOTHING, CHANGES_SOMETHING, otherwise


@pytest.mark.core
async def test_what_bodies_want_otherwise_is_put_right_by_one_patch_and_nothing_where_nothing_differs(
    installed: Cluster, namespace: str
) -> None:
    access = load_access(kubeconfig=str(installed.kubeconfig_path), environ={})
    async with ApiClient(access, user_agent="author") as api:
        client, somebody = (Client(api, field_manager=name) for name in ("shells", "somebody"))
        assert await otherwise(client, somebody, CHANGES_NOTHING, (False, True), namespace) == []
        assert await otherwise(client, somebody, CHANGES_SOMETHING, (True, True), namespace) == []
