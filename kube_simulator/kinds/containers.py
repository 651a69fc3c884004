"""What is wrong with a container: its name, image, ports, environment, mounts, probes and resources.

Differs from Kubernetes: fields that are rarely used are not looked at; a container that is refused here is refused
there, for the same reason.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kube_simulator.errors import Cause
from kube_simulator.kinds.causes import (
    at_least_zero,
    between,
    duplicate,
    forbidden,
    invalid,
    not_found,
    one_of,
    required,
    unlike,
)
from kube_simulator.kinds.container_resources import resource_problems
from kube_simulator.kinds.names import (
    config_key,
    dns_label,
    dns_subdomain,
    environment_name,
    port_name,
)
from kube_simulator.kinds.security_contexts import context_problems
from kube_simulator.values import Json

MAX_PORT = 65535
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
# What a container that ends before the others begin cannot have.
_OF_LASTING = ("lifecycle", *_PROBES)
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_POD_FIELDS = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.annotations"),
    *("spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
)


def container_problems(
    containers: Sequence[Json],
    field: str,
    *,
    volumes: Collection[str],
    host_network: bool,
    grace_s: int,
    taken: Collection[str] = (),
    first: bool = False,
) -> list[Cause]:
    """Of a list of containers.

    Args:
        first: the others wait for these to end, or to have started.
        grace_s: how long the pod is given to end.
        volumes: names that mounts may refer to.
        taken: names that containers of another list have.
    """
    found: list[Cause] = []
    names = set(taken)
    for index, container in enumerate(containers):
        at = f"{field}[{index}]"
        name = container.get("name") or ""
        if not name:
            found.append(required(f"{at}.name"))
        elif wrong := dns_label(name):
            found += unlike(f"{at}.name", name, wrong)
        elif name in names:
            found.append(duplicate(f"{at}.name", name))
        names.add(name)
        if not container.get("image"):
            found.append(required(f"{at}.image"))
        found += _port_problems(container.get("ports") or [], f"{at}.ports", host_network=host_network)
        found += _environment_problems(container.get("env") or [], f"{at}.env")
        found += _mount_problems(container.get("volumeMounts") or [], f"{at}.volumeMounts", volumes)
        found += _lifecycle_problems(container.get("lifecycle") or {}, f"{at}.lifecycle", grace_s)
        found += _probes_problems(container, at)
        if "restartPolicy" in container:
            found += one_of(f"{at}.restartPolicy", container["restartPolicy"], _RESTART_POLICIES)
        if first and container.get("restartPolicy") != "Always":
            why = "may not be set for init containers without restartPolicy=Always"
            found += [forbidden(f"{at}.{each}", why) for each in _OF_LASTING if container.get(each) is not None]
        policy = container.get("terminationMessagePolicy")
        found += one_of(f"{at}.terminationMessagePolicy", policy, ("File", "FallbackToLogsOnError"))
        pulled = container.get("imagePullPolicy")
        found += one_of(f"{at}.imagePullPolicy", pulled, ("Always", "IfNotPresent", "Never"))
        found += resource_problems(container.get("resources") or {}, f"{at}.resources")
        found += context_problems(container.get("securityContext") or {}, f"{at}.securityContext")
    return found


def _port_problems(ports: Sequence[Json], field: str, *, host_network: bool) -> list[Cause]:
    found: list[Cause] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        at = f"{field}[{index}]"
        name, number, on_host = port.get("name") or "", port.get("containerPort") or 0, port.get("hostPort") or 0
        if name and (wrong := port_name(name)):
            found += unlike(f"{at}.name", name, wrong)
        elif name in names:
            found.append(duplicate(f"{at}.name", name))
        elif name:
            names.add(name)
        if number == 0:
            found.append(required(f"{at}.containerPort"))
        else:
            found += between(f"{at}.containerPort", number, 1, MAX_PORT)
        if on_host:
            found += between(f"{at}.hostPort", on_host, 1, MAX_PORT)
        if on_host and host_network and on_host != number:
            why = "must match `containerPort` when `hostNetwork` is true"
            found.append(invalid(f"{at}.hostPort", on_host, why))
        found += one_of(f"{at}.protocol", port.get("protocol"), _PROTOCOLS)
    return found


def _environment_problems(variables: Sequence[Json], field: str) -> list[Cause]:
    found: list[Cause] = []
    for index, variable in enumerate(variables):
        at = f"{field}[{index}]"
        name = variable.get("name") or ""
        found += unlike(f"{at}.name", name, environment_name(name)) if name else [required(f"{at}.name")]
        if variable.get("valueFrom") is not None:
            found += _source_problems(variable["valueFrom"], f"{at}.valueFrom", has_value=bool(variable.get("value")))
    return found


def _source_problems(source: Json, at: str, *, has_value: bool) -> list[Cause]:
    found: list[Cause] = []
    if (reference := source.get("fieldRef")) is not None:
        found += _field_problems(reference.get("fieldPath") or "", f"{at}.fieldRef.fieldPath")
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if (reference := source.get(kind)) is not None:
            name, key = reference.get("name") or "", reference.get("key") or ""
            found += unlike(f"{at}.{kind}.name", name, dns_subdomain(name))
            found += unlike(f"{at}.{kind}.key", key, config_key(key)) if key else [required(f"{at}.{kind}.key")]
    given = [kind for kind in _SOURCES if source.get(kind) is not None]
    if not given:
        *first, last = [f"`{kind}`" for kind in _SOURCES]
        found.append(invalid(at, "", f"must specify one of: {', '.join(first)} or {last}"))
    elif has_value:
        found.append(invalid(at, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        found.append(invalid(at, "", "may not have more than one field specified at a time"))
    return found


def _field_problems(path: str, at: str) -> list[Cause]:
    if not path:
        return [required(at)]
    name, _, _ = path.partition("['")
    if name in _POD_FIELDS:
        return []
    return [invalid(at, path, f"error converting fieldPath: field label not supported: {path}")]


def _mount_problems(mounts: Sequence[Json], field: str, volumes: Collection[str]) -> list[Cause]:
    found: list[Cause] = []
    paths: set[str] = set()
    for index, mount in enumerate(mounts):
        at = f"{field}[{index}]"
        name, path = mount.get("name") or "", mount.get("mountPath") or ""
        found += [] if name else [required(f"{at}.name")]
        found += [] if name in volumes else [not_found(f"{at}.name", name)]
        found += [] if path else [required(f"{at}.mountPath")]
        found += [invalid(f"{at}.mountPath", path, "must be unique")] if path in paths else []
        paths.add(path)
    return found


def _lifecycle_problems(lifecycle: Json, field: str, grace_s: int) -> list[Cause]:
    found: list[Cause] = []
    for hook in ("postStart", "preStop"):
        if lifecycle.get(hook) is not None:
            found += _handler_problems(lifecycle[hook], f"{field}.{hook}", grace_s)
    return found


def _probes_problems(container: Json, at: str) -> list[Cause]:
    found: list[Cause] = []
    for kind in _PROBES:
        probe = container.get(kind)
        if probe is None:
            continue
        found += _handler_problems(probe, f"{at}.{kind}")
        numbers = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
        for number in numbers:
            found += at_least_zero(f"{at}.{kind}.{number}", probe.get(number))
        ends_s = probe.get("terminationGracePeriodSeconds")
        if kind == "readinessProbe" and ends_s is not None:
            at_end = f"{at}.{kind}.terminationGracePeriodSeconds"
            found.append(invalid(at_end, ends_s, "must not be set for readinessProbes"))
        successes = probe.get("successThreshold", 1)
        if kind != "readinessProbe" and successes != 1:
            found.append(invalid(f"{at}.{kind}.successThreshold", successes, "must be 1"))
    return found


def _handler_problems(handler: Json, at: str, grace_s: int | None = None) -> list[Cause]:
    given = [kind for kind in _HANDLERS if handler.get(kind) is not None]
    if not given:
        return [required(at, "must specify a handler type")]
    found: list[Cause] = []
    first, *more = given
    found += [forbidden(f"{at}.{kind}", "may not specify more than 1 handler type") for kind in more]
    details, inside = handler[first], f"{at}.{first}"
    if first == "exec" and not details.get("command"):
        found.append(required(f"{inside}.command"))
    if first in ("httpGet", "tcpSocket"):
        found += port_problems(details.get("port", 0), f"{inside}.port")
    if first == "sleep" and grace_s is not None and not 0 <= details.get("seconds", 0) <= grace_s:
        why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
        found.append(invalid(inside, details.get("seconds", 0), why))
    if first == "grpc":
        found += between(f"{inside}.port", details.get("port", 0), 1, MAX_PORT)
    if first == "httpGet":
        found += one_of(f"{inside}.scheme", details.get("scheme"), ("HTTP", "HTTPS"))
    return found


def port_problems(port: object, at: str) -> list[Cause]:
    """Of a port that is a number or the name of one."""
    if isinstance(port, str):
        return unlike(at, port, port_name(port))
    return between(at, port, 1, MAX_PORT)
