"""Location of a kind in the Kubernetes API: group, version, plural, and the paths that follow from them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind as the API server names it.

    Attributes:
        group: API group, "" for the core group.
        plural: name of the collection in a path.
        namespaced: False for cluster-scoped kinds, whose paths ignore a namespace.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified_name(self) -> str:
        """`plural.group`, as kubectl, RBAC messages and CustomResourceDefinitions write it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def group_path(self) -> str:
        """Path of the discovery document of this group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path of the collection (`namespace` None: of all namespaces), of an object, or of its subresource."""
        scope = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        tail = "".join(f"/{part}" for part in (name, subresource) if part)
        return f"{self.group_path}{scope}/{self.plural}{tail}"


DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
PODS = Resource("", "v1", "pods", "Pod")
EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
SCALES = Resource("autoscaling", "v1", "scales", "Scale")  # what the subresource `scale` of a kind is answered with
