"""Cells of `kubectl get pods`: the one state that sums up a pod's phase and those of its containers.

The rules are those of `printPod` in `k8s.io/kubernetes/pkg/printers/internalversion`.

Differs from Kubernetes: init containers that have not done their part are not told of, as no pod waits for them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kube_simulator.kinds.durations import age
from kube_simulator.values import Json

NONE = "<none>"


def pod(found: Json, now: datetime) -> list[Any]:
    """Name, ready, status, restarts, age; address, node, nominated node, readiness gates."""
    spec, status, metadata = found["spec"], found.get("status") or {}, found["metadata"]
    sidecars = [each["name"] for each in spec.get("initContainers") or [] if each.get("restartPolicy") == "Always"]
    first = [each for each in status.get("initContainerStatuses") or [] if each["name"] in sidecars]
    statuses = [*first, *(status.get("containerStatuses") or [])]
    count = sum(each.get("restartCount", 0) for each in statuses)
    last_end = max(map(_last_end, statuses), default="")
    addresses = [each.get("ip", "") for each in status.get("podIPs") or []] or [status.get("podIP", "")]
    return [
        metadata["name"],
        f"{sum(map(_is_ready, statuses))}/{len(spec.get('containers') or []) + len(sidecars)}",
        _ending(found, _reason(status)),
        f"{count} ({age(last_end, now)} ago)" if count and last_end else str(count),
        age(metadata.get("creationTimestamp"), now),
        addresses[0] or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, status),
    ]


def _ending(found: Json, reason: str) -> str:
    finished = (found.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return reason if finished or "deletionTimestamp" not in found["metadata"] else "Terminating"


def _reason(status: Json) -> str:
    reason, running = status.get("reason") or status.get("phase", ""), False
    for each in reversed(status.get("containerStatuses") or []):
        state = each.get("state") or {}
        waiting, terminated = state.get("waiting"), state.get("terminated")
        if waiting is not None and waiting.get("reason"):
            reason = waiting["reason"]
        elif terminated is not None:
            reason = terminated.get("reason") or f"ExitCode:{terminated.get('exitCode', 0)}"
        running = running or _is_ready(each)
    if reason == "Completed" and running:
        return "Running" if _true(status, "Ready") else "NotReady"
    return str(reason)


def _is_ready(status: Json) -> bool:
    return bool(status.get("ready")) and "running" in (status.get("state") or {})


def _last_end(status: Json) -> str:
    return str(((status.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or "")


def _true(status: Json, kind: str) -> bool:
    return any(each.get("type") == kind and each.get("status") == "True" for each in status.get("conditions") or [])


def _gates(spec: Json, status: Json) -> str:
    gates = spec.get("readinessGates") or []
    if not gates:
        return NONE
    return f"{sum(_true(status, gate.get('conditionType', '')) for gate in gates)}/{len(gates)}"
