"""Pure: fields of a pod's template that stay the operator's, and those that cannot be merged.

The API server judges the rest, where it stands in the workload.
"""

from __future__ import annotations

import re
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
_SERVER: Final = f"spec.containers[{CONTAINER}]"
_RELOADER: Final = f"spec.initContainers[{RELOADER}]"
_LABELS: Final = ("app", "memcached_cr", *(f"app.kubernetes.io/{each}" for each in ("component", "instance", "name")))
_RESERVED: Final = "leave it out, as the operator sets it"
_REFUSED: Final = {
    f"{_SERVER}.image": "use spec.image",
    f"{_SERVER}.command": "use spec.memory and the like, and spec.extraArgs for the rest",
    f"{_SERVER}.args": "use spec.extraArgs",
    f"{_SERVER}.resources": "use spec.resources",
    f"{_RELOADER}.image": "use spec.image",
    f"{_RELOADER}.command": _RESERVED,
    f"{_RELOADER}.args": _RESERVED,
    **{f"spec.volumes[{each}]": f"name it otherwise, as that of spec.{each} is called so" for each in ("tls", "auth")},
    **{
        f"spec.volumes[{each}]": _RESERVED
        for each in ("extstore", "handover", "warm-restart-items", "warm-restart-request", "operator-scripts")
    },
    **{f"metadata.labels[{each}]": _RESERVED for each in (*_LABELS, "app.kubernetes.io/managed-by")},
}
# A field, or the key of an entry.
_STEP: Final = re.compile(r"(?:^|\.)([^.\[]+)|\[(.*?)\](?=[.\[]|$)")


def of_pod_template(given: Mapping[str, Any]) -> Iterator[str]:
    """A complaint for each part of `spec.podTemplate` that is refused, by its path and with the remedy."""
    template = keyed(given)
    refused = {path: remedy for path, remedy in _REFUSED.items() if find(template, path) is not None}
    for annotation in find(template, "metadata.annotations") or ():
        if annotation.startswith(f"{GROUP}/"):
            refused[f"metadata.annotations[{annotation}]"] = _RESERVED
    mounts = find(template, f"{_SERVER}.volumeMounts")
    for mounted in mounts if isinstance(mounts, Mapping) else ():
        if f"{mounted}/".startswith(f"{MOUNTED}/"):
            refused[f"{_SERVER}.volumeMounts[{mounted}]"] = f"mount it elsewhere than in {MOUNTED}"
    if find(template, path := "spec.shareProcessNamespace") is False:
        refused[path] = _RESERVED
    for part in ("spec", _SERVER, _RELOADER):
        for field, key in MERGE_KEYS.items():
            if not isinstance(value := find(template, path := f"{part}.{field}"), Mapping | None):
                refused[path] = f"must be a list of objects, each with a {key} of its own, got {shown(value)}"
    if not isinstance(ports := find(template, path := f"{_SERVER}.ports") or [], list):
        refused[path] = f"must be a list of objects, got {shown(ports)}"
    elif any(_field(each, "containerPort") == PORT or _field(each, "name") == PORT_NAME for each in ports):
        refused[path] = f"leave out the port {PORT} and the name {PORT_NAME}, as the operator sets them"
    yield from (f"spec.podTemplate.{path}: {complaint}" for path, complaint in refused.items())


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


def steps(path: str) -> list[str]:
    """The fields and keys on the way to a part, such as of `spec.containers[memcached].env[A]`."""
    return [field or key for field, key in _STEP.findall(path)]


def find(template: object, path: str) -> Any:
    """The value of a part in a template that is `keyed`, None where there is none."""
    for step in steps(path):
        template = _field(template, step)
    return template


def _field(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None
