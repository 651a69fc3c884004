"""The oracle of the tests of behaviour: what the operator wrote, whether it has caught up, how pods fare."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any

from lab.audit import START, Mark
from tests.conformance import sample_objects
from tests.integration.conftest import memcached
from tests.integration.requests import writes_of
from tests.kubectl_in_namespace import Kubectl

OPERATOR_NAME = "memcached-operator"  # the default


def writes(kubectl: Kubectl, name: str, since: Mark) -> list[str]:
    """The operator's writes on objects of that name in this namespace, such as "deployments 201"; events left out.

    Args:
        since: from `Cluster.audit_mark`.
    """
    return [
        f"{event.resource}{'/' if event.subresource else ''}{event.subresource} {event.code}"
        for event in writes_of(kubectl.cluster, OPERATOR_NAME, since=since)
        if (event.namespace, event.name) == (kubectl.namespace, name)
    ]


def deployment_writes(kubectl: Kubectl, name: str, since: Mark = START) -> list[str]:
    """`writes` without those of the status."""
    return [write for write in writes(kubectl, name, since) if write.startswith("deployments")]


def wait(kubectl: Kubectl, what: str, path: str, value: object) -> None:
    """Wait until the field at a JSONPath of an object that exists has that value."""
    kubectl.wait_existing(what, f"jsonpath={{{path}}}={value}")


def create_memcached(kubectl: Kubectl, name: str, size: int, **spec: object) -> None:
    """Create a Memcached, and wait until its status tells of all its servers."""
    kubectl.apply(memcached(name, size, **spec), create=True)
    wait(kubectl, f"mcd/{name}", ".status.replicas", size)


def wait_condition(kubectl: Kubectl, name: str, type_: str, reason: str) -> dict[str, Any]:
    """Wait until a condition of a Memcached has that reason; the condition."""
    wait(kubectl, f"mcd/{name}", f'.status.conditions[?(@.type=="{type_}")].reason', reason)
    return condition(kubectl, name, type_)


def condition(kubectl: Kubectl, name: str, type_: str) -> dict[str, Any]:
    """A condition of a Memcached as it is now."""
    found: dict[str, Any] = next(
        each for each in kubectl.get("mcd", name)["status"]["conditions"] if each["type"] == type_
    )
    return found


def catch_up(kubectl: Kubectl, *, pods: bool = False) -> None:
    """Return when the operator has dealt with all that happened before.

    A Memcached that is created now is complete only after each watch has shown an event of later date, and after a
    status that was held back has had its time. So "nothing was written" can be read from the audit log then.

    Args:
        pods: wait for the watch of pods too.
    """
    name = f"later-{uuid.uuid4().hex[:8]}"
    kubectl.apply(memcached(name, 1 if pods else 0), create=True)
    if pods:
        wait(kubectl, f"mcd/{name}", ".status.replicas", 1)
        kubectl("scale", f"mcd/{name}", "--replicas=0")
        wait(kubectl, f"mcd/{name}", ".status.replicas", 0)
    wait_condition(kubectl, name, "Progressing", "Complete")


def pods_of(kubectl: Kubectl, name: str) -> list[str]:
    """Names of the pods that carry the labels of a Memcached, sorted."""
    return kubectl(
        "get", "pods", "-l", f"app=memcached,memcached_cr={name}", "-o=jsonpath={.items[*].metadata.name}"
    ).split()


def patch_pods(kubectl: Kubectl, pods: Sequence[str], **status: object) -> None:
    """Do the kubelet's part, of which there is none here: say how these pods fare."""
    body = json.dumps({"status": status})
    kubectl("patch", "pods", *pods, "--subresource=status", "--type=strategic", "-p", body)


def make_ready(kubectl: Kubectl, pods: Sequence[str]) -> None:
    """These pods run and serve."""
    patch_pods(kubectl, pods, phase="Running", conditions=[{"type": "Ready", "status": "True"}])


def complete(kubectl: Kubectl, name: str, size: int, **spec: object) -> None:
    """Create a Memcached, and wait until all its pods serve and its status says so."""
    kubectl.apply(memcached(name, size, **spec), create=True)
    if size:
        wait(kubectl, f"mcd/{name}", ".status.replicas", size)
        make_ready(kubectl, pods_of(kubectl, name))
    wait_condition(kubectl, name, "Progressing", "Complete")


def deployment(name: str, *, replicas: int = 0, **metadata: Any) -> dict[str, Any]:
    """Somebody else's Deployment."""
    return sample_objects.deployment(name, app="of-somebody-else", replicas=replicas, **metadata)
