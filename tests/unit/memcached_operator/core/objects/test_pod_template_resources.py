"""What a server requests and may take, by its settings and by what the user says."""

from __future__ import annotations

import pytest

from memcached_operator.api.quantities import canonical
from memcached_operator.api.sizing import memory_of_server_mib
from memcached_operator.api.v1alpha1 import Resources, Spec
from memcached_operator.core.objects.pod_template import resources_of

NEEDED = canonical(f"{memory_of_server_mib(Spec())}Mi")
GIB = {"memory": "1Gi"}
TABLE: list[tuple[Resources, dict[str, str], dict[str, str]]] = [
    (Resources(), {"cpu": "50m", "memory": NEEDED}, {"memory": NEEDED}),
    (Resources(limits={"memory": "1024Mi"}), {"cpu": "50m", "memory": NEEDED}, GIB),
    (Resources(requests={"memory": "1024Mi"}), {"cpu": "50m", "memory": "1Gi"}, GIB),
    (Resources(requests={"memory": "8Mi"}), {"cpu": "50m", "memory": "8Mi"}, {"memory": NEEDED}),
    (Resources(requests={"memory": 1024}, limits=dict(GIB)), {"cpu": "50m", "memory": "1024"}, GIB),
    (Resources(requests={"cpu": "0.5"}), {"cpu": "500m", "memory": NEEDED}, {"memory": NEEDED}),
    (Resources(limits={"cpu": 2}), {"cpu": "50m", "memory": NEEDED}, {"cpu": "2", "memory": NEEDED}),
    (Resources(limits={"cpu": "20m"}), {"cpu": "20m", "memory": NEEDED}, {"cpu": "20m", "memory": NEEDED}),
    (
        Resources(requests={"ephemeral-storage": "1024Ki"}, limits={"ephemeral-storage": "1e6"}),
        {"cpu": "50m", "memory": NEEDED, "ephemeral-storage": "1Mi"},
        {"memory": NEEDED, "ephemeral-storage": "1e6"},
    ),
]


@pytest.mark.parametrize(("resources", "requests", "limits"), TABLE)
def test_what_the_user_names_is_taken_and_the_rest_follows_from_the_settings(
    resources: Resources, requests: dict[str, str], limits: dict[str, str]
) -> None:
    assert resources_of(Spec(resources=resources)) == (requests, limits)


def test_memory_follows_from_each_setting() -> None:
    spec = Spec(memory="1Gi", maxConnections=4096, threads=8, maxItemSize="2Mi")
    needed = "1323Mi"  # 1 GiB of items, their table, 4,096 connections, 8 threads and a margin
    assert resources_of(spec) == ({"cpu": "50m", "memory": needed}, {"memory": needed})
