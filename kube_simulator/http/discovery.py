"""Discovery before a client's first request: groups, versions, resources, the server's version and health.

Everything is made once and made anew when the registry changes.

Differs from Kubernetes: discovery does not come in one answer; OpenAPI v2 knows no kinds, in protobuf, and answers 501
in JSON, as do metrics and the OpenID documents; the checks behind /readyz are one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import orjson

from kube_simulator.errors import not_implemented
from kube_simulator.http.negotiation import JSON_TYPE, discovery_representation, encoded
from kube_simulator.http.routes import SUBRESOURCE_VERBS, Route, TextNotFound, unknown_path, wrong_method
from kube_simulator.resources import Registry, Resource, by_group_version
from kube_simulator.schema import kubernetes
from kube_simulator.values import Json

TEXT_TYPE = "text/plain; charset=utf-8"
_HEALTH = ("healthz", "livez", "readyz")
# What Kubernetes serves besides, and a client may look for.
_KNOWN = ("/metrics", "/.well-known/openid-configuration", "/openid/v1/jwks", "/debug", "/logs")
# kubectl looks here for kinds of which v3 knows nothing, and says that there are none when it finds none. It reads
# gnostic's `openapi.v2.Document`, whose first field is the version.
_V2_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_V2_OF_NOTHING = b"\n\x032.0"
_VERSION = re.compile(r"^v(\d+)(?:(alpha|beta)(\d+))?$")
_STABILITY = {"alpha": 1, "beta": 2, None: 3}
_CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


class Schemas(Protocol):
    """The OpenAPI documents; see `schema.openapi`."""

    def index(self) -> Json: ...
    def document(self, group_version_path: str) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Found:
    """An answer without an error."""

    body: bytes
    content_type: str = JSON_TYPE
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Discovery:
    """Answers the paths that name no resource."""

    registry: Registry
    schemas: Schemas
    address: Callable[[], str]
    """Host and port under which the server is reached."""
    _made: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.registry.on_change(self._made.clear)

    def answer(self, route: Route, accept: str) -> Found:
        """Return what is served at the path.

        Raises:
            ApiError, TextNotFound: nothing is, or not by this method, or not in a form that the client accepts.
        """
        path = route.path.rstrip("/") or "/"
        first, *rest = path.strip("/").split("/")
        if first in _HEALTH:
            return _health(first, "/".join(rest), route.query)
        if path.startswith(_KNOWN):
            raise not_implemented(f"the path {path}")
        found = self._document(path, first, rest, accept)
        if route.method != "GET":
            raise wrong_method()
        return found

    def _document(self, path: str, first: str, rest: list[str], accept: str) -> Found:
        if path in ("/", "/index.html"):
            return Found(self._kept("paths", lambda: _indented({"paths": self._paths()})))
        if path == "/version":
            return Found(self._kept("version", lambda: _indented(kubernetes.version_info())))
        if path == "/openapi/v2":
            if _V2_TYPE not in accept.replace(".v2@", ".v2."):
                raise not_implemented(f"the path {path}")
            return Found(_V2_OF_NOTHING, _V2_TYPE)
        if path == "/openapi/v3":
            return Found(self._kept("schemas", lambda: _plain(self.schemas.index())))
        if path.startswith("/openapi/v3/"):
            return self._schemas(path.removeprefix("/openapi/v3/"))
        if first in ("api", "apis") and not rest:
            return self._roots(first, accept)
        if first == "api" and len(rest) == 1:
            if rest != ["v1"]:
                raise unknown_path()
            return Found(self._kept(path, lambda: _plain(self._resources("", "v1"))))
        if first == "apis" and rest[0] in self._groups():
            group, *version = rest
            if not version:
                document = {"kind": "APIGroup", "apiVersion": "v1", **self._groups()[group]}
                return Found(self._kept(path, lambda: _plain(document)))
            if (group, version[0]) in by_group_version(self.registry):
                return Found(self._kept(path, lambda: _plain(self._resources(group, version[0]))))
            if not any(each.custom for each in self.registry if each.group == group):
                raise unknown_path()
        raise TextNotFound

    def _roots(self, root: str, accept: str) -> Found:
        shape = discovery_representation(accept)
        if root == "api":
            addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": self.address()}]
            versions = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}
            return Found(encoded(versions, shape, {}), shape.content_type)
        groups = {"kind": "APIGroupList", "apiVersion": "v1", "groups": list(self._groups().values())}
        return Found(encoded(groups, shape, {}), shape.content_type)

    def _schemas(self, path: str) -> Found:
        try:
            return Found(self._kept(f"schema {path}", lambda: self.schemas.document(path)))
        except KeyError:
            raise TextNotFound from None

    def _kept(self, name: str, make: Callable[[], bytes]) -> bytes:
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def _paths(self) -> list[str]:
        served = by_group_version(self.registry)
        own = {f"/apis/{group}" if group else "/api" for group, _ in served}
        versioned = {f"/apis/{group}/{version}" if group else f"/api/{version}" for group, version in served}
        return sorted(own | versioned | {"/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"})

    def _groups(self) -> dict[str, Json]:
        """List each group but the core with its versions, the preferred one first; built-in groups stand first."""
        served: dict[str, list[str]] = {}
        for group, version in by_group_version(self.registry):
            if group:
                served.setdefault(group, []).append(version)
        built_in = [group["name"] for group in kubernetes.groups() if group["name"] in served]
        order = [*built_in, *sorted(group for group in served if group not in built_in)]
        return {name: _group(name, served[name]) for name in order}

    def _of(self, group: str, version: str) -> list[Resource]:
        found = by_group_version(self.registry).get((group, version), [])
        return sorted(found, key=lambda resource: resource.plural)

    def _resources(self, group: str, version: str) -> Json:
        entries = []
        for resource in self._of(group, version):
            entries.append(_entry(resource))
            entries += [_subentry(resource, name) for name in _subresources(resource)]
        group_version = f"{group}/{version}" if group else version
        # Of old, the list of the core has no apiVersion of its own.
        api_version = {"apiVersion": "v1"} if group else {}
        return {"kind": "APIResourceList", **api_version, "groupVersion": group_version, "resources": entries}


def _entry(resource: Resource) -> Json:
    """`metav1.APIResource`."""
    if not resource.custom:
        known = kubernetes.discovery_entry(resource.group, resource.version, resource.plural)
        if known is not None:
            return known
    entry: Json = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": [verb for verb in _CUSTOM_VERBS if verb in resource.verbs],
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    return entry


def _subentry(resource: Resource, name: str) -> Json:
    full = f"{resource.plural}/{name}"
    if not resource.custom:
        known = kubernetes.discovery_entry(resource.group, resource.version, full)
        if known is not None:
            return known
    entry: Json = {"name": full, "singularName": "", "namespaced": resource.namespaced}
    if name == "scale":
        entry |= {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    else:
        entry["kind"] = resource.kind
    return entry | {"verbs": list(SUBRESOURCE_VERBS[name])}


def _subresources(resource: Resource) -> Iterable[str]:
    """Order subresources as Kubernetes does, which names a custom resource's status first."""
    return sorted(resource.subresources, reverse=resource.custom)


def _group(name: str, versions: Iterable[str]) -> Json:
    """`metav1.APIGroup` without kind and apiVersion."""
    listed = [
        {"groupVersion": f"{name}/{version}", "version": version}
        for version in sorted(versions, key=_rank, reverse=True)
    ]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _rank(version: str) -> tuple[int, int, int]:
    """Stable versions before beta and alpha ones, newer before older ones."""
    found = _VERSION.match(version)
    if found is None:
        return (0, 0, 0)
    return (_STABILITY[found[2]], int(found[1]), int(found[3] or 0))


def _health(check: str, part: str, query: Mapping[str, str]) -> Found:
    headers = (("X-Content-Type-Options", "nosniff"),)
    if part not in ("", "ping"):
        raise TextNotFound
    if part or "verbose" not in query:
        return Found(b"ok", TEXT_TYPE, headers)
    return Found(f"[+]ping ok\n{check} check passed\n".encode(), TEXT_TYPE, headers)


def _plain(document: object) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)


def _indented(document: object) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_INDENT_2)
