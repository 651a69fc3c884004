"""Forms in which a test can hand objects to the API server: dicts, YAML, files, and kinds as pydantic models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from operator_runtime.crd.crd_generation import CustomResource, custom_resource_definition

Json = dict[str, Any]
Manifest = Mapping[str, object] | str | Path | CustomResource
"""One object as a dict; YAML of one or many, as text or as a file; a kind, of which its CRD is made."""


def bodies(manifests: Iterable[Manifest]) -> Iterator[Json]:
    """The objects in the order in which they stand.

    Raises:
        ValueError: something is no object of Kubernetes: apiVersion, kind or metadata.name are missing.
        OSError: there is no such file.
    """
    for manifest in manifests:
        for number, document in enumerate(_documents(manifest), 1):
            origin = f"{manifest}" if isinstance(manifest, Path) else "a manifest"
            yield _checked(document, f"{origin}, document {number}")


def _documents(manifest: Manifest) -> Iterable[object]:
    match manifest:
        case CustomResource():
            return [custom_resource_definition(manifest)]
        case Path():
            return _parsed(manifest.read_text())
        case str():
            return _parsed(manifest)
        case _:
            return [manifest]


def _parsed(text: str) -> Iterable[object]:
    # Files of many documents end or begin with `---`.
    return [each for each in yaml.safe_load_all(text) if each is not None]


def _checked(document: object, origin: str) -> Json:
    if not isinstance(document, Mapping):
        raise ValueError(f"{origin}: an object of Kubernetes is a mapping, and this is {document!r}")
    body = dict(document)
    missing = [name for name in ("apiVersion", "kind") if not (isinstance(body.get(name), str) and body[name])]
    if missing:
        raise ValueError(f"{origin}: it has no {' and no '.join(missing)}")
    metadata = body.get("metadata")
    if not isinstance(metadata, Mapping) or not metadata.get("name"):
        raise ValueError(f"{origin}: the {body['kind']} has no metadata.name")
    return body
