"""CustomResourceDefinitions of tests that come and go."""

from __future__ import annotations

import operator
from functools import partial

from operator_runtime.testing.waiting import DEADLINE_S, eventually
from tests.cluster import Cluster

MEMCACHEDS = "memcacheds.cache.example.com"


def served(cluster: Cluster, name: str = MEMCACHEDS) -> None:
    """Wait until the API server reads objects of a definition.

    One that is deleted in the moment that it is made or changed, before anybody asked for an object of it, may stay for
    five minutes: its API server finds that the kind's "storage is (re)initializing", and looks again no sooner.
    """
    eventually(lambda: cluster.kubectl("get", name, "-A", check=False).returncode, partial(operator.eq, 0))


def forget(cluster: Cluster, name: str = MEMCACHEDS) -> None:
    """Delete a definition, if it is there, and wait until it is gone."""
    if cluster.kubectl("get", "crd", name, "--ignore-not-found", "-o", "name").stdout:
        served(cluster, name)
        cluster.kubectl("delete", "crd", name, f"--timeout={DEADLINE_S:.0f}s")
