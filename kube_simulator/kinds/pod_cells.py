"""What `kubectl get pods` prints: the one state that sums up a pod's phase and those of its containers.

The rules are those of `printPod` in `k8s.io/kubernetes/pkg/printers/internalversion`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from kube_simulator.kinds.durations import age
from kube_simulator.values import Json

NONE = "<none>"
_FINISHED = ("Succeeded", "Failed")


class _Sum(NamedTuple):
    """What the containers of a pod come to."""

    reason: str
    ready: int = 0
    restarts: int = 0
    restarted: str = ""
    """When the last of them did, if it is known."""


def pod(found: Json, now: datetime) -> list[Any]:
    """Name, ready, status, restarts, age; address, node, nominated node, readiness gates."""
    spec, status, metadata = found["spec"], found.get("status") or {}, found["metadata"]
    total = len(spec.get("containers") or []) + len(_sidecars(spec))
    summed = _summed(spec, status)
    restarts = str(summed.restarts)
    if summed.restarts and summed.restarted:
        restarts += f" ({age(summed.restarted, now)} ago)"
    addresses = [each.get("ip", "") for each in status.get("podIPs") or []] or [status.get("podIP", "")]
    return [
        metadata["name"],
        f"{summed.ready}/{total}",
        _ending(found, summed.reason),
        restarts,
        age(metadata.get("creationTimestamp"), now),
        addresses[0] or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, status),
    ]


def _ending(found: Json, reason: str) -> str:
    status = found.get("status") or {}
    if "deletionTimestamp" not in found["metadata"]:
        return reason
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return reason if status.get("phase") in _FINISHED else "Terminating"


def _summed(spec: Json, status: Json) -> _Sum:
    reason = status.get("reason") or status.get("phase", "")
    if any(_is(each, "PodScheduled") and each.get("reason") == "SchedulingGated" for each in _conditions(status)):
        reason = "SchedulingGated"
    first = _initial(spec, status)
    if first.reason and not _true(status, "Initialized"):
        return first
    sidecars = [each for each in _statuses(status, "init") if each.get("name") in _sidecars(spec)]
    statuses = _statuses(status, "")
    restarts = sum(each.get("restartCount", 0) for each in [*sidecars, *statuses])
    restarted = max(map(_last_end, [*sidecars, *statuses]), default="")
    reason = first.reason or reason
    running = False
    for each in reversed(statuses):
        state = each.get("state") or {}
        waiting, terminated = state.get("waiting"), state.get("terminated")
        if waiting is not None and waiting.get("reason"):
            reason = waiting["reason"]
        elif terminated is not None:
            reason = terminated.get("reason") or _exit(terminated)
        running = running or _runs(each)
    if reason == "Completed" and running:
        reason = "Running" if _true(status, "Ready") else "NotReady"
    return _Sum(reason, first.ready + sum(map(_runs, statuses)), restarts, restarted)


def _initial(spec: Json, status: Json) -> _Sum:
    """Of the containers that run before the others; a reason while one of them has not done its part."""
    sidecars, ready, restarts, restarted = _sidecars(spec), 0, 0, ""
    for index, each in enumerate(_statuses(status, "init")):
        restarts += each.get("restartCount", 0)
        restarted = max(restarted, _last_end(each))
        state = each.get("state") or {}
        waiting, terminated = state.get("waiting") or {}, state.get("terminated")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if each.get("name") in sidecars and each.get("started"):
            ready += bool(each.get("ready"))
            continue
        if terminated is not None:
            reason = f"Init:{terminated.get('reason') or _exit(terminated)}"
        elif waiting.get("reason", "PodInitializing") != "PodInitializing":
            reason = f"Init:{waiting['reason']}"
        else:
            reason = f"Init:{index}/{len(spec.get('initContainers') or [])}"
        return _Sum(reason, ready, restarts, restarted)
    return _Sum("", ready, restarts, restarted)


def _exit(terminated: Json) -> str:
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _runs(status: Json) -> bool:
    return bool(status.get("ready")) and "running" in (status.get("state") or {})


def _last_end(status: Json) -> str:
    return str(((status.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or "")


def _sidecars(spec: Json) -> list[str]:
    return [each["name"] for each in spec.get("initContainers") or [] if each.get("restartPolicy") == "Always"]


def _statuses(status: Json, which: str) -> list[Json]:
    return status.get("initContainerStatuses" if which else "containerStatuses") or []


def _conditions(status: Json) -> list[Json]:
    return status.get("conditions") or []


def _is(condition: Json, kind: str) -> bool:
    return condition.get("type") == kind


def _true(status: Json, kind: str) -> bool:
    return any(_is(each, kind) and each.get("status") == "True" for each in _conditions(status))


def _gates(spec: Json, status: Json) -> str:
    gates = spec.get("readinessGates") or []
    if not gates:
        return NONE
    return f"{sum(_true(status, gate.get('conditionType', '')) for gate in gates)}/{len(gates)}"
