"""Pairs of bodies for one object, the second of which changes something or nothing, and what becomes of it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from operator_runtime import Client, Kind, Object, PlainObject, plain, typed
from operator_runtime.owned.ensure_rules import rules_for_bodies
from operator_runtime.owned.patching import needs_live, patch_of

CONFIG_MAPS = plain("v1", "ConfigMap", "configmaps")
SERVICES = plain("v1", "Service", "services")
DEPLOYMENTS = plain("apps/v1", "Deployment", "deployments")
STATEFUL_SETS = plain("apps/v1", "StatefulSet", "statefulsets")
BUDGETS = plain("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
POLICIES = plain("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
TYPED = typed("apps/v1", "Deployment", "deployments", spec=dict[str, Any], status=dict[str, Any])

APP = {"app": "shop"}
CLERK = {"name": "clerk", "image": "clerk:1", "command": ["sh", "-c", "sleep 1"]}
PROXY = {"name": "proxy", "image": "proxy:1"}
DOOR = {"port": 80}
# Of a kind that nobody serves: of any other a garbage collector would look for the owner, and delete what has none.
OWNER = {
    **{"apiVersion": "example.com/v1", "kind": "Lost", "name": "one", "uid": "11111111-1111-1111-1111-111111111111"},
    "controller": True,
}
OTHER = {**OWNER, "controller": False, "name": "two", "uid": "22222222-2222-2222-2222-222222222222"}


def body(metadata: dict[str, Any] | None = None, **parts: Any) -> dict[str, Any]:
    return {"metadata": {"ownerReferences": [OWNER], **(metadata or {})}, **parts}


def words(**data: Any) -> dict[str, Any]:
    return body(data=data)


def service(*ports: dict[str, Any]) -> dict[str, Any]:
    return body(spec={"selector": APP, "ports": [*ports]})


def deployment(*containers: dict[str, Any], pod: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": APP}, "spec": {"containers": [*containers], **(pod or {})}}
    return body(spec={"selector": {"matchLabels": APP}, "template": template, **spec})


def clerk(**fields: Any) -> dict[str, Any]:
    """A Deployment of one container with these fields."""
    return deployment({**CLERK, **fields})


def foreign(**fields: Any) -> dict[str, Any]:
    """Somebody's patch, by which that container has these fields besides."""
    return in_pods(containers=[{**CLERK, **fields}])


def volume(**source: Any) -> dict[str, Any]:
    return deployment(CLERK, pod={"volumes": [{"name": "v", **source}]})


def selected(**labels: str) -> dict[str, Any]:
    return body(spec={"selector": {"matchLabels": labels}, "maxUnavailable": 1})


def policy(**spec: Any) -> dict[str, Any]:
    return body(spec={"podSelector": {"matchLabels": APP}, **spec})


class Case(NamedTuple):
    """A body that was kept, what somebody patches then, and another body."""

    kind: Kind[Any]
    first: dict[str, Any]
    between: dict[str, Any] | None
    then: dict[str, Any]


NOTHING = None
NUMBERS = itertools.count()


def same(kind: Kind[Any], kept: dict[str, Any], between: dict[str, Any] | None = NOTHING) -> Case:
    return Case(kind, kept, between, kept)


