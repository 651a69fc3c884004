"""What is wrong with a CustomResourceDefinition."""

from __future__ import annotations

from memcached_operator.simulator.errors import Cause, Json


def problems_of(crd: Json, old: Json | None = None) -> list[Cause]:
    return []
