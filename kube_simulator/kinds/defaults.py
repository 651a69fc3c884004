"""Defaults that Kubernetes fills in, as tables; above all those of a pod, or of a template of pods.

The values are those of `k8s.io/kubernetes/pkg/apis/core/v1/defaults.go`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kube_simulator.values import Json, mapped, shared


class Within(NamedTuple):
    """The defaults of what a field holds, if it is there: of an object, or of each of a list."""

    defaults: Json


def filled(value: Json, defaults: Json) -> Json:
    """The value with the defaults that it has not; itself if there are none to fill in."""
    new = dict(value)
    for name, default in defaults.items():
        if not isinstance(default, Within):
            new.setdefault(name, default)
        elif isinstance(found := new.get(name), dict):
            new[name] = filled(found, default.defaults)
        elif isinstance(found, list):
            new[name] = mapped(lambda each, table=default.defaults: filled(each, table), found)  # type: ignore[misc]
    return shared(new, value)


GRACE_PERIOD_S: Final = 30
"""How long a pod that does not say is given to end."""
_VERSION: Final = Within({"fieldRef": Within({"apiVersion": "v1"})})
_HANDLER: Final = {"httpGet": Within({"path": "/", "scheme": "HTTP"})}
_PROBE: Final = Within(
    {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    | {**_HANDLER, "grpc": Within({"service": ""})}
)
_CONTAINER: Final = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "livenessProbe": _PROBE,
    "readinessProbe": _PROBE,
    "startupProbe": _PROBE,
    "lifecycle": Within({"postStart": Within(_HANDLER), "preStop": Within(_HANDLER)}),
    "ports": Within({"protocol": "TCP"}),
    "env": Within({"valueFrom": _VERSION}),
}
_MODE: Final = {"defaultMode": 0o644}
_DOWNWARD: Final = {"items": _VERSION}
_VOLUME: Final = {
    "secret": Within(_MODE),
    "configMap": Within(_MODE),
    "downwardAPI": Within({**_MODE, **_DOWNWARD}),
    "projected": Within(
        {
            **_MODE,
            "sources": Within(
                {"serviceAccountToken": Within({"expirationSeconds": 3600}), "downwardAPI": Within(_DOWNWARD)}
            ),
        }
    ),
}
_SPEC: Final = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": GRACE_PERIOD_S,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}


def defaulted_template(template: Json) -> Json:
    """A compact pod template with its spec's defaults."""
    return shared({"metadata": {}, **template, "spec": defaulted_spec(template.get("spec") or {})}, template)


def defaulted_spec(spec: Json) -> Json:
    """Fill in the defaults that a pod's compact spec and a template's share."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    new = {**_SPEC, **spec, **({"serviceAccountName": account, "serviceAccount": account} if account else {})}
    for key in ("initContainers", "containers"):
        if new.get(key):
            new[key] = mapped(_container, new[key])
    if new.get("volumes"):
        new["volumes"] = mapped(_volume, new["volumes"])
    return shared(new, spec)


def _container(container: Json) -> Json:
    return filled(container, {"imagePullPolicy": _pull_policy(container.get("image") or ""), **_CONTAINER})


def _pull_policy(image: str) -> str:
    """Always for what may change under its name: no tag, or the tag `latest`."""
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if image and "@" not in image and tag in ("", "latest") else "IfNotPresent"


def _volume(volume: Json) -> Json:
    return {**volume, "emptyDir": {}} if not volume.keys() - {"name"} else filled(volume, _VOLUME)
