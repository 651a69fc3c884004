"""Pairs of applies, the second of which changes something or nothing, and what an API server makes of them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from operator_runtime import Client, Kind, Object, PlainObject, plain, typed
from operator_runtime.objects.drift import covers

CONFIG_MAPS = plain("v1", "ConfigMap", "configmaps")
SERVICES = plain("v1", "Service", "services")
DEPLOYMENTS = plain("apps/v1", "Deployment", "deployments")
TYPED = typed("apps/v1", "Deployment", "deployments", spec=dict[str, Any], status=dict[str, Any])

APP = {"app": "shop"}
CLERK = {"name": "clerk", "image": "clerk:1", "command": ["sh", "-c", "sleep 1"]}
PROXY = {"name": "proxy", "image": "proxy:1"}
DOOR = {"port": 80}
# Of a kind that nobody serves: of any other a garbage collector would look for the owner, and delete what has none.
OWNER = {"apiVersion": "example.com/v1", "kind": "Lost", "name": "one", "uid": "11111111-1111-1111-1111-111111111111"}
OTHER = {**OWNER, "name": "two", "uid": "22222222-2222-2222-2222-222222222222"}


def body(metadata: dict[str, Any] | None = None, **parts: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "default", "name": "a", **(metadata or {})}, **parts}


def words(**data: Any) -> dict[str, Any]:
    return body(data=data)


def service(*ports: dict[str, Any]) -> dict[str, Any]:
    return body(spec={"selector": APP, "ports": [*ports]})


def deployment(*containers: dict[str, Any], pod: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": APP}, "spec": {"containers": [*containers], **(pod or {})}}
    return body(spec={"selector": {"matchLabels": APP}, "template": template, **spec})


def owned(whole: dict[str, Any]) -> dict[str, Any]:
    return whole | body({"ownerReferences": [OWNER]})


class Case(NamedTuple):
    """An apply, what somebody patches then, and another apply."""

    kind: Kind[Any]
    first: dict[str, Any]
    between: dict[str, Any] | None
    then: dict[str, Any]


NOTHING = None
NUMBERS = itertools.count()
CHANGES_NOTHING = [
    Case(CONFIG_MAPS, words(a="1"), NOTHING, words(a="1")),
    Case(CONFIG_MAPS, words(a="1"), NOTHING, words(a="1", b=None)),
    Case(CONFIG_MAPS, words(a="1"), {"data": {"b": "2"}}, words(a="1")),
    Case(CONFIG_MAPS, words(), NOTHING, words()),
    Case(CONFIG_MAPS, body({"labels": {}}), NOTHING, body({"labels": {}})),
    Case(CONFIG_MAPS, body({"labels": APP}), {"metadata": {"labels": {"b": "2"}}}, body({"labels": APP})),
    Case(CONFIG_MAPS, body({"finalizers": ["a.io/a"]}), NOTHING, body({"finalizers": ["a.io/a"]})),
    Case(
        CONFIG_MAPS,
        body({"finalizers": ["a.io/a"]}),
        {"metadata": {"finalizers": ["b.io/b", "a.io/a"]}},
        body({"finalizers": ["a.io/a"]}),
    ),
    Case(
        CONFIG_MAPS,
        body({"ownerReferences": [OWNER]}),
        {"metadata": {"ownerReferences": [OTHER, OWNER]}},
        body({"ownerReferences": [OWNER]}),
    ),
    Case(SERVICES, service(DOOR), NOTHING, service(DOOR)),
    Case(DEPLOYMENTS, deployment(CLERK), NOTHING, deployment(CLERK)),
    Case(DEPLOYMENTS, deployment(CLERK), {"spec": {"replicas": 3}}, deployment(CLERK)),
    Case(
        DEPLOYMENTS,
        deployment(CLERK),
        {"spec": {"template": {"spec": {"containers": [PROXY, CLERK]}}}},
        deployment(CLERK),
    ),
    Case(
        DEPLOYMENTS,
        deployment(CLERK, pod={"volumes": [{"name": "v", "emptyDir": {}}]}),
        NOTHING,
        deployment(CLERK, pod={"volumes": [{"name": "v", "emptyDir": {}}]}),
    ),
    Case(TYPED, deployment(CLERK), NOTHING, deployment(CLERK)),
    Case(TYPED, owned(deployment(CLERK)), {"metadata": {"labels": APP}}, owned(deployment(CLERK))),
]
CHANGES_SOMETHING = [
    # Another value.
    Case(CONFIG_MAPS, words(a="1"), NOTHING, words(a="2")),
    Case(CONFIG_MAPS, words(a="1"), NOTHING, words(a="1", b="2")),
    Case(CONFIG_MAPS, words(a="1"), {"data": {"a": "2"}}, words(a="1")),
    Case(CONFIG_MAPS, words(a="1"), {"data": None}, words(a="1")),
    Case(CONFIG_MAPS, body({"labels": APP}), {"metadata": {"labels": {"app": None}}}, body({"labels": APP})),
    Case(DEPLOYMENTS, deployment(CLERK), NOTHING, deployment({**CLERK, "image": "clerk:2"})),
    Case(DEPLOYMENTS, deployment(CLERK), NOTHING, deployment({**CLERK, "command": ["-c", "sh", "sleep 1"]})),
    Case(DEPLOYMENTS, deployment(CLERK, paused=True), {"spec": {"paused": None}}, deployment(CLERK, paused=True)),
    Case(SERVICES, service(DOOR), NOTHING, service({"port": 81})),
    # A field that was applied and is left out now.
    Case(CONFIG_MAPS, words(a="1", b="2"), NOTHING, words(a="1")),
    Case(CONFIG_MAPS, words(a="1", b="2"), NOTHING, words(a="1", b=None)),
    Case(CONFIG_MAPS, words(a="1"), NOTHING, words()),
    Case(CONFIG_MAPS, words(a="1"), NOTHING, body()),
    Case(CONFIG_MAPS, body({"labels": {**APP, "b": "2"}}), NOTHING, body({"labels": APP})),
    Case(CONFIG_MAPS, body({"annotations": APP}, data={"a": "1"}), NOTHING, words(a="1")),
    Case(CONFIG_MAPS, body({"finalizers": ["a.io/a", "b.io/b"]}), NOTHING, body({"finalizers": ["a.io/a"]})),
    Case(CONFIG_MAPS, body({"ownerReferences": [OWNER, OTHER]}), NOTHING, body({"ownerReferences": [OWNER]})),
    Case(SERVICES, service({**DOOR, "name": "a"}, {"port": 81, "name": "b"}), NOTHING, service({**DOOR, "name": "a"})),
    Case(DEPLOYMENTS, deployment(CLERK, PROXY), NOTHING, deployment(CLERK)),
    Case(DEPLOYMENTS, deployment({**CLERK, "workingDir": "/"}), NOTHING, deployment(CLERK)),
    Case(DEPLOYMENTS, deployment(CLERK, replicas=3), NOTHING, deployment(CLERK)),
    Case(
        DEPLOYMENTS,
        deployment({**CLERK, "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}),
        NOTHING,
        deployment({**CLERK, "env": [{"name": "A", "value": "1"}]}),
    ),
    # In a value that is one as a whole.
    Case(DEPLOYMENTS, deployment(CLERK, pod={"nodeSelector": {"a": "1", "b": "2"}}), NOTHING, deployment(CLERK)),
    Case(
        DEPLOYMENTS,
        deployment(CLERK, pod={"nodeSelector": {"a": "1", "b": "2"}}),
        NOTHING,
        deployment(CLERK, pod={"nodeSelector": {"a": "1"}}),
    ),
    Case(
        DEPLOYMENTS,
        deployment(CLERK, pod={"nodeSelector": {"a": "1"}}),
        {"spec": {"template": {"spec": {"nodeSelector": {"b": "2"}}}}},
        deployment(CLERK, pod={"nodeSelector": {"a": "1"}}),
    ),
    Case(
        DEPLOYMENTS,
        deployment(CLERK, pod={"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]}),
        NOTHING,
        deployment(CLERK, pod={"tolerations": [{"key": "a", "operator": "Exists"}]}),
    ),
    Case(TYPED, deployment(CLERK, replicas=3), NOTHING, deployment(CLERK)),
    Case(TYPED, owned(deployment(CLERK)), NOTHING, deployment(CLERK)),
]


async def is_spared(client: Client, somebody: Client, case: Case, namespace: str = "default") -> tuple[bool, bool]:
    """What `covers` says of the second of two applies, and whether it changed nothing."""
    place = {"namespace": namespace, "name": f"a{next(NUMBERS)}"}
    first, then = ({**each, "metadata": {**each["metadata"], **place}} for each in (case.first, case.then))
    live = await client.apply(case.kind, first)
    if case.between is not None:
        live = await somebody.patch(case.kind, live, case.between)
    after = await client.apply(case.kind, then)
    await client.patch(case.kind, after, {"metadata": {"finalizers": None}})
    await client.delete(case.kind, after)
    return covers(live, then, client.field_manager), of_authors(after) == of_authors(live)


async def otherwise(
    client: Client, somebody: Client, cases: Sequence[Case], expected: tuple[bool, bool], namespace: str = "default"
) -> list[Case]:
    """The cases of which `is_spared` says something else."""
    said = await asyncio.gather(*(is_spared(client, somebody, case, namespace) for case in cases))
    return [case for case, each in zip(cases, said, strict=True) if each != expected]


def of_authors(obj: PlainObject | Object[Any, Any]) -> object:
    """What of an object is not for the cluster's own controllers to write, which do so at any time."""
    metadata = msgspec.structs.replace(obj.metadata, resource_version="", annotations={}, generation=0)
    spec = [obj.body.get(part) for part in ("spec", "data")] if isinstance(obj, PlainObject) else obj.spec
    return metadata, spec, {name: obj.annotations[name] for name in obj.annotations if name in APP}
