"""What the tests of the runtime's client and finalizers share: kinds of an author's own, and a client to a cluster."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from operator_runtime import Condition, Kind, Object, plain, typed
from operator_runtime.client.access.auth import load_access
from operator_runtime.client.api_client import ApiClient
from operator_runtime.testing.waiting import until
from tests.cluster import Cluster
from tests.conformance.sample_objects import GROUP, custom_resource_definition

FIELD_MANAGER = "shells"


class ShellSpec(msgspec.Struct, frozen=True):
    """What a user writes."""

    size: int = 1


class ShellStatus(msgspec.Struct, frozen=True):
    """What an operator answers."""

    ready: int = 0
    pods: tuple[str, ...] = ()
    note: str | None = None
    conditions: tuple[Condition, ...] = ()


Shell = Object[ShellSpec, ShellStatus]
SHELLS = typed(f"{GROUP}/v1", "Shell", "shells", spec=ShellSpec, status=ShellStatus)
# Cluster-scoped, and without a status subresource.
FARMS = typed(f"{GROUP}/v1", "Farm", "farms", spec=dict[str, Any], status=dict[str, Any], namespaced=False)
CONFIG_MAPS = plain("v1", "ConfigMap", "configmaps")
DEPLOYMENTS = plain("apps/v1", "Deployment", "deployments")
SERVICE_MONITORS = plain("monitoring.coreos.com/v1", "ServiceMonitor", "servicemonitors")


def definitions() -> list[dict[str, Any]]:
    """The CustomResourceDefinitions of `SHELLS` and `FARMS`."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    properties = {"spec": anything, "status": anything}
    farm = custom_resource_definition("Farm", properties)
    farm["spec"]["scope"] = "Cluster"
    return [custom_resource_definition("Shell", properties, subresources={"status": {}}), farm]


def install(cluster: Cluster) -> None:
    """Have the cluster serve `SHELLS` and `FARMS`."""
    for definition in definitions():
        cluster.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(definition))
    for kind in (SHELLS, FARMS):
        await_kind(cluster, kind)


def await_kind(cluster: Cluster, kind: Kind[Any]) -> None:
    """Wait until a kind is served whose definition was just applied.

    `kubectl wait` fails at once where the definition has no conditions yet.
    """
    served = ("get", "--raw", kind.resource.path())
    until(f"{kind} is not served", lambda: cluster.kubectl(*served, check=False).returncode == 0)


def remove(cluster: Cluster) -> None:
    """Take them away again."""
    names = [f"crd/{definition['metadata']['name']}" for definition in definitions()]
    cluster.kubectl("delete", *names, "--ignore-not-found")


@asynccontextmanager
async def api_client(cluster: Cluster, user_agent: str) -> AsyncIterator[ApiClient]:
    """An administrator's client, which the audit log knows by that name."""
    access = load_access(kubeconfig=str(cluster.kubeconfig_path), environ={})
    async with ApiClient(access, user_agent=user_agent) as api:
        yield api


def shell(namespace: str, name: str, size: int = 1, **metadata: Any) -> dict[str, Any]:
    """A Shell as an author writes it, without apiVersion and kind."""
    return {"metadata": {"namespace": namespace, "name": name, **metadata}, "spec": {"size": size}}


def deployment(namespace: str, name: str, **metadata: Any) -> dict[str, Any]:
    """A Deployment that wants no pods."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    return {
        "metadata": {"namespace": namespace, "name": name, **metadata},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }
