"""Discovery before a client's first request: groups, versions, resources, the server's version and health."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable

from kube_simulator.errors import not_implemented
from kube_simulator.http.negotiation import encoded
from kube_simulator.http.routes import SUBRESOURCE_VERBS, Route, TextNotFound, unknown_path, wrong_method
from kube_simulator.http.verbs import Answer
from kube_simulator.resources import Registry, Resource
from kube_simulator.schema import kubernetes
from kube_simulator.values import Json

TEXT_TYPE = "text/plain; charset=utf-8"
_HEALTH = re.compile("/(healthz|livez|readyz)(/ping)?")
# What Kubernetes serves besides, and a client may look for.
_KNOWN = ("/metrics", "/openapi/v2", "/.well-known/openid-configuration", "/openid/v1/jwks", "/debug", "/logs")
_CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


class Discovery:
    """Answers the paths that name no resource. Everything is made once, and anew when the registry changes."""

    def __init__(self, registry: Registry, address: Callable[[], str]) -> None:
        self._registry = registry
        self._address = address
        self._made: dict[str, bytes] = {}
        registry.on_change(self._made.clear)

    def answer(self, route: Route) -> Answer:
        """Return what is served at the path. Raises ApiError, TextNotFound: nothing is, or not by this method."""
        path = route.path.rstrip("/")
        if _HEALTH.fullmatch(path):
            return Answer(200, b"ok", TEXT_TYPE)
        if path.startswith(_KNOWN):
            raise not_implemented(f"the path {path}")
        if path not in self._made:
            self._made[path] = encoded(self._document(path))
        if route.method != "GET":
            raise wrong_method()
        return Answer(200, self._made[path])

    def _document(self, path: str) -> Json:
        match path.strip("/").split("/"):
            case ["version"]:
                return kubernetes.version_info()
            case ["openapi", "v3"]:
                return {"paths": {each: {"serverRelativeURL": self._schema_url(each)} for each in self._versions()}}
            case ["openapi", "v3", *version] if "/".join(version) in self._versions():
                return self._schema("/".join(version))
            case ["api"]:
                addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": self._address()}]
                return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}
            case ["apis"]:
                return {"kind": "APIGroupList", "apiVersion": "v1", "groups": list(self._groups().values())}
            case ["apis", group] if group in self._groups():
                return {"kind": "APIGroup", "apiVersion": "v1", **self._groups()[group]}
            case ["api" | "apis", *_] if path.strip("/") in self._versions():
                return _list(self._versions()[path.strip("/")])
            case ["apis", group, _] if any(each.group == group and not each.custom for each in self._registry):
                raise unknown_path()
        raise TextNotFound

    def _versions(self) -> dict[str, list[Resource]]:
        """The resources of each group and version, by its path without the first slash."""
        found: dict[str, list[Resource]] = {}
        for resource in self._registry:
            found.setdefault(resource.base_path.lstrip("/"), []).append(resource)
        return found

    def _schema_url(self, version: str) -> str:
        """The path of a document, with a hash by which clients cache it."""
        return f"/openapi/v3/{version}?hash={hashlib.sha256(encoded(self._schema(version))).hexdigest()}"

    def _schema(self, version: str) -> Json:
        paths, schemas = {}, {}
        for resource in self._versions()[version]:
            kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
            if resource.custom:
                schemas[resource.kind] = {**resource.schema.raw, "x-kubernetes-group-version-kind": [kind]}
            parameters = [{"name": name, "in": "query"} for name in ("dryRun", "fieldManager", "fieldValidation")]
            patch = {"parameters": parameters, "responses": {}, "x-kubernetes-group-version-kind": kind}
            paths[f"{resource.base_path}/{resource.plural}/{{name}}"] = {"patch": patch}
        found = {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1"}, "paths": paths}
        return {**found, "components": {"schemas": schemas}}

    def _groups(self) -> dict[str, Json]:
        """List each group but the core with its versions, the preferred one first; built-in groups stand first."""
        served: dict[str, set[str]] = {}
        for resource in self._registry:
            served.setdefault(resource.group, set()).add(resource.version)
        built_in = [group["name"] for group in kubernetes.groups() if group["name"] in served]
        order = [*built_in, *sorted(served.keys() - {*built_in, ""})]
        return {name: _group(name, served[name]) for name in order}


def _list(resources: Iterable[Resource]) -> Json:
    """`metav1.APIResourceList`, of the resources of one group and version."""
    entries = []
    for resource in sorted(resources, key=lambda each: each.plural):
        # Kubernetes names a custom resource's status first.
        names = ["", *sorted(resource.subresources, reverse=resource.custom)]
        entries += [_entry(resource, name) for name in names]
    found = {"kind": "APIResourceList", "groupVersion": resource.api_version, "resources": entries}
    # Of old, the list of the core has no apiVersion of its own.
    return {**found, "apiVersion": "v1"} if resource.group else found


def _entry(resource: Resource, subresource: str) -> Json:
    """`metav1.APIResource`."""
    name = f"{resource.plural}/{subresource}" if subresource else resource.plural
    known = kubernetes.discovery_entry(resource.group, resource.version, name)
    if known is not None and not resource.custom:
        return known
    entry: Json = {"name": name, "singularName": "", "namespaced": resource.namespaced, "kind": resource.kind}
    if subresource:
        scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"} if subresource == "scale" else {}
        return {**entry, **scale, "verbs": list(SUBRESOURCE_VERBS[subresource])}
    verbs = [verb for verb in _CUSTOM_VERBS if verb in resource.verbs]
    names = {"shortNames": list(resource.short_names), "categories": list(resource.categories)}
    return (
        entry | {"singularName": resource.singular, "verbs": verbs} | {key: each for key, each in names.items() if each}
    )


def _group(name: str, versions: Iterable[str]) -> Json:
    """`metav1.APIGroup` without kind and apiVersion."""
    # Stable versions before others, newer before older ones.
    ranked = sorted(versions, key=lambda each: ("alpha" not in each, "beta" not in each, each), reverse=True)
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in ranked]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}
