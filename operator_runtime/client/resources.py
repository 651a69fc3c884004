"""Location of a kind in the Kubernetes API: group, version, plural, the paths that follow, and its discovery."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec


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
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
SCALES = Resource("autoscaling", "v1", "scales", "Scale")  # what the subresource `scale` of a kind is answered with


# Names in one message; the core group has 17.
_NAMES_SHOWN = 20


class _Served(msgspec.Struct):
    name: str
    kind: str
    namespaced: bool


class _ResourceList(msgspec.Struct):
    """The answer at /apis/GROUP/VERSION: https://kubernetes.io/docs/reference/using-api/api-concepts/#discovery-api."""

    resources: list[_Served] | None = None


def has_subresource(resource: Resource, subresource: str, answer: bytes) -> bool:
    """Report it of a subresource such as `resize`; ValueError where the answer at the group's path is none."""
    served = msgspec.json.decode(answer, type=_ResourceList).resources or []
    return any(each.name == f"{resource.plural}/{subresource}" for each in served)


def misnamed(resource: Resource, answer: bytes) -> tuple[str, bool]:
    """Explain why a kind was not found although its group and version are served; `answer` is the body at their path.

    A sentence, "" where the answer does not show it, and whether the kind is there under another name or scope, so that
    nothing is to be installed.
    """
    try:
        served = msgspec.json.decode(answer, type=_ResourceList).resources or []
    except msgspec.DecodeError:
        return "", False
    whole = [each for each in served if "/" not in each.name]  # a subresource is named PLURAL/NAME
    for each in whole:
        if each.name == resource.plural:
            if resource.namespaced and not each.namespaced:
                return f"The kind {each.kind} is cluster-scoped: declare it with namespaced=False.", True
            return "", False  # it came in the meantime
    for each in whole:
        if each.kind == resource.kind:
            return f"The plural of {each.kind} in {resource.api_version} is {each.name!r}: declare it so.", True
    names = sorted(each.name for each in whole)
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"{resource.api_version} has {', '.join(names[:_NAMES_SHOWN]) or 'no kind at all'}{more}.", False
