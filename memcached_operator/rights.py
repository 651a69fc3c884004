"""The rights that the operator needs, each with what is missed without it.

The manifests grant these and no others (a test compares); `memcached-operator check` asks for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Right:
    """A rule of a Role: these verbs on one resource.

    Attributes:
        group: API group, "" for the core group.
        resource: plural name, with its subresource where there is one: `memcacheds/status`.
        verbs: what the operator does with it.
        without: what happens without one of them, to follow "without it".
    """

    group: str
    resource: str
    verbs: tuple[str, ...]
    without: str = ""

    @property
    def qualified_name(self) -> str:
        """As kubectl takes and prints it: `memcacheds.cache.example.com/status`."""
        plural, slash, subresource = self.resource.partition("/")
        return (f"{plural}.{self.group}" if self.group else plural) + slash + subresource


_BLIND: Final = "nothing is done, as its picture of the cluster stays incomplete"

WATCHED: Final = (
    Right("cache.example.com", "memcacheds", ("get", "list", "watch"), _BLIND),
    Right("cache.example.com", "memcacheds/status", ("patch",), "no status is written"),
    Right(
        "cache.example.com",
        "memcacheds/finalizers",
        ("update",),
        "no Deployment is made where the admission plugin OwnerReferencesPermissionEnforcement is on",
    ),
    Right(
        "apps",
        "deployments",
        ("get", "list", "watch", "create", "patch"),
        "no servers are made, scaled or put right",
    ),
    Right("", "pods", ("list", "watch"), _BLIND),
    Right("events.k8s.io", "events", ("create", "patch"), "no events are written; everything else goes on"),
)
"""In each watched namespace, or in all."""

LEASE: Final = (
    Right(
        "coordination.k8s.io",
        "leases",
        ("get", "list", "watch", "create", "patch"),
        "no replica leads, and nothing is done",
    ),
)
"""In the namespace of the election, with --leader-elect."""

LIFE: Final = (
    Right("", "configmaps", ("get", "create"), "no replica leads, and nothing is done"),
    Right(
        "",
        "pods",
        ("get", "delete"),
        "no replica leads (get), or a leader that was evicted or whose node is lost is not replaced (delete)",
    ),
)
"""In the operator's namespace, with --leader-elect-mode=life."""

LIFE_CLUSTER: Final = (Right("", "nodes", ("get",), "a leader whose node is lost is not replaced"),)
"""Cluster-wide, with --leader-elect-mode=life."""

REVIEWS: Final = (
    Right("authentication.k8s.io", "tokenreviews", ("create",), "nobody may scrape the metrics"),
    Right("authorization.k8s.io", "subjectaccessreviews", ("create",), "nobody may scrape the metrics"),
)
"""Cluster-wide, with --metrics-secure."""

TENANTS: Final = (
    Right(
        "cache.example.com",
        "memcacheds",
        ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"),
    ),
    Right("cache.example.com", "memcacheds/scale", ("get", "update", "patch")),
    Right("cache.example.com", "memcacheds/status", ("get", "update", "patch")),
)
"""What the install for the whole cluster lets users have, by ClusterRoles; the operator needs none of it."""
