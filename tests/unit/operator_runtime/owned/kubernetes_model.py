"""A model of what an API server makes of a strategic merge patch of its own kinds, of its defaults and refusals.

It is written after Kubernetes' Go types and code (`patchStrategy` and `patchMergeKey` in k8s.io/api, `strategicpatch`
in k8s.io/apimachinery, `defaults.go` and `validation.go` of each group), and shares nothing with runtime or simulator.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


class Refused(Exception):
    """The API server takes no such object, or no such patch."""


@dataclass(frozen=True)
class Value:
    """A value, a list or an object that is replaced."""


@dataclass(frozen=True)
class Texts:
    """A map, merged key by key, and left out where it is empty."""


@dataclass(frozen=True)
class Words:
    """A list of texts that is merged."""


@dataclass(frozen=True)
class Part:
    """An object with fields of its own."""

    fields: dict[str, Shape]


@dataclass(frozen=True)
class Entries:
    """A list that is merged by a field of its entries."""

    key: str
    of: Part = field(default_factory=lambda: Part({}))


Shape = Value | Texts | Words | Part | Entries
VALUE, TEXTS = Value(), Texts()


def part(*values: str, **fields: Shape) -> Part:
    return Part({**dict.fromkeys(values, VALUE), **fields})


EXEC, GET, DIAL, CALL, SLEEP = (
    part("command"),
    part("path", "port", "scheme"),
    part("port"),
    part("port"),
    part("seconds"),
)
PROBE = part(
    *("timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold", "initialDelaySeconds"),
    **{"exec": EXEC, "httpGet": GET, "tcpSocket": DIAL, "grpc": CALL},
)
HOOK = part(**{"exec": EXEC, "httpGet": GET, "tcpSocket": DIAL, "sleep": SLEEP})
VARIABLE = part(
    "name",
    "value",
    valueFrom=part(
        fieldRef=part("apiVersion", "fieldPath"), configMapKeyRef=part("name", "key"), secretKeyRef=part("name", "key")
    ),
)
CONTAINER = part(
    *("name", "image", "imagePullPolicy", "command", "args", "terminationMessagePath", "tty"),
    env=Entries("name", VARIABLE),
    ports=Entries("containerPort", part("name", "containerPort", "protocol")),
    volumeMounts=Entries("mountPath", part("name", "mountPath")),
    livenessProbe=PROBE,
    lifecycle=part(preStop=HOOK, postStart=HOOK),
    securityContext=part("runAsUser", "privileged", seccompProfile=part("type", "localhostProfile")),
    resources=part(limits=TEXTS, requests=TEXTS),
)
VOLUME = part(
    "name",
    emptyDir=part("medium"),
    secret=part("secretName", "defaultMode", "items"),
    configMap=part("name", "defaultMode"),
    nfs=part("server", "path"),
)
POD = part(
    *("serviceAccountName", "serviceAccount", "tolerations", "terminationGracePeriodSeconds", "dnsPolicy"),
    containers=Entries("name", CONTAINER),
    volumes=Entries("name", VOLUME),
    nodeSelector=TEXTS,
)
METADATA = part(
    *("name", "namespace", "uid", "resourceVersion"),
    labels=TEXTS,
    annotations=TEXTS,
    finalizers=Words(),
    ownerReferences=Entries("uid", part("apiVersion", "kind", "name", "uid", "controller")),
)
LABEL_SELECTOR = part("matchExpressions", matchLabels=TEXTS)
KINDS: dict[str, Part] = {
    "Deployment": part(
        metadata=METADATA,
        spec=part(
            *("replicas", "paused"),
            selector=LABEL_SELECTOR,
            strategy=part("type", rollingUpdate=part("maxSurge", "maxUnavailable")),
            template=part(metadata=METADATA, spec=POD),
        ),
    ),
    # The one object in all kinds that a strategic merge replaces.
    "PodDisruptionBudget": part(metadata=METADATA, spec=part("maxUnavailable", "minAvailable", "selector")),
    "NetworkPolicy": part(metadata=METADATA, spec=part("policyTypes", "ingress", "egress", podSelector=LABEL_SELECTOR)),
    "ConfigMap": part(metadata=METADATA, data=TEXTS),
}
_ORDER, _DELETE = "$setElementOrder/", "$deleteFromPrimitiveList/"


def created(kind: str, body: Json) -> Json:
    """The object that is made of a body."""
    return _stored(kind, body)


def patched(kind: str, live: Json, patch: Json) -> Json:
    """The object that a strategic merge patch makes of a live one."""
    return _stored(kind, _merged(KINDS[kind], copy.deepcopy(live), copy.deepcopy(patch)))


def _merged(shape: Part, live: Json, patch: Json) -> Json:
    if (directive := patch.pop("$patch", None)) is not None:
        return {"replace": patch, "delete": {}}[directive]
    if (kept := patch.pop("$retainKeys", None)) is not None:
        if any(value is not None and not name.startswith("$") and name not in kept for name, value in patch.items()):
            raise Refused("invalid patch format of retainKeys")
        live = {name: value for name, value in live.items() if name in kept}
    for name, change in patch.items():
        if name.startswith(_DELETE):
            at = name.removeprefix(_DELETE)
            live[at] = [each for each in live.get(at, ()) if each not in change]
    for name, change in patch.items():
        if name.startswith("$"):
            continue
        below = shape.fields.get(name, VALUE)
        if change is None:
            live.pop(name, None)
        elif name not in live:
            if not (isinstance(change, dict) and "$patch" in change):
                live[name] = _without_directives(change)
        elif isinstance(below, Part) and isinstance(change, dict):
            live[name] = _merged(below, live[name], change)
        elif isinstance(below, Texts) and isinstance(change, dict):
            live[name] = {key: text for key, text in {**live[name], **change}.items() if text is not None}
        elif isinstance(below, Words):
            live[name] = list(dict.fromkeys([*live[name], *_words(change)]))
        elif isinstance(below, Entries):
            order = patch.get(f"{_ORDER}{name}")
            live[name] = _merged_entries(below, live[name], change, order)
        else:
            live[name] = change
    return live


def _words(change: list[Any]) -> list[str]:
    if not all(isinstance(each, str) for each in change):
        raise Refused("list element types are not identical")
    return change


def _merged_entries(shape: Entries, live: list[Json], change: list[Json], order: list[Json] | None) -> list[Json]:
    if any(each.get("$patch") == "replace" for each in change):
        return [each for each in change if "$patch" not in each]
    entries = list(live)
    for each in change:
        if shape.key not in each:
            raise Refused(f"map: {each} does not contain declared merge key: {shape.key}")
        found = [at for at, one in enumerate(entries) if one[shape.key] == each[shape.key]]
        if each.get("$patch") == "delete":
            entries = [one for at, one in enumerate(entries) if at not in found]
        elif found:
            entries[found[0]] = _merged(shape.of, entries[found[0]], each)
        else:
            entries.append(each)  # as it is, with what it may have of directives
    if order is not None:
        listed = iter([each[shape.key] for each in order])
        if not all(each[shape.key] in listed for each in change if "$patch" not in each):
            raise Refused("The order in patch list doesn't match $setElementOrder list")
    return entries


def _without_directives(change: Any) -> Any:
    if isinstance(change, dict):
        kept = {name: each for name, each in change.items() if each is not None}
        return {name: _without_directives(each) for name, each in kept.items() if not _directs(each)}
    if isinstance(change, list):
        return [_without_directives(each) for each in change if not _directs(each)]
    return change


def _directs(value: Any) -> bool:
    return isinstance(value, dict) and "$patch" in value


# What is stored


def _stored(kind: str, body: Json) -> Json:
    found: Json = _decoded(KINDS[kind], copy.deepcopy(body))
    _DEFAULTS[kind](found.setdefault("spec", {})) if kind in _DEFAULTS else None
    return found


def _decoded(shape: Shape, value: Any) -> Any:
    """As Go reads it, and writes what is not empty."""
    if isinstance(shape, Part) and isinstance(value, dict):
        if unknown := value.keys() - shape.fields.keys():
            raise Refused(f"unknown field {sorted(unknown)}")
        fields = {name: _decoded(shape.fields[name], each) for name, each in value.items() if each is not None}
        return {
            name: each
            for name, each in fields.items()
            if each not in ("", []) and not (each == {} and isinstance(shape.fields[name], Texts))
        }
    if isinstance(shape, Entries):
        return [_decoded(shape.of, each) for each in value]
    if isinstance(value, dict):
        return {name: each for name, each in value.items() if each is not None}
    return value


def _default(part_: Json, **values: Any) -> None:
    for name, value in values.items():
        part_.setdefault(name, value)


def _one(part_: Json, *names: str, what: str) -> None:
    if len([name for name in names if name in part_]) > 1:
        raise Refused(f"may not specify more than 1 {what}: {part_}")


def _of_deployment(spec: Json) -> None:
    _default(spec, replicas=1, strategy={})
    strategy = spec["strategy"]
    _default(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _default(strategy, rollingUpdate={})
        _default(strategy["rollingUpdate"], maxSurge="25%", maxUnavailable="25%")
    elif "rollingUpdate" in strategy:
        raise Refused("spec.strategy.rollingUpdate: may not be specified when strategy `type` is 'Recreate'")
    pod = spec["template"]["spec"]
    _default(pod, terminationGracePeriodSeconds=30, dnsPolicy="ClusterFirst")
    if account := pod.get("serviceAccountName") or pod.get("serviceAccount"):
        pod["serviceAccountName"] = pod["serviceAccount"] = account
    for container in pod["containers"]:
        _of_container(container)
    for volume in pod.get("volumes", ()):
        sources = [name for name in volume if name != "name"]
        if not sources:
            volume["emptyDir"] = {}
        _one(volume, *sources, what="volume type")
        for name in ("secret", "configMap"):
            if name in volume:
                _default(volume[name], defaultMode=420)


def _of_container(container: Json) -> None:
    if "image" not in container:
        raise Refused(f"image: Required value: {container}")
    latest = container["image"].endswith(":latest") or ":" not in container["image"]
    _default(container, imagePullPolicy="Always" if latest else "IfNotPresent", terminationMessagePath="/dev/x")
    container.setdefault("resources", {})
    for port in container.get("ports", ()):
        _default(port, protocol="TCP")
    for variable in container.get("env", ()):
        source = variable.get("valueFrom", {})
        if source and variable.get("value"):
            raise Refused("may not be specified when `value` is not empty")
        _one(source, *source, what="field")
        if "fieldRef" in source:
            _default(source["fieldRef"], apiVersion="v1")
    handlers = {"probe": container.get("livenessProbe"), **container.get("lifecycle", {})}
    for handler in (each for each in handlers.values() if each is not None):
        names = [each for each in ("exec", "httpGet", "tcpSocket", "grpc", "sleep") if each in handler]
        if not names:
            raise Refused(f"must specify a handler type: {handler}")
        _one(handler, *names, what="handler type")
        if "httpGet" in handler:
            _default(handler["httpGet"], path="/", scheme="HTTP")
    if (probe := container.get("livenessProbe")) is not None:
        _default(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    profile = container.get("securityContext", {}).get("seccompProfile", {})
    if ("localhostProfile" in profile) != (profile.get("type") == "Localhost"):
        raise Refused("localhostProfile: must be set if seccomp type is Localhost, and not be set otherwise")


def _of_budget(spec: Json) -> None:
    _one(spec, "maxUnavailable", "minAvailable", what="of minAvailable and maxUnavailable")


def _of_policy(spec: Json) -> None:
    spec.setdefault("podSelector", {})
    if "policyTypes" not in spec:
        spec["policyTypes"] = ["Ingress", *(["Egress"] if "egress" in spec else [])]


_DEFAULTS = {"Deployment": _of_deployment, "PodDisruptionBudget": _of_budget, "NetworkPolicy": _of_policy}
