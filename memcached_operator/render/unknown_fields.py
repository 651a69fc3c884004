"""Pure: fields of a Memcached that its kind does not have, each with its nearest name."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from memcached_operator.api.crd import memcached_crd

# Fields of meta/v1 ObjectMeta. The CRD leaves them to the API server.
_METADATA: Final = frozenset(
    {
        *("annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers"),
        *("generateName", "generation", "labels", "managedFields", "name", "namespace", "ownerReferences"),
        *("resourceVersion", "selfLink", "uid"),
    }
)


def unknown_fields(content: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each field that the kind does not have."""
    (version,) = memcached_crd()["spec"]["versions"]  # type: ignore[index]
    yield from _unknown(content, version["schema"]["openAPIV3Schema"], "")


def _unknown(value: object, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(item, schema.get("items") or {}, f"{path}[{index}]")
    known = _METADATA if path == "metadata" else (schema.get("properties") or {}).keys()
    if not isinstance(value, Mapping) or not known:
        return
    for name, inner in value.items():
        here = f"{path}.{name}" if path else name
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {path + '.' if path else ''}{near[0]}?" if near else ""
            yield f"unknown field {here}: it has no effect, and kubectl refuses it{hint}"
        elif path != "metadata":
            yield from _unknown(inner, (schema.get("properties") or {}).get(name) or {}, here)
