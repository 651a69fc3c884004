"""Objects written by the strategy of their kind, as a request does it, without the rest of a request."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any

from kube_simulator.kinds.strategies import strategy_of
from kube_simulator.resources import Resource
from kube_simulator.schema.kubernetes import builtin_resources
from kube_simulator.values import Json

NOW = datetime(2026, 11, 21, 15, tzinfo=UTC)


@cache
def resource(full_name: str) -> Resource:
    """A built-in resource, such as `deployments.apps`."""
    return next(each for each in builtin_resources() if each.full_name == full_name)


def an(kind: Resource, name: str = "a", /, **fields: Any) -> Json:
    """An object of a kind."""
    namespace = {"namespace": "ns"} if kind.namespaced else {}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name, **namespace}, **fields}


def created(kind: Resource, body: Json) -> Json:
    """What is stored of a new object."""
    strategy = strategy_of(kind)
    return strategy.complete(strategy.default(strategy.prepare_create(body)), None)
