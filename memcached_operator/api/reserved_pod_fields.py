"""Pure: fields of a pod's template that stay the operator's, and those that cannot be merged.

The API server judges the rest, where it stands in the workload.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from memcached_operator.api.complaints import shown
from memcached_operator.api.names import CONTAINER, GROUP, MOUNTED, PORT, PORT_NAME, RELOADER

MERGE_KEYS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("containers", "initContainers", "volumes", "imagePullSecrets", "env"), "name"),
    "volumeMounts": "mountPath",
}
"""Lists whose entries are merged, and by which field each is known, as Kubernetes' API has it.

Of topologySpreadConstraints and hostAliases the operator makes none, so that there is nothing to merge.
"""
SAID_BY_EMPTY: Final = ("storageClassName",)
"""Fields that say something where they are empty: a claim has no class then, and left out the cluster's default."""
Keys = tuple[str, ...]
"""The fields, and the keys of entries, on the way to a part of what is `keyed`."""
_SERVER: Final = ("spec", "containers", CONTAINER)
_RELOADER: Final = ("spec", "initContainers", RELOADER)
_LABELS: Final = ("app", "memcached_cr", *(f"app.kubernetes.io/{each}" for each in ("component", "instance", "name")))
_RESERVED: Final = "leave it out, as the operator sets it"
_REFUSED: Final[Mapping[Keys, str]] = {
    (*_SERVER, "image"): "use spec.image",
    (*_SERVER, "command"): "use spec.memory and the like, and spec.extraArgs for the rest",
    (*_SERVER, "args"): "use spec.extraArgs",
    (*_SERVER, "resources"): "use spec.resources",
    (*_RELOADER, "image"): "use spec.image",
    (*_RELOADER, "command"): _RESERVED,
    (*_RELOADER, "args"): _RESERVED,
    **{
        ("spec", "volumes", each): f"name it otherwise, as that of spec.{each} is called so" for each in ("tls", "auth")
    },
    **{
        ("spec", "volumes", each): _RESERVED
        for each in ("extstore", "handover", "warm-restart-items", "warm-restart-request", "operator-scripts")
    },
    **{("metadata", "labels", each): _RESERVED for each in (*_LABELS, "app.kubernetes.io/managed-by")},
}


def of_pod_template(given: Mapping[str, Any]) -> Iterator[str]:
    """A complaint for each part of `spec.podTemplate` that is refused, by its path and with the remedy."""
    template = keyed(given)
    refused = {at: remedy for at, remedy in _REFUSED.items() if find(template, *at) is not None}
    for annotation in find(template, "metadata", "annotations") or ():
        if annotation.startswith(f"{GROUP}/"):
            refused["metadata", "annotations", annotation] = _RESERVED
    mounts = find(template, *_SERVER, "volumeMounts")
    for mounted in mounts if isinstance(mounts, Mapping) else ():
        if f"{mounted}/".startswith(f"{MOUNTED}/"):
            refused[*_SERVER, "volumeMounts", mounted] = f"mount it elsewhere than in {MOUNTED}"
    if find(template, "spec", "shareProcessNamespace") is False:
        refused["spec", "shareProcessNamespace"] = _RESERVED
    for part in (("spec",), _SERVER, _RELOADER):
        for field, key in MERGE_KEYS.items():
            if not isinstance(value := find(template, *part, field), Mapping | None):
                refused[*part, field] = f"must be a list of objects, each with a {key} of its own, got {shown(value)}"
    if not isinstance(ports := find(template, *_SERVER, "ports") or [], list):
        refused[*_SERVER, "ports"] = f"must be a list of objects, got {shown(ports)}"
    elif any(_field(each, "containerPort") == PORT or _field(each, "name") == PORT_NAME for each in ports):
        refused[*_SERVER, "ports"] = f"leave out the port {PORT} and the name {PORT_NAME}, as the operator sets them"
    yield from (f"spec.podTemplate.{_text(at)}: {complaint}" for at, complaint in refused.items())


def _text(at: Keys) -> str:
    """Path as messages name it, such as `spec.containers[memcached].env[A]`."""
    text, of = "", ""
    for key in at:
        is_field = of not in (*MERGE_KEYS, "labels", "annotations")
        text += f".{key}" if is_field and text else key if is_field else f"[{key}]"
        of = key if is_field else ""
    return text


def keyed(value: Any, of: str = "") -> Any:
    """A part of a template, in which a list that is merged is an object, with its entries by their keys.

    A list that is not as it must be for that stays one.

    Args:
        value: as JSON has it.
        of: the field that holds it.
    """
    if isinstance(value, Mapping):
        inner = {field: keyed(each, field) for field, each in value.items()}
        return [inner] if of in MERGE_KEYS else inner
    if not isinstance(value, list):
        return value
    entries = [keyed(each) for each in value]
    by_key = {name: each for each in entries if isinstance(name := _field(each, MERGE_KEYS.get(of, "")), str) and name}
    return by_key if of in MERGE_KEYS and len(by_key) == len(entries) else entries


def find(template: object, *at: str) -> Any:
    """The value of a part in a template that is `keyed`, None where there is none."""
    for key in at:
        template = _field(template, key)
    return template


def _field(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None
