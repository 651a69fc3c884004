"""The permissions that the operator needs, each with what is missed without it.

The manifests grant these and no others (a test compares); `memcached-operator check` reviews them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from memcached_operator.api import names


@dataclass(frozen=True, slots=True)
class Permission:
    """A rule of a Role: verbs on one resource, whose lack has the same effect.

    Attributes:
        group: API group, "" for the core group.
        resource: plural name, with its subresource where there is one: `memcacheds/status`.
        without: what happens without one of them, to follow "without it".
        named: of one object alone, whose name the settings have. What is yet to be created has no name to go by.
    """

    group: str
    resource: str
    verbs: tuple[str, ...]
    without: str = ""
    named: bool = False

    @property
    def qualified_name(self) -> str:
        """Name that kubectl takes and prints: `memcacheds.cache.example.com/status`."""
        plural, slash, subresource = self.resource.partition("/")
        return (f"{plural}.{self.group}" if self.group else plural) + slash + subresource


_BLIND: Final = "nothing is reconciled, as the caches stay incomplete"

# Who writes them is read from the live object alone, which no cache has.
_UNTOLD: Final = "the operator does not learn which client keeps changing one"
_UNOWNED: Final = "no object gets its owner back if OwnerReferencesPermissionEnforcement is on"


def _auxiliary(
    group: str, resource: str, without: str, *, undeleted: str, unread: str = _UNTOLD
) -> tuple[Permission, ...]:
    """List the permissions for a kind of auxiliary objects, without which all else goes on.

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
    Permission(names.GROUP, "memcacheds", ("get", "list", "watch"), _BLIND),
    # For metadata.finalizers alone, which have no finer permission. Also with --finalizer off: a Memcached may carry it
    # from an operator before this one, and would never go.
    Permission(
        names.GROUP,
        "memcacheds",
        ("patch",),
        "no Memcached gets the finalizer with --finalizer, and a deleted one that has it is never removed",
    ),
    Permission(names.GROUP, "memcacheds/status", ("patch",), "no status is written"),
    Permission(
        names.GROUP,
        "memcacheds/finalizers",
        ("update",),
        "no object is created if the admission plugin OwnerReferencesPermissionEnforcement is on",
    ),
    Permission("apps", "deployments", ("list", "watch"), _BLIND),
    Permission("apps", "deployments", ("create", "patch"), "no servers are created, scaled or repaired"),
    Permission(
        "apps",
        "deployments",
        ("get",),
        f"{_UNTOLD}, and a deleted Memcached that has the finalizer may never be removed",
    ),
    Permission(
        "apps",
        "deployments",
        ("delete",),
        "a deleted Memcached that has the finalizer is never removed, nor is the Deployment of one that has moved to "
        f"a StatefulSet; and {_UNOWNED}",
    ),
    *_auxiliary(
        "apps",
        "statefulsets",
        "no Memcached with spec.workload StatefulSet gets servers, while those of Deployments continue",
        unread=f"{_UNTOLD}, and a deleted Memcached that has one and the finalizer may never be removed",
        undeleted=(
            "a deleted Memcached that has one and the finalizer is never removed, nor is the StatefulSet of one that "
            "has moved to a Deployment, and none is replaced"
        ),
    ),
    *_auxiliary(
        "",
        "services",
        "no Service is created, so that clients find no servers by a name",
        undeleted="a Service that is no longer specified stays, and none changes between Headless and ClusterIP",
    ),
    *_auxiliary(
        "policy",
        "poddisruptionbudgets",
        "no PodDisruptionBudget is created, so that draining nodes may remove all servers at once",
        undeleted="a PodDisruptionBudget that is no longer specified, or that another one overlaps, stays",
    ),
    *_auxiliary(
        "networking.k8s.io",
        "networkpolicies",
        "spec.networkPolicy has no effect",
        unread=f"{_UNTOLD}, or the owner of one with the same name",
        undeleted="a NetworkPolicy that is no longer specified stays",
    ),
    *_auxiliary(
        "",
        "configmaps",
        "spec.discovery has no effect, and no server gets spec.tls, auth, warmRestart or handover, whose scripts are "
        "in a ConfigMap",
        unread=f"{_UNTOLD}, or the owner of one with the same name",
        undeleted="a ConfigMap that is no longer specified stays",
    ),
    Permission("", "pods", ("list", "watch"), _BLIND),
    Permission(
        "",
        "pods",
        ("get",),
        "the servers of a StatefulSet are replaced, which empties them, to change their memory; and a pod that "
        "blocks a server is not named",
    ),
    Permission(
        "",
        "pods/resize",
        ("patch",),
        "the servers of a StatefulSet are replaced, which empties them, to change their memory",
    ),
    Permission(
        "",
        "pods",
        ("patch",),
        "the servers of a Memcached with spec.warmRestart are replaced, which empties them, to change their image; and "
        "clients of spec.discovery.autoDiscovery are given a new list up to two minutes late",
    ),
    Permission("", "pods/eviction", ("create",), "the servers of a StatefulSet are never replaced"),
    Permission("events.k8s.io", "events", ("create", "patch"), "no events are written; everything else continues"),
    Permission(
        "",
        "events",
        ("list",),
        "no condition says why a StatefulSet creates no pods, such as a quota, or why a volume cannot be mounted or "
        "the claim of a disk not be bound; everything else continues",
    ),
)
"""In each watched namespace, or in all."""

_LEADERLESS: Final = "no replica leads, and nothing is reconciled"

LEASE: Final = (
    Permission("coordination.k8s.io", "leases", ("get", "list", "watch", "patch"), _LEADERLESS, named=True),
    Permission("coordination.k8s.io", "leases", ("create",), _LEADERLESS),
)
"""In the namespace of the election, with --leader-elect: the operator's own by default."""

OWN_POD: Final = (
    Permission("", "pods", ("get",), "spec.discovery.autoDiscovery makes no endpoint, unless --operator-image is set"),
)
"""In the operator's namespace, without --operator-image: the pods of an endpoint run the image that its own pod has."""

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
    Permission("authentication.k8s.io", "tokenreviews", ("create",), "no client may scrape the metrics"),
    Permission("authorization.k8s.io", "subjectaccessreviews", ("create",), "no client may scrape the metrics"),
)
"""Cluster-wide, with --metrics-secure."""

SERVER_CREDENTIALS: Final = (
    Permission(
        "",
        "secrets",
        ("get",),
        "servers that require a password or a client certificate are not queried for their statistics, and are "
        "replaced to change their memory. A Role that names the Secrets grants it for these only, which this check "
        "does not see",
    ),
)
"""In each watched namespace, or in all, with --server-credentials."""

TENANTS: Final = (
    Permission(
        names.GROUP,
        "memcacheds",
        ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"),
    ),
    # For anyone who installs an operator in a namespace: no user can grant a permission that they lack.
    Permission(names.GROUP, "memcacheds/finalizers", ("update",)),
    Permission("", "pods/resize", ("patch",)),
    Permission("events.k8s.io", "events", ("create", "patch")),
    Permission(names.GROUP, "memcacheds/scale", ("get", "update", "patch")),
    Permission(names.GROUP, "memcacheds/status", ("get", "update", "patch")),
)
"""What the install for the whole cluster lets users have, by ClusterRoles; the operator needs none of it."""