def in_pods(**fields: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": fields}}}


# What a server of its own is needed for: `test_patch_model` has the rest.
CHANGES_NOTHING = [
    same(CONFIG_MAPS, words()),
    same(SERVICES, service(DOOR)),
    same(DEPLOYMENTS, deployment(CLERK)),
    same(DEPLOYMENTS, deployment(CLERK), {"spec": {"replicas": 3}}),
    same(TYPED, deployment(CLERK)),
    same(TYPED, deployment(CLERK), {"metadata": {"labels": APP}}),
]
HOOK, OTHER_HOOK = {"preStop": {"exec": {"command": ["a"]}}}, {"preStop": {"httpGet": {"port": 80}}}
PROBE, OTHER_PROBE = {"tcpSocket": {"port": 80}, "periodSeconds": 5}, {"exec": {"command": ["a"]}, "periodSeconds": 5}
VARIABLE, OTHER_VARIABLE = (
    {"name": "A", "value": "1"},
    {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
)
CHANGES_NOTHING += [
    # An empty list of those that are merged wants no entry, and takes none of others' away.
    same(DEPLOYMENTS, clerk(env=[]), foreign(env=[{"name": "X", "value": "1"}])),
    same(DEPLOYMENTS, deployment(CLERK, pod={"volumes": []}), in_pods(volumes=[{"name": "x", "emptyDir": {}}])),
    same(CONFIG_MAPS, body({"finalizers": []}), {"metadata": {"finalizers": ["x.io/x"]}}),
    same(DEPLOYMENTS, clerk(lifecycle=HOOK), foreign(lifecycle={**HOOK, "postStart": {"exec": {"command": ["x"]}}})),
    same(BUDGETS, selected(a="1", b="2")),
    same(POLICIES, policy(egress=[{}])),
    same(STATEFUL_SETS, deployment(CLERK, serviceName="a", updateStrategy={"type": "OnDelete"})),
]
# Of what excludes each other, and of what the API server fills in by something else.
CHANGES_TOGETHER = [
    Case(DEPLOYMENTS, clerk(env=[VARIABLE]), NOTHING, clerk(env=[])),
    Case(CONFIG_MAPS, body({"finalizers": ["a.io/a"]}), NOTHING, body({"finalizers": []})),
    Case(DEPLOYMENTS, clerk(lifecycle=HOOK), NOTHING, clerk(lifecycle=OTHER_HOOK)),
    Case(DEPLOYMENTS, clerk(lifecycle=HOOK), NOTHING, clerk(lifecycle={"preStop": {"sleep": {"seconds": 1}}})),
    Case(DEPLOYMENTS, clerk(lifecycle=HOOK), NOTHING, clerk()),
    Case(DEPLOYMENTS, clerk(lifecycle=HOOK), foreign(), clerk(lifecycle=HOOK)),
    Case(DEPLOYMENTS, clerk(lifecycle=HOOK), foreign(lifecycle=OTHER_HOOK), clerk(lifecycle=HOOK)),
    Case(DEPLOYMENTS, clerk(lifecycle=HOOK), foreign(lifecycle=OTHER_HOOK), clerk()),
    Case(DEPLOYMENTS, clerk(livenessProbe=PROBE), NOTHING, clerk(livenessProbe=OTHER_PROBE)),
    Case(DEPLOYMENTS, clerk(livenessProbe=PROBE), foreign(livenessProbe=OTHER_PROBE), clerk(livenessProbe=PROBE)),
    Case(DEPLOYMENTS, clerk(env=[VARIABLE]), NOTHING, clerk(env=[OTHER_VARIABLE])),
    Case(DEPLOYMENTS, clerk(env=[VARIABLE]), foreign(env=[OTHER_VARIABLE]), clerk(env=[VARIABLE])),
    Case(DEPLOYMENTS, clerk(env=[OTHER_VARIABLE]), foreign(env=[VARIABLE]), clerk(env=[OTHER_VARIABLE])),
    Case(
        DEPLOYMENTS,
        volume(secret={"secretName": "s"}),
        in_pods(volumes=[{"name": "v", "nfs": {"server": "s", "path": "/"}}]),
        volume(secret={"secretName": "s"}),
    ),
    Case(
        DEPLOYMENTS,
        volume(emptyDir={}),
        in_pods(volumes=[{"name": "v", "configMap": {"name": "c"}}]),
        volume(emptyDir={}),
    ),
    Case(DEPLOYMENTS, deployment(CLERK), NOTHING, deployment(CLERK, strategy={"type": "Recreate"})),
    Case(DEPLOYMENTS, deployment(CLERK, strategy={"type": "Recreate"}), NOTHING, deployment(CLERK)),
    Case(
        DEPLOYMENTS,
        deployment(CLERK, strategy={"rollingUpdate": {"maxSurge": 1}}),
        {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}},
        deployment(CLERK, strategy={"rollingUpdate": {"maxSurge": 1}}),
    ),
    Case(
        STATEFUL_SETS,
        deployment(CLERK, serviceName="a", updateStrategy={"type": "OnDelete"}),
        {"spec": {"updateStrategy": {"type": "RollingUpdate"}}},
        deployment(CLERK, serviceName="a", updateStrategy={"type": "OnDelete"}),
    ),
    Case(
        DEPLOYMENTS,
        clerk(securityContext={"seccompProfile": {"type": "RuntimeDefault"}}),
        foreign(securityContext={"seccompProfile": {"type": "Localhost", "localhostProfile": "x"}}),
        clerk(securityContext={"seccompProfile": {"type": "RuntimeDefault"}}),
    ),
    Case(DEPLOYMENTS, clerk(image="clerk:latest"), NOTHING, clerk(image="clerk:1")),
    Case(DEPLOYMENTS, clerk(image="clerk:1"), NOTHING, clerk(image="clerk")),
    Case(DEPLOYMENTS, clerk(), foreign(image="clerk:latest"), clerk()),
    Case(DEPLOYMENTS, deployment(CLERK, pod={"serviceAccountName": "x"}), NOTHING, deployment(CLERK)),
    Case(
        DEPLOYMENTS,
        deployment(CLERK, pod={"serviceAccountName": "x"}),
        NOTHING,
        deployment(CLERK, pod={"serviceAccountName": "y"}),
    ),
    Case(BUDGETS, selected(a="1", b="2"), NOTHING, selected(a="1", b="3")),
    Case(BUDGETS, selected(a="1", b="2"), NOTHING, selected(a="1")),
    Case(BUDGETS, selected(a="1"), {"spec": {"selector": {"matchLabels": {"x": "1"}}}}, selected(a="1")),
    Case(BUDGETS, selected(a="1"), {"spec": {"maxUnavailable": None, "minAvailable": 1}}, selected(a="1")),
    Case(POLICIES, policy(), NOTHING, policy(egress=[{}])),
    Case(POLICIES, policy(egress=[{}]), NOTHING, policy()),
]
CHANGES_SOMETHING = [
    *CHANGES_TOGETHER,
    Case(SERVICES, service(DOOR), NOTHING, service({"port": 81})),
    Case(SERVICES, service({**DOOR, "name": "a"}, {"port": 81, "name": "b"}), NOTHING, service({**DOOR, "name": "a"})),
    Case(SERVICES, service(DOOR), {"spec": {"ports": [{"port": 81}]}}, service(DOOR)),
    Case(CONFIG_MAPS, body({"ownerReferences": [OWNER, OTHER]}), NOTHING, body({"ownerReferences": [OWNER]})),
    Case(DEPLOYMENTS, deployment(CLERK, PROXY), NOTHING, deployment(CLERK)),
    Case(DEPLOYMENTS, deployment(CLERK, replicas=3), NOTHING, deployment(CLERK)),
    Case(TYPED, deployment(CLERK, replicas=3), NOTHING, deployment(CLERK)),
    # Whoever clears managedFields takes no name from us.
    Case(CONFIG_MAPS, words(a="1", b="2"), {"metadata": {"managedFields": [{}]}}, words(a="1")),
]


async def put_right(client: Client, somebody: Client, case: Case, namespace: str = "default") -> tuple[bool, bool]:
    """Whether the second body differs from what is there, and whether the object is then as one made of that body."""
    place = {"namespace": namespace, "name": f"a{next(NUMBERS)}"}
    first, then = ({**each, "metadata": {**each["metadata"], **place}} for each in (case.first, case.then))
    rules = rules_for_bodies(client.field_manager, case.kind.resource)
    live = await client.create(case.kind, rules.body(first))
    if case.between is not None:
        live = await somebody.patch(case.kind, live, case.between)
    found = tuple(rules.differences(then, live))
    after = live
    if found:
        assert not needs_live(found, case.kind.resource)
        after = await client.patch(case.kind, live, patch_of(found, case.kind.resource), strategic=True)
    left = tuple(rules.differences(then, after))
    await gone(client, case.kind, after)
    if not found:
        return False, True
    made = await client.create(case.kind, rules.body(then))
    await gone(client, case.kind, made)
    return True, not left and of_authors(after) == of_authors(made)


async def gone(client: Client, kind: Kind[Any], obj: Any) -> None:
    await client.patch(kind, obj, {"metadata": {"finalizers": None}})
    await client.delete(kind, obj)


async def otherwise(
    client: Client, somebody: Client, cases: Sequence[Case], expected: tuple[bool, bool], namespace: str = "default"
) -> list[Case]:
    """The cases of which `put_right` returns something else."""
    outcomes = await asyncio.gather(*(put_right(client, somebody, case, namespace) for case in cases))
    return [case for case, each in zip(cases, outcomes, strict=True) if each != expected]


def of_authors(obj: PlainObject | Object[Any, Any]) -> object:
    """What of an object is for its author to write, and not for the cluster."""
    parts = [obj.body.get(part) for part in ("spec", "data")] if isinstance(obj, PlainObject) else [obj.spec]
    given = ("clusterIP", "clusterIPs")
    kept = [part and {name: value for name, value in part.items() if name not in given} for part in parts]
    annotations = {name: text for name, text in obj.annotations.items() if "deployment.kubernetes.io" not in name}
    return kept, obj.labels, annotations, obj.finalizers, obj.owners
