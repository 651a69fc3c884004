"""What an API server makes of a body, and of a strategic merge patch of its own kinds, or refuses.

Merges and defaults are the simulator's, which conformance tests compare with a real API server's. What Kubernetes
refuses and the simulator takes is refused here, after `strategicpatch` in k8s.io/apimachinery and `validation.go` of
each group.
"""

from __future__ import annotations

import json
from typing import Any

from kube_simulator.kinds.kind_strategy import tidy
from kube_simulator.kinds.strategies import strategy_of
from kube_simulator.patches.strategic import strategic_merge
from kube_simulator.schema import kubernetes
from kube_simulator.schema.structural import prune

Json = dict[str, Any]
RESOURCES = {each.kind: each for each in kubernetes.builtin_resources()}
HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_ORDER = "$setElementOrder/"


class Refused(Exception):
    """The API server takes no such object, or no such patch."""


def created(kind: str, body: Json) -> Json:
    """The object that is made of a body."""
    resource = RESOURCES[kind]
    kept, unknown = prune(resource.schema, body)
    if unknown:
        raise Refused(f"unknown field {unknown}")
    found = strategy_of(resource).default(tidy({**kept, "kind": kind}))
    _refuse_contradictions(kind, found.get("spec", {}))
    # Parts may share a default, and are written to.
    stored: Json = json.loads(
        json.dumps({name: each for name, each in found.items() if name not in ("kind", "status")})
    )
    return stored


def patched(kind: str, live: Json, patch: Json) -> Json:
    """The object that a strategic merge patch makes of a live one."""
    _refuse_directives(patch)
    return created(kind, strategic_merge(live, patch, RESOURCES[kind].schema))


def _refuse_directives(patch: Any) -> None:
    """Refuse those that contradict what they stand beside."""
    for each in patch if isinstance(patch, list) else ():
        _refuse_directives(each)
    if not isinstance(patch, dict):
        return
    fields = {name: value for name, value in patch.items() if not name.startswith("$")}
    retained = patch.get("$retainKeys", fields)
    if any(value is not None and name not in retained for name, value in fields.items()):
        raise Refused("invalid patch format of retainKeys")
    for name, entries in fields.items():
        if order := patch.get(f"{_ORDER}{name}"):
            [key] = {key for each in order for key in each}
            listed = iter([each[key] for each in order])
            if not all(each[key] in listed for each in entries if "$patch" not in each):
                raise Refused("The order in patch list doesn't match $setElementOrder list")
        _refuse_directives(entries)


def _one(part: Json, *names: str, what: str, least: int = 0) -> None:
    if not least <= len([name for name in names if name in part]) <= 1:
        raise Refused(f"must specify one {what}: {part}")


def _refuse_contradictions(kind: str, spec: Json) -> None:
    _one(spec, "maxUnavailable", "minAvailable", what="of minAvailable and maxUnavailable")
    if kind != "Deployment":
        return
    if spec["strategy"]["type"] == "Recreate" and "rollingUpdate" in spec["strategy"]:
        raise Refused("spec.strategy.rollingUpdate: may not be specified when strategy `type` is 'Recreate'")
    pod = spec["template"]["spec"]
    for volume in pod.get("volumes", ()):
        _one(volume, *volume.keys() - {"name"}, what="volume type")
    for container in pod["containers"]:
        _one(container, "image", what="image", least=1)
        for variable in container.get("env", ()):
            source = variable.get("valueFrom", {})
            _one(source, *source, what="field")
            if source and variable.get("value"):
                raise Refused("may not be specified when `value` is not empty")
        for handler in (container.get("livenessProbe"), *container.get("lifecycle", {}).values()):
            if handler is not None:
                _one(handler, *HANDLERS, what="handler type", least=1)
        profile = container.get("securityContext", {}).get("seccompProfile", {})
        if ("localhostProfile" in profile) != (profile.get("type") == "Localhost"):
            raise Refused("localhostProfile: must be set if seccomp type is Localhost, and not be set otherwise")
