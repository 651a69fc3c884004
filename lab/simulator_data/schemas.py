"""Data of Kubernetes for the simulator, from a real control plane: `python -m lab.simulator_data.schemas FILE`.

Schemas and discovery of the resources that the simulator serves, and the names of all the others, go
into one JSON file. The same server gives the same bytes: keys are sorted, and the archive has no date.
"""

import gzip
import itertools
import json
import ssl
import sys
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lab.control_plane import ControlPlane

Json = dict[str, Any]
Get = Callable[[str, str], Json]
"""Reads a path of the API; the second argument is the Accept header."""

JSON = "application/json"

SERVED: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "v1"): (
        *("namespaces", "namespaces/status", "namespaces/finalize", "configmaps", "secrets"),
        *("serviceaccounts", "serviceaccounts/token", "services", "services/status"),
        *("pods", "pods/status", "pods/eviction", "events"),
    ),
    ("apps", "v1"): (
        *("deployments", "deployments/status", "deployments/scale"),
        *("replicasets", "replicasets/status", "replicasets/scale"),
        *("statefulsets", "statefulsets/status", "statefulsets/scale"),
    ),
    ("events.k8s.io", "v1"): ("events",),
    ("networking.k8s.io", "v1"): ("networkpolicies",),
    ("policy", "v1"): ("poddisruptionbudgets", "poddisruptionbudgets/status"),
    ("coordination.k8s.io", "v1"): ("leases",),
    ("apiextensions.k8s.io", "v1"): ("customresourcedefinitions", "customresourcedefinitions/status"),
    ("rbac.authorization.k8s.io", "v1"): ("roles", "rolebindings", "clusterroles", "clusterrolebindings"),
    ("authentication.k8s.io", "v1"): ("tokenreviews", "selfsubjectreviews"),
    ("authorization.k8s.io", "v1"): (
        *("subjectaccessreviews", "localsubjectaccessreviews"),
        "selfsubjectaccessreviews",
    ),
}
"""What the simulator serves, by group and version; subresources after a slash."""

# Definitions that no served kind refers to and requests or answers are made of all the same.
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_ALWAYS = ("DeleteOptions", "ListMeta", "ObjectMeta", "Patch", "Status", "WatchEvent")


def collect(get: Get) -> Json:
    """All of it, from the API that `get` reads."""
    groups = get("/apis", JSON)["groups"]
    discovered = {version: get(path, JSON)["resources"] for version, path in _versions(groups)}
    names_of = {version: set(names) for version, names in SERVED.items()}
    entries = {
        version: [entry for entry in discovered[version] if entry["name"] in names]
        for version, names in names_of.items()
    }
    kinds = {(*_group_version(entry, version), entry["kind"]) for version in entries for entry in entries[version]}
    documents = [get(f"/openapi/v3{_path(*version)}", JSON) for version in SERVED]
    definitions, of_kind = _pruned([each["components"]["schemas"] for each in documents], kinds)
    resources = []
    for version, served in entries.items():
        for entry in served:
            kind = (*_group_version(entry, version), entry["kind"])
            at = {"group": version[0], "version": version[1]}
            resources.append({**at, "entry": entry, "definition": of_kind[kind]})
    return {
        "version": get("/version", JSON),
        "groups": [group for group in groups if any(group["name"] == served for served, _ in SERVED)],
        "resources": resources,
        "definitions": definitions,
        "others": sorted(
            [*version, entry["name"]]
            for version in discovered
            for entry in discovered[version]
            if entry["name"] not in names_of.get(version, ())
        ),
    }


def pack(collected: Json) -> bytes:
    """The file's content; the same for the same data."""
    text = json.dumps(collected, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return gzip.compress(text.encode(), mtime=0)


def _versions(groups: Iterable[Json]) -> Iterator[tuple[tuple[str, str], str]]:
    yield ("", "v1"), _path("", "v1")
    for group in groups:
        for version in group["versions"]:
            yield (group["name"], version["version"]), _path(group["name"], version["version"])


def _path(group: str, version: str) -> str:
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def _group_version(entry: Json, version: tuple[str, str]) -> tuple[str, str]:
    """The entry's own, which a subresource of another group has (Scale), or else where it was found."""
    return (entry.get("group", ""), entry["version"]) if "version" in entry else version


def _pruned(
    documents: Iterable[Mapping[str, Json]], kinds: Iterable[tuple[str, str, str]]
) -> tuple[dict[str, Json], dict[tuple[str, str, str], str]]:
    """The definitions that the kinds and their lists reach, and the definition of each kind."""
    every: dict[str, Json] = {}
    for document in documents:
        every.update(document)
    of_kind = {
        (each["group"], each["version"], each["kind"]): name
        for name, definition in every.items()
        for each in definition.get("x-kubernetes-group-version-kind", ())
        if not name.startswith(_META)
    }
    lists = [(group, version, f"{kind}List") for group, version, kind in kinds]
    roots = [of_kind[kind] for kind in itertools.chain(kinds, lists) if kind in of_kind]
    reached: dict[str, Json] = {}
    ahead = [*roots, *(_META + name for name in _ALWAYS)]
    while ahead:
        name = ahead.pop()
        if name not in reached:
            reached[name] = _bare(every[name])
            ahead.extend(_references(every[name]))
    return reached, of_kind


def _bare(schema: Any) -> Any:
    """The schema without what it says to people."""
    if isinstance(schema, dict):
        return {
            key: _bare(value) for key, value in schema.items() if key != "description" or not isinstance(value, str)
        }
    return [_bare(each) for each in schema] if isinstance(schema, list) else schema


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(reference := schema.get("$ref"), str):
            yield reference.removeprefix("#/components/schemas/")
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from _references(part)


def main(path: Path) -> None:
    """Start a control plane and write the file."""
    with ControlPlane() as cluster:
        context = ssl.create_default_context(cafile=cluster.ca_path)
        pki = cluster.directory / "pki"
        context.load_cert_chain(pki / "lab-admin.crt", pki / "lab-admin.key")

        def get(path: str, accept: str) -> Json:
            request = urllib.request.Request(cluster.server + path, headers={"Accept": accept})
            with urllib.request.urlopen(request, context=context) as answer:
                found: Json = json.load(answer)
                return found

        content = pack(collect(get))
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(content)
    new.replace(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
