"""A CRD that lets everything in, as one that was installed before its schema was tightened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from operator_runtime.testing.waiting import until
from tests.cluster import Cluster
from tests.integration.conftest import CRD, memcached

CRD_NAME = "memcacheds.cache.example.com"
_LOOSE = [
    {
        "op": "replace",
        "path": "/spec/versions/0/schema/openAPIV3Schema",
        "value": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
    # It wants a number for the size, whatever the schema says.
    {"op": "remove", "path": "/spec/versions/0/subresources/scale"},
]


@contextmanager
def any_schema(cluster: Cluster) -> Iterator[None]:
    """Until the end of the block everything passes for a Memcached."""
    probe = json.dumps(memcached("probe", "three"))

    def lets_in() -> bool:
        return cluster.kubectl("create", "--dry-run=server", "-f", "-", input=probe, check=False).returncode == 0

    cluster.kubectl("patch", "crd", CRD_NAME, "--type=json", "-p", json.dumps(_LOOSE))
    try:
        until("the loosened schema never came into force", lets_in)
        yield
    finally:
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRD))
        until("the schema never came into force again", lambda: not lets_in())
