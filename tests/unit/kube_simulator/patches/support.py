"""What the tests here share: a CRD with every kind of field, its resource, and short ways to write an object.

`things.json` and `deployments.json` are writes to a kube-apiserver v1.36.3 and what came of them, of random objects by
random managers; what no write decides (uid, times, status of a Deployment) was taken out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from hypothesis import settings

from kube_simulator.patches import apply, managed
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
BUILTIN: Final = {resource.full_name: resource for resource in kubernetes.builtin_resources()}
CONFIG_MAPS: Final = BUILTIN["configmaps"]
DEPLOYMENTS: Final = BUILTIN["deployments.apps"]


def thing(spec: Json | None = None, /, **metadata: Any) -> Json:
    body = {"apiVersion": THINGS.api_version, "kind": "Thing", "metadata": {"name": "t", **metadata}}
    return body if spec is None else body | {"spec": spec}


def config_map(data: Json | None = None, /, **metadata: Any) -> Json:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}
    return body if data is None else body | {"data": data}


def resource_of(body: Json) -> Resource:
    return {"Thing": THINGS, "ConfigMap": CONFIG_MAPS, "Deployment": DEPLOYMENTS}[body["kind"]]


def applied(
    live: Json | None, body: Json, manager: str = "me", *, force: bool = False, now: str = NOW, **more: Any
) -> Json:
    return apply.server_side_apply(
        live, body, resource=resource_of(body), manager=manager, force=force, now=now, **more
    )


def written(before: Json | None, after: Json, manager: str = "me", *, subresource: str = "", now: str = NOW) -> Json:
    resource = resource_of(after)
    own = managed.Entry(manager, "Update", resource.api_version, subresource)
    return managed.after_update(before, after, own, resource.schema, now)


def owners(found: Json) -> dict[tuple[str, str], Json]:
    """The sets of fields by manager and operation."""
    return {
        (entry["manager"], entry["operation"]): entry["fieldsV1"]
        for entry in found["metadata"].get("managedFields", [])
    }
