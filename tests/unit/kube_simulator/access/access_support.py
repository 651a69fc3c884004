"""Roles, bindings and accounts for the tests of this package."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kube_simulator.access.authorizer import BINDINGS, CLUSTER_BINDINGS, CLUSTER_ROLES, ROLES
from kube_simulator.requests.types import Target, User
from kube_simulator.schema.kubernetes import builtin_resources
from kube_simulator.store.store import Store
from kube_simulator.values import Json

RESOURCES = {resource.full_name: resource for resource in builtin_resources()}
MASTER = User("root", frozenset({"system:masters", "system:authenticated"}))


class Clock:
    """A time that moves when it is told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 21, 15, 0, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def rule(groups: str, resources: str, verbs: str, names: str = "") -> Json:
    """A rule whose lists are words; the group of core is `core`."""
    named = {"resourceNames": names.split()} if names else {}
    listed = ["" if group == "core" else group for group in groups.split()]
    return {"verbs": verbs.split(), "apiGroups": listed, "resources": resources.split(), **named}


def paths(urls: str, verbs: str) -> Json:
    return {"verbs": verbs.split(), "nonResourceURLs": urls.split()}


def role(name: str, *rules: Json, namespace: str = "", **more: Json) -> Json:
    where = {"namespace": namespace} if namespace else {}
    return {"metadata": {"name": name, **where}, "rules": list(rules), **more}


def binding(name: str, to: str, *subjects: str, namespace: str = "") -> Json:
    """`to` and the subjects are `Kind/name`, a service account `ServiceAccount/name/namespace`."""
    kind, _, role_name = to.partition("/")
    where = {"namespace": namespace} if namespace else {}
    return {
        "metadata": {"name": name, **where},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role_name},
        "subjects": [_subject(*subject.split("/")) for subject in subjects],
    }


def _subject(kind: str, name: str, namespace: str = "") -> Json:
    return {"kind": kind, "name": name, **({"namespace": namespace} if namespace else {})}


def grant(store: Store, user: str, *rules: Json, namespace: str = "", name: str = "") -> None:
    """Give these rules to a user, in one namespace or in all."""
    name = name or f"of-{user}"
    store.put(ROLES if namespace else CLUSTER_ROLES, role(name, *rules, namespace=namespace))
    kind = "Role" if namespace else "ClusterRole"
    bound = binding(name, f"{kind}/{name}", f"User/{user}", namespace=namespace)
    store.put(BINDINGS if namespace else CLUSTER_BINDINGS, bound)


def put_named(store: Store, collection: str, name: str, uid: str, namespace: str = "shop", **more: Json) -> Json:
    return store.put(collection, {"metadata": {"name": name, "namespace": namespace, "uid": uid}, **more})


def target(full_name: str, namespace: str = "", name: str = "", subresource: str = "") -> Target:
    return Target(RESOURCES[full_name], namespace, name, subresource)
