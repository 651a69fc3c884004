"""The permissions that the operator needs, each with what is missed without it.

The manifests grant these and no others (a test compares); `memcached-operator check` asks for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Permission:
    """A rule of a Role: verbs on one resource, whose lack has the same effect.

    Attributes:
        group: API group, "" for the core group.
        resource: plural name, with its subresource where there is one: `memcacheds/status`.
        verbs: what the operator does with it.
        without: what happens without one of them, to follow "without it".
        named: of one object alone, whose name the settings tell. What is yet to be made has no name to go by.
    """

    group: str
    resource: str
    verbs: tuple[str, ...]
    without: str = ""
    named: bool = False

    @property
    def qualified_name(self) -> str:
        """As kubectl takes and prints it: `memcacheds.cache.example.com/status`."""
        plural, slash, subresource = self.resource.partition("/")
        return (f"{plural}.{self.group}" if self.group else plural) + slash + subresource


_BLIND: Final = "nothing is done, as its caches stay incomplete"

# Whoever writes them is read from the live object alone, which no cache has.
_UNTOLD: Final = "it is not told which client keeps changing one"
_UNOWNED: Final = "none gets its owner back where OwnerReferencesPermissionEnforcement is on"


def _beside(
    group: str, resource: str, without: str, *, undeleted: str, unread: str = _UNTOLD
) -> tuple[Permission, ...]:
    """What is done with a kind that a Memcached can do without: all else goes on.

    Args:
        without: what is missed where none is made and put right.
        undeleted: what is missed where none is deleted.
        unread: what is missed where none is read but by the watch.
    """
    return (
        Permission(group, resource, ("list", "watch", "create", "patch"), without),
        Permission(group, resource, ("get",), unread),
        # That plugin lets only those change an object's owners who may delete it.
        Permission(group, resource, ("delete",), f"{undeleted}; and {_UNOWNED}"),
    )


WATCHED: Final = (
    Permission("cache.example.com", "memcacheds", ("get", "list", "watch"), _BLIND),
    # For metadata.finalizers alone, which have no finer permission. Also with --finalizer off: a Memcached may carry it
    # from an operator before this one, and would never go.
    Permission(
        "cache.example.com",
        "memcacheds",
        ("patch",),
        "no Memcached gets the finalizer with --finalizer, and one that carries it is never gone when it is deleted",
    ),
    Permission("cache.example.com", "memcacheds/status", ("patch",), "no status is written"),
    Permission(
        "cache.example.com",
        "memcacheds/finalizers",
        ("update",),
        "nothing is made where the admission plugin OwnerReferencesPermissionEnforcement is on",
    ),
    Permission("apps", "deployments", ("list", "watch"), _BLIND),
    Permission("apps", "deployments", ("create", "patch"), "no servers are made, scaled or put right"),
    Permission(
        "apps",
        "deployments",
        ("get",),
        f"{_UNTOLD}, and a deleted Memcached that carries the finalizer may never go",
    ),
    Permission(
        "apps",
        "deployments",
        ("delete",),
        "a deleted Memcached that carries the finalizer is never gone, nor is the Deployment of one that has moved to "
        f"a StatefulSet; and {_UNOWNED}",
    ),
    *_beside(
        "apps",
        "statefulsets",
        "no Memcached with spec.workload StatefulSet gets servers, while those of Deployments go on",
        unread=f"{_UNTOLD}, and a deleted Memcached that has one and carries the finalizer may never go",
        undeleted="a deleted Memcached that has one and carries the finalizer is never gone, nor is the StatefulSet of "
        "one that has moved to a Deployment, and none is replaced",
    ),
    *_beside(
        "",
        "services",
        "no Service is made, so that clients find no servers by a name",
        undeleted="a Service stays that is no longer asked for, and none changes between Headless and ClusterIP",
    ),
    *_beside(
        "policy",
        "poddisruptionbudgets",
        "no PodDisruptionBudget is made, so that a drain of nodes may take all servers at once",
        undeleted="a PodDisruptionBudget stays that is no longer asked for, or that is beside somebody else's",
    ),
    *_beside(
        "networking.k8s.io",
        "networkpolicies",
        "spec.networkPolicy has no effect",
        unread=f"{_UNTOLD}, or whose it is that bears the name",
        undeleted="a NetworkPolicy stays that is no longer asked for",
    ),
    *_beside(
        "",
        "configmaps",
        "spec.publish has no effect",
        unread=f"{_UNTOLD}, or whose it is that bears the name",
        undeleted="a ConfigMap stays that is no longer asked for",
    ),
    Permission("", "pods", ("list", "watch"), _BLIND),
    Permission(
        "",
        "pods",
        ("get",),
        "the servers of a StatefulSet get other memory by being replaced, which empties them; and a pod that is in the "
        "way of one is not named",
    ),
    Permission(
        "",
        "pods/resize",
        ("patch",),
        "the servers of a StatefulSet get other memory by being replaced, which empties them",
    ),
    Permission("", "pods/eviction", ("create",), "the servers of a StatefulSet stay as they were made"),
    Permission("events.k8s.io", "events", ("create", "patch"), "no events are written; everything else goes on"),
    Permission(
        "",
        "events",
        ("list",),
        "Degraded does not say what keeps a StatefulSet from making pods, such as a quota; everything else goes on",
    ),
)
"""In each watched namespace, or in all."""

_LEADERLESS: Final = "no replica leads, and nothing is done"

LEASE: Final = (
    Permission("coordination.k8s.io", "leases", ("get", "list", "watch", "patch"), _LEADERLESS, named=True),
    Permission("coordination.k8s.io", "leases", ("create",), _LEADERLESS),
)
"""In the namespace of the election, with --leader-elect."""

LIFE: Final = (
    Permission("", "configmaps", ("get",), _LEADERLESS, named=True),
    Permission("", "configmaps", ("create",), _LEADERLESS),
    Permission("", "pods", ("get",), _LEADERLESS),
    Permission("", "pods", ("delete",), "a leader that was evicted or whose node is lost is not replaced"),
)
"""In the operator's namespace, with --leader-elect-mode=life."""

LIFE_CLUSTER: Final = (Permission("", "nodes", ("get",), "a leader whose node is lost is not replaced"),)
"""Cluster-wide, with --leader-elect-mode=life."""

REVIEWS: Final = (
    Permission("authentication.k8s.io", "tokenreviews", ("create",), "nobody may scrape the metrics"),
    Permission("authorization.k8s.io", "subjectaccessreviews", ("create",), "nobody may scrape the metrics"),
)
"""Cluster-wide, with --metrics-secure."""

SERVER_CREDENTIALS: Final = (
    Permission(
        "",
        "secrets",
        ("get",),
        "servers that ask for a password or a client certificate are not asked how they do, and get other memory by "
        "being replaced. A Role that names the Secrets grants it for these alone, which is not seen here",
    ),
)
"""In each watched namespace, or in all, with --server-credentials."""

TENANTS: Final = (
    Permission(
        "cache.example.com",
        "memcacheds",
        ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"),
    ),
    # For anyone who installs an operator in a namespace: nobody can grant a permission that they lack.
    Permission("cache.example.com", "memcacheds/finalizers", ("update",)),
    Permission("", "pods/resize", ("patch",)),
    Permission("cache.example.com", "memcacheds/scale", ("get", "update", "patch")),
    Permission("cache.example.com", "memcacheds/status", ("get", "update", "patch")),
)
"""What the install for the whole cluster lets users have, by ClusterRoles; the operator needs none of it."""
