"""The benchmark's peer on kopf: an operator for Memcached, tuned the way kopf's best users tune theirs.

It does the job of memcached-operator that the benchmark measures and nothing else. Run it by
`kopf run --all-namespaces --standalone --quiet kopf_operator.py` with SERVICE_ACCOUNT_DIR, KUBERNETES_SERVICE_HOST and
KUBERNETES_SERVICE_PORT in the environment.

What is tuned: only low-level event handlers, so that kopf writes no annotation, no finalizer and no event of its own;
label selectors on the server's side; streaming lists; indexes in place of API calls; own requests by orjson over one
aiohttp session; at most one reconcile per Memcached at a time, repeated if anything happened meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import kopf
import orjson

GROUP, VERSION = "cache.example.com", "v1alpha1"
# What all Deployments have in common, for both peers.
COMMON = orjson.loads((Path(__file__).parent / "controller_runtime" / "deployment.json").read_bytes())["spec"]
CONTAINER = COMMON["template"]["spec"]["containers"][0]
FIELD_MANAGER = "memcached-operator"
OURS = {"app": "memcached", "memcached_cr": kopf.PRESENT}
RETRY_S = 1.0
# A Service and a disruption budget for each Memcached, too.
EXTRAS = "EXTRAS" in os.environ

Key = tuple[str, str]
log = logging.getLogger("memcached")


@dataclass(slots=True)
class State:
    """The session for our own requests, the Memcacheds that a reconcile is at (`running`), and those of them that it
    must look at again (`again`)."""

    api: aiohttp.ClientSession | None = None
    running: set[Key] = field(default_factory=set)
    again: set[Key] = field(default_factory=set)


state = State()


def _server() -> str:
    return f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"


def _account() -> tuple[str, Path]:
    folder = Path(os.environ["SERVICE_ACCOUNT_DIR"])
    return (folder / "token").read_text().strip(), folder / "ca.crt"


@kopf.on.startup()
async def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.chunk_size = 500
    settings.watching.initial_streaming = True
    for resource in ("deployments", "pods", "services", "poddisruptionbudgets"):
        settings.watching.label_selectors[resource] = "app=memcached,memcached_cr"

    token, authority = _account()
    state.api = aiohttp.ClientSession(
        _server(),
        headers={"Authorization": f"Bearer {token}"},
        connector=aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=authority), limit=16),
    )


@kopf.on.cleanup()
async def close(**_: Any) -> None:
    assert state.api is not None
    await state.api.close()


@kopf.on.login()
def login(**_: Any) -> kopf.ConnectionInfo:
    token, authority = _account()
    return kopf.ConnectionInfo(server=_server(), ca_path=str(authority), scheme="Bearer", token=token)


@kopf.index(GROUP, VERSION, "memcacheds")
def memcacheds(body: kopf.Body, **_: Any) -> dict[Key, dict[str, Any]]:
    meta = body["metadata"]
    desired = {
        "uid": meta["uid"],
        "generation": meta["generation"],
        "deleted": "deletionTimestamp" in meta,
        "size": body.get("spec", {}).get("size", 1),
        "image": body.get("spec", {}).get("image") or CONTAINER["image"],
        "status": dict(body.get("status", {})),
    }
    return {(meta["namespace"], meta["name"]): desired}


@kopf.index("apps", "v1", "deployments", labels=OURS)
def deployments(body: kopf.Body, **_: Any) -> dict[Key, dict[str, Any]]:
    meta, spec, status = body["metadata"], body["spec"], body.get("status", {})
    container = spec["template"]["spec"]["containers"][0]
    live = {
        "owners": [owner["uid"] for owner in meta.get("ownerReferences", ()) if owner.get("controller")],
        "size": spec["replicas"],
        "image": container["image"],
        "command": list(container.get("command", ())),
        "ready": status.get("readyReplicas", 0),
    }
    return {(meta["namespace"], meta["name"]): live}


@kopf.index("pods", labels=OURS)
def pods(body: kopf.Body, **_: Any) -> dict[Key, str | None]:
    """The names of the living pods by Memcached; None stands for one that terminates or has finished."""
    meta = body["metadata"]
    lives = "deletionTimestamp" not in meta and body.get("status", {}).get("phase") not in ("Succeeded", "Failed")
    return {(meta["namespace"], meta["labels"]["memcached_cr"]): meta["name"] if lives else None}


if EXTRAS:

    @kopf.index("services", labels=OURS)
    def services(body: kopf.Body, **_: Any) -> dict[Key, bool]:
        return {(body["metadata"]["namespace"], body["metadata"]["name"]): True}

    @kopf.index("policy", "v1", "poddisruptionbudgets", labels=OURS)
    def budgets(body: kopf.Body, **_: Any) -> dict[Key, bool]:
        return {(body["metadata"]["namespace"], body["metadata"]["name"]): True}


@kopf.on.event(GROUP, VERSION, "memcacheds")
async def memcached_changed(namespace: str, name: str, **indices: Any) -> None:
    await reconcile((namespace, name), indices)


@kopf.on.event("apps", "v1", "deployments", labels=OURS)
async def deployment_changed(namespace: str, name: str, **indices: Any) -> None:
    await reconcile((namespace, name), indices)


@kopf.on.event("pods", labels=OURS)
async def pod_changed(namespace: str, labels: Mapping[str, str], **indices: Any) -> None:
    await reconcile((namespace, labels["memcached_cr"]), indices)


async def reconcile(key: Key, indices: Mapping[str, Any]) -> None:
    """Make one Memcached what it should be; while another call is at it, have that one look again instead."""
    if key in state.running:
        state.again.add(key)
        return
    state.running.add(key)
    try:
        while True:
            state.again.discard(key)
            try:
                await _reconcile_once(key, indices)
            except (aiohttp.ClientError, TimeoutError) as error:
                log.warning("%s/%s: %r", *key, error)
                await asyncio.sleep(RETRY_S)
                continue
            if key not in state.again:
                return
    finally:
        state.running.discard(key)


async def _reconcile_once(key: Key, indices: Mapping[str, Any]) -> None:
    desired = _only(indices["memcacheds"].get(key))
    if desired is None or desired["deleted"]:
        return
    namespace, name = key
    deployments_path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    live = _only(indices["deployments"].get(key))
    if live is None:
        await _send("POST", deployments_path, _deployment(key, desired), "application/json", accept=409)
        await _make_extras(key, desired, indices)
        return
    if live["owners"] != [desired["uid"]]:
        return
    patch: dict[str, Any] = {}
    if live["size"] != desired["size"]:
        patch["replicas"] = desired["size"]
    if live["image"] != desired["image"] or live["command"] != CONTAINER["command"]:
        patch["template"] = {"spec": {"containers": [_container(desired)]}}
    if patch:
        await _send("PATCH", f"{deployments_path}/{name}", {"spec": patch}, "application/merge-patch+json", accept=404)

    await _make_extras(key, desired, indices)
    nodes = sorted(pod for pod in indices["pods"].get(key, ()) if pod is not None)
    status = {
        "nodes": nodes,
        "replicas": len(nodes),
        "readyReplicas": live["ready"],
        "observedGeneration": desired["generation"],
    }
    if any(desired["status"].get(name) != value for name, value in status.items()):
        path = f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/memcacheds/{name}/status"
        await _send("PATCH", path, {"status": status}, "application/merge-patch+json", accept=404)


async def _make_extras(key: Key, desired: Mapping[str, Any], indices: Mapping[str, Any]) -> None:
    if not EXTRAS:
        return
    namespace, _ = key
    if _only(indices["services"].get(key)) is None:
        path = f"/api/v1/namespaces/{namespace}/services"
        await _send("POST", path, _service(key, desired), "application/json", accept=409)
    if desired["size"] > 1 and _only(indices["budgets"].get(key)) is None:
        path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
        await _send("POST", path, _budget(key, desired), "application/json", accept=409)


def _only(store: Any) -> Any:
    return next(iter(store), None) if store is not None else None


async def _send(method: str, path: str, body: object, content_type: str, *, accept: int) -> None:
    """One write; `accept` is the error code that only means that the cache lags."""
    assert state.api is not None
    async with state.api.request(
        method,
        path,
        params={"fieldManager": FIELD_MANAGER},
        data=orjson.dumps(body),
        headers={"Content-Type": content_type},
    ) as answer:
        await answer.read()
        if answer.status != accept:
            answer.raise_for_status()


def _container(desired: Mapping[str, Any]) -> dict[str, Any]:
    return CONTAINER | {"image": desired["image"]}


def _selector(name: str) -> dict[str, str]:
    return {"app": "memcached", "memcached_cr": name}


def _metadata(key: Key, desired: Mapping[str, Any]) -> dict[str, Any]:
    namespace, name = key
    labels = _selector(name) | {
        "app.kubernetes.io/component": "cache",
        "app.kubernetes.io/name": "memcached",
        "app.kubernetes.io/instance": name,
        "app.kubernetes.io/managed-by": "memcached-operator",
    }
    owner = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Memcached",
        "name": name,
        "uid": desired["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {"namespace": namespace, "name": name, "labels": labels, "ownerReferences": [owner]}


def _service(key: Key, desired: Mapping[str, Any]) -> dict[str, Any]:
    port = {"name": "memcached", "port": 11211, "protocol": "TCP", "targetPort": "memcached"}
    spec = {"type": "ClusterIP", "clusterIP": "None", "selector": _selector(key[1]), "ports": [port]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(key, desired), "spec": spec}


def _budget(key: Key, desired: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(key, desired),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": _selector(key[1])},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def _deployment(key: Key, desired: Mapping[str, Any]) -> dict[str, Any]:
    metadata = _metadata(key, desired)
    pod = COMMON["template"]["spec"] | {"containers": [_container(desired)]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": COMMON
        | {
            "replicas": desired["size"],
            "selector": {"matchLabels": _selector(key[1])},
            "template": {"metadata": {"labels": metadata["labels"]}, "spec": pod},
        },
    }
