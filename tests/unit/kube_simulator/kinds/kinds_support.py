"""Objects written by the strategy of their kind, as a request does it, without the rest of a request."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any

from kube_simulator.errors import Cause
from kube_simulator.kinds.metadata import metadata_problems
from kube_simulator.kinds.strategies import strategy_of
from kube_simulator.resources import Resource
from kube_simulator.schema.kubernetes import builtin_resources
from kube_simulator.values import Json

NOW = datetime(2026, 11, 21, 15, tzinfo=UTC)
NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


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


def causes(kind: Resource, new: Json, old: Json | None = None) -> list[Cause]:
    """Everything that is wrong with an object."""
    return metadata_problems(kind, new, old) + strategy_of(kind).validate(new, old)


def problems(kind: Resource, new: Json, old: Json | None = None) -> set[str]:
    """Like `causes`, each as a message has it: field and what is wrong there."""
    return {f"{cause.field}: {cause.message}" for cause in causes(kind, new, old)}


def refused(kind: Resource, **fields: Any) -> set[str]:
    """What is wrong with a new object that has these fields."""
    return problems(kind, created(kind, an(kind, **fields)))
