"""Defaults that Kubernetes fills in for a pod, or a template of pods.

The values are those of `k8s.io/kubernetes/pkg/apis/core/v1/defaults.go`.
"""

from __future__ import annotations

import re

from kube_simulator.kinds.quantities import in_thousandths
from kube_simulator.kinds.sharing import completed, mapped, shared
from kube_simulator.values import Json

# The reference of an image: host, path and tag.
_REFERENCE = re.compile(r"([A-Za-z0-9.:-]+/)?[a-z0-9]+([._/-]+[a-z0-9]+)*(:\w[\w.-]*)?")
GRACE_PERIOD_S = 30
"""How long a pod that does not say is given to end."""
_DEFAULT_MODE = 0o644
_VOLUMES_WITH_MODE = ("secret", "configMap", "downwardAPI", "projected")
_TOKEN_EXPIRATION_S = 3600
_HANDLERS = ("postStart", "preStop")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def defaulted_template(template: Json) -> Json:
    """A compact pod template with its spec's defaults."""
    return shared({"metadata": {}, **template, "spec": defaulted_spec(template.get("spec") or {})}, template)


def defaulted_spec(spec: Json) -> Json:
    """Fill in the defaults that a pod's compact spec and a template's share."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    host = bool(spec.get("hostNetwork"))
    new = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": GRACE_PERIOD_S,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        **spec,
        **({"serviceAccountName": account, "serviceAccount": account} if account else {}),
    }
    for key in ("initContainers", "containers"):
        if new.get(key):
            new[key] = mapped(lambda each: _container(each, host_network=host), new[key])
    if new.get("volumes"):
        new["volumes"] = mapped(_volume, new["volumes"])
    return shared(new, spec)


def _container(container: Json, *, host_network: bool) -> Json:
    new = {
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": _pull_policy(container.get("image") or ""),
        **container,
    }
    new["resources"] = _resources(new["resources"])
    for key in _PROBES:
        if key in new:
            new[key] = _probe(new[key])
    if "lifecycle" in new:
        hooks = new["lifecycle"]
        changed = {key: _handler(each) if key in _HANDLERS else each for key, each in hooks.items()}
        new["lifecycle"] = shared(changed, hooks)
    if "ports" in new:
        new["ports"] = mapped(lambda each: _port(each, host_network=host_network), new["ports"])
    if "env" in new:
        new["env"] = mapped(_variable, new["env"])
    return shared(new, container)


def _resources(resources: Json) -> Json:
    """Round amounts up to whole thousandths."""
    new = {
        key: {name: in_thousandths(each) for name, each in value.items()} if key in ("limits", "requests") else value
        for key, value in resources.items()
    }
    return resources if new == resources else shared(new, resources)


def _pull_policy(image: str) -> str:
    """Always for what may change under its name: no tag, or the tag `latest`; what cannot be read is let be."""
    if "@" in image or not _REFERENCE.fullmatch(image):
        return "IfNotPresent"
    _, _, tag = image.rpartition("/")[2].partition(":")
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _probe(probe: Json) -> Json:
    numbers = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    new = _handler(completed(probe, numbers))
    if "grpc" not in new:
        return new
    return shared({**new, "grpc": completed(new["grpc"], {"service": ""})}, new)


def _handler(handler: Json) -> Json:
    if "httpGet" not in handler:
        return handler
    return shared({**handler, "httpGet": completed(handler["httpGet"], {"path": "/", "scheme": "HTTP"})}, handler)


def _port(port: Json, *, host_network: bool) -> Json:
    on_host = {"hostPort": port["containerPort"]} if host_network and port.get("containerPort") else {}
    return completed(port, {**on_host, "protocol": "TCP"})


def _variable(variable: Json) -> Json:
    source = variable.get("valueFrom") or {}
    if "fieldRef" not in source:
        return variable
    return shared({**variable, "valueFrom": _with_version(source)}, variable)


def _volume(volume: Json) -> Json:
    sources = [key for key in volume if key != "name"]
    if not sources:
        return {**volume, "emptyDir": {}}
    new = dict(volume)
    for key in sources:
        if key in _VOLUMES_WITH_MODE and isinstance(new[key], dict):
            new[key] = completed(new[key], {"defaultMode": _DEFAULT_MODE})
    if "hostPath" in new:
        new["hostPath"] = completed(new["hostPath"], {"type": ""})
    if "downwardAPI" in new:
        new["downwardAPI"] = _downward(new["downwardAPI"])
    if "projected" in new:
        sources_of = mapped(_projection, new["projected"].get("sources", []))
        new["projected"] = shared({**new["projected"], "sources": sources_of}, new["projected"])
    return shared(new, volume)


def _downward(source: Json) -> Json:
    items = mapped(lambda each: _with_version(each) if "fieldRef" in each else each, source.get("items", []))
    return shared({**source, "items": items}, source) if items else source


def _projection(source: Json) -> Json:
    new = dict(source)
    if "serviceAccountToken" in new:
        new["serviceAccountToken"] = completed(new["serviceAccountToken"], {"expirationSeconds": _TOKEN_EXPIRATION_S})
    if "downwardAPI" in new:
        new["downwardAPI"] = _downward(new["downwardAPI"])
    return shared(new, source)


def _with_version(source: Json) -> Json:
    return shared({**source, "fieldRef": completed(source["fieldRef"], {"apiVersion": "v1"})}, source)
