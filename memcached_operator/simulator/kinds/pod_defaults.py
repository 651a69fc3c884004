"""What Kubernetes fills in where a pod, or a template of pods, does not say.

The values are those of `k8s.io/kubernetes/pkg/apis/core/v1/defaults.go`.
"""

from __future__ import annotations

import re

from memcached_operator.simulator.errors import Json
from memcached_operator.simulator.kinds.compaction import compact

# The reference of an image: host, path and tag.
_REFERENCE = re.compile(r"([A-Za-z0-9.:-]+/)?[a-z0-9]+([._/-]+[a-z0-9]+)*(:\w[\w.-]*)?")
_DEFAULT_MODE = 0o644
_VOLUMES_WITH_MODE = ("secret", "configMap", "downwardAPI", "projected")
_TOKEN_EXPIRATION_S = 3600
_HANDLERS = ("postStart", "preStop")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def defaulted_template(template: Json) -> Json:
    """A pod template with its spec's defaults, and without what is empty."""
    template = compact(template)
    return {"metadata": {}, **template, "spec": defaulted_spec(template.get("spec") or {})}


def defaulted_spec(spec: Json) -> Json:
    """What a pod's spec and a template's have in common."""
    spec = compact(spec)
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    host = bool(spec.get("hostNetwork"))
    new = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        **spec,
        **({"serviceAccountName": account, "serviceAccount": account} if account else {}),
    }
    for key in ("initContainers", "containers"):
        if new.get(key):
            new[key] = [_container(each, host_network=host) for each in new[key]]
    if new.get("volumes"):
        new["volumes"] = [_volume(each) for each in new["volumes"]]
    return new


def _container(container: Json, *, host_network: bool) -> Json:
    new = {
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": _pull_policy(container.get("image") or ""),
        **container,
    }
    for key in _PROBES:
        if key in new:
            new[key] = _probe(new[key])
    if "lifecycle" in new:
        hooks = new["lifecycle"]
        new["lifecycle"] = {key: _handler(each) if key in _HANDLERS else each for key, each in hooks.items()}
    if "ports" in new:
        new["ports"] = [_port(each, host_network=host_network) for each in new["ports"]]
    if "env" in new:
        new["env"] = [_variable(each) for each in new["env"]]
    return new


def _pull_policy(image: str) -> str:
    """Always for what may change under its name: no tag, or the tag `latest`; what cannot be read is let be."""
    if "@" in image or not _REFERENCE.fullmatch(image):
        return "IfNotPresent"
    _, _, tag = image.rpartition("/")[2].partition(":")
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _probe(probe: Json) -> Json:
    numbers = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    new = _handler({**numbers, **probe})
    if "grpc" in new:
        new["grpc"] = {"service": "", **new["grpc"]}
    return new


def _handler(handler: Json) -> Json:
    if "httpGet" not in handler:
        return handler
    return {**handler, "httpGet": {"path": "/", "scheme": "HTTP", **handler["httpGet"]}}


def _port(port: Json, *, host_network: bool) -> Json:
    on_host = {"hostPort": port["containerPort"]} if host_network and port.get("containerPort") else {}
    return {**on_host, "protocol": "TCP", **port}


def _variable(variable: Json) -> Json:
    source = variable.get("valueFrom") or {}
    if "fieldRef" not in source:
        return variable
    return {**variable, "valueFrom": {**source, "fieldRef": {"apiVersion": "v1", **source["fieldRef"]}}}


def _volume(volume: Json) -> Json:
    sources = [key for key in volume if key != "name"]
    if not sources:
        return {**volume, "emptyDir": {}}
    new = dict(volume)
    for key in sources:
        if key in _VOLUMES_WITH_MODE and isinstance(new[key], dict):
            new[key] = {"defaultMode": _DEFAULT_MODE, **new[key]}
    if "hostPath" in new:
        new["hostPath"] = {"type": "", **new["hostPath"]}
    if "downwardAPI" in new:
        new["downwardAPI"] = _downward(new["downwardAPI"])
    if "projected" in new:
        sources_of = [_projection(each) for each in new["projected"].get("sources", [])]
        new["projected"] = {**new["projected"], "sources": sources_of}
    return new


def _downward(source: Json) -> Json:
    items = [
        {**each, "fieldRef": {"apiVersion": "v1", **each["fieldRef"]}} if "fieldRef" in each else each
        for each in source.get("items", [])
    ]
    return {**source, "items": items} if items else source


def _projection(source: Json) -> Json:
    new = dict(source)
    if "serviceAccountToken" in new:
        new["serviceAccountToken"] = {"expirationSeconds": _TOKEN_EXPIRATION_S, **new["serviceAccountToken"]}
    if "downwardAPI" in new:
        new["downwardAPI"] = _downward(new["downwardAPI"])
    return new
