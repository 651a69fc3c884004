"""Routes: from a method and a path to what authorization judges, and then to a resource that is served.

Authorization comes before anybody reads whether the resource exists, so that an unknown user does not learn what is
installed: `parse` knows nothing of the registry, and `target` does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote

from kube_simulator.access.authorizer import Attributes
from kube_simulator.errors import ApiError, not_implemented
from kube_simulator.requests.types import Target
from kube_simulator.resources import Registry, Resource, full_resource
from kube_simulator.schema.kubernetes import is_known

_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OF_ONE = ("get", "update", "patch", "delete")
# A field selector that picks one name makes the name count for RBAC's resourceNames.
_ONE_NAME = re.compile(r"(?:^|,)metadata\.name==?([^,=!]+)(?=,|$)")
# Subresources of the namespace itself, which stand where another resource's plural would.
_OF_NAMESPACES = ("status", "finalize")

SUBRESOURCE_VERBS: Mapping[str, tuple[str, ...]] = {
    "eviction": ("create",),
    "finalize": ("update",),
    "scale": ("get", "patch", "update"),
    "status": ("get", "patch", "update"),
    "token": ("create",),
}


class TextNotFound(Exception):
    """404 in plain text: by it a client tells a missing CRD from a missing object."""


@dataclass(frozen=True, slots=True)
class Route:
    """A request's path and verb; `resource` is empty for paths such as /version."""

    method: str
    path: str
    query: Mapping[str, str]
    verb: str
    """As RBAC names it; the method in lower case where there is no resource."""
    group: str = ""
    version: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""
    """What follows the subresource."""

    @property
    def attributes(self) -> Attributes:
        """Attributes that authorization judges; the name is that of the path, or the only one that is selected."""
        if not self.resource:
            return Attributes(self.verb, path=self.path)
        name = self.name
        if not name and self.verb in ("list", "watch", "deletecollection"):
            found = _ONE_NAME.search(self.query.get("fieldSelector", ""))
            name = found[1] if found else ""
        return Attributes(self.verb, self.group, self.resource, self.subresource, self.namespace, name)


def parse(method: str, raw_path: str) -> Route:
    """Read a request line's method and target, such as `GET` and `/api/v1/pods?watch=1`."""
    raw, _, raw_query = raw_path.partition("?")
    query: dict[str, str] = {}
    for key, value in parse_qsl(raw_query, keep_blank_values=True):
        query.setdefault(key, value)  # of several, Kubernetes takes the first
    path = unquote(raw) if "%" in raw else raw
    parts = path.strip("/").split("/")
    prefix = 2 if parts[0] == "api" else 3
    if parts[0] not in ("api", "apis") or len(parts) <= prefix or path.startswith("//"):
        return Route(method, path, query, method.lower())
    group, version = ("", parts[1]) if prefix == 2 else (parts[1], parts[2])
    parts = parts[prefix:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _OF_NAMESPACES:
            parts = parts[2:]
    resource, name, subresource, *rest = [*parts, "", "", ""][: max(3, len(parts))]
    verb = _VERBS.get(method, "")
    if not name and verb == "get":
        verb = "watch" if query.get("watch", "false").lower() not in ("false", "0") else "list"
    elif not name and verb == "delete":
        verb = "deletecollection"
    return Route(method, path, query, verb, group, version, resource, namespace, name, subresource, "/".join(rest))


def target(route: Route, registry: Registry) -> Target:
    """The resource that a route leads to, once it is known that the verb is one of its own.

    Raises:
        ApiError: 404, 405, or 501 where Kubernetes serves it and the simulator does not.
        TextNotFound: no such group, or no such resource in the group of a CRD.
    """
    full = full_resource(route.resource, route.subresource)
    resource = registry.get(route.group, route.version, route.resource)
    if resource is None:
        if is_known(route.group, route.version, route.resource):
            raise not_implemented(f"{route.resource} of {route.group or 'core'}/{route.version} are not served")
        if not route.group or any(each.group == route.group and not each.custom for each in registry):
            raise unknown_path()
        raise TextNotFound
    missing = TextNotFound() if resource.custom else unknown_path()
    allowed = SUBRESOURCE_VERBS.get(route.subresource, ()) if route.subresource in resource.subresources else ()
    if not route.subresource:
        allowed = tuple(verb for verb in resource.verbs if (verb in _OF_ONE) == bool(route.name))
    elif not allowed:
        raise not_implemented(f"{full} is not served") if is_known(route.group, route.version, full) else missing
    if route.rest or _is_misplaced(route, resource):
        raise missing
    if resource.namespaced and not route.namespace and route.verb not in ("list", "watch"):
        raise missing if route.name or resource.custom else wrong_method()
    if route.verb not in allowed:
        raise wrong_method()
    # In the path of a namespace, the namespace is its own.
    return Target(resource, route.namespace if resource.namespaced else "", route.name, route.subresource)


def _is_misplaced(route: Route, resource: Resource) -> bool:
    """Report whether a path has a namespace for a resource that has none."""
    in_own_path = resource.full_name == "namespaces" and route.name == route.namespace
    return bool(route.namespace) and not resource.namespaced and not in_own_path


def unknown_path() -> ApiError:
    """404: nothing is served there, in a group that is."""
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def wrong_method() -> ApiError:
    """405: the path is served, and not by this method."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message)
