"""What the tests here share: a CRD with every kind of field, its resource, and short ways to write an object."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from hypothesis import settings

from kube_simulator.patches import apply
from kube_simulator.resources import Resource
from kube_simulator.schema import custom, kubernetes

Json = dict[str, Any]
HERE = Path(__file__).parent
NOW: Final = "2026-01-01T00:00:00Z"
EXAMPLES: Final = settings(max_examples=40, deadline=None)
LATER: Final = "2026-01-01T00:00:07Z"


def _things() -> Resource:
    crd = json.loads((HERE / "thing_crd.json").read_text())
    crd["spec"]["names"]["listKind"] = "ThingList"
    [resource] = custom.resources_of(crd)
    return resource


THINGS: Final = _things()
[DEPLOYMENTS] = [each for each in kubernetes.builtin_resources() if each.full_name == "deployments.apps"]


def thing(spec: Json | None = None, /, **metadata: Any) -> Json:
    body = {"apiVersion": THINGS.api_version, "kind": "Thing", "metadata": {"name": "t", **metadata}}
    return body if spec is None else body | {"spec": spec}


def applied(
    live: Json | None, body: Json, manager: str = "me", *, force: bool = False, now: str = NOW, **more: Any
) -> Json:
    return apply.server_side_apply(live, body, resource=THINGS, manager=manager, force=force, now=now, **more)


def owners(found: Json) -> dict[tuple[str, str], Json]:
    """The sets of fields by manager and operation."""
    return {
        (entry["manager"], entry["operation"]): entry["fieldsV1"]
        for entry in found["metadata"].get("managedFields", [])
    }
