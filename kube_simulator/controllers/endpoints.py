"""Endpoints: the addresses of the pods that a Service selects, those that are ready apart from the others.

Differs from Kubernetes: EndpointSlices are not made; a Service without ports or with a port that the pod names is
served as well, headless or not; more than 1,000 addresses are not cut off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kube_simulator.controllers.base import Context, Controller, Key, controller_caller, key_of, own_key
from kube_simulator.controllers.object_fields import (
    is_deleting,
    is_finished,
    is_ready,
    labels_of,
    stamp,
)
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import DeleteOptions
from kube_simulator.store.store import Change
from kube_simulator.values import Json

_MANAGED_LABEL = "endpoints.kubernetes.io/managed-by"
_COMPONENT = "endpoint-controller"
_TRIGGER = "endpoints.kubernetes.io/last-change-trigger-time"


class Endpoints:
    """The endpoints controller."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._caller = controller_caller(_COMPONENT)
        self.controller: Controller[Key] = Controller("endpoints", self._reconcile)
        self.controller.watch(context.store, "services", own_key)
        self.controller.watch(context.store, "pods", self._keys_of_pod)

    def _keys_of_pod(self, change: Change) -> Iterable[Key]:
        """The Services that select a pod, if anything changed that they show."""
        pod, before = change.object, change.before
        if before is not None and change.type == "MODIFIED" and _shown(pod) == _shown(before):
            return ()
        if before is None and not _address(pod):
            return ()
        services = self._context.store.list("services", pod["metadata"]["namespace"])
        labels = [labels_of(pod), *([labels_of(before)] if before is not None else [])]
        return [key_of(each) for each in services if any(_selects(each, one) for one in labels)]

    async def _reconcile(self, key: Key) -> None:
        service = self._context.store.get("services", *key)
        present = self._context.store.get("endpoints", *key)
        if service is None or not service["spec"].get("selector"):
            if service is None and present is not None and labels_of(present).get(_MANAGED_LABEL) == _COMPONENT:
                options = DeleteOptions(uid=present["metadata"]["uid"])
                await self._context.api.delete(self._context.target("endpoints", *key), options)
            return
        pods = self._context.store.list("pods", key[0])
        subsets = subsets_of(service, [pod for pod in pods if _selects(service, labels_of(pod))])
        labels = {**labels_of(service), _MANAGED_LABEL: _COMPONENT}
        if service["spec"].get("clusterIP") == "None":
            labels["service.kubernetes.io/headless"] = ""
        if present is None:
            annotations = {_TRIGGER: stamp(self._context.now())}
            meta = {"name": key[1], "namespace": key[0], "labels": labels, "annotations": annotations}
            body = {"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": subsets}
            await self._create(key, body)
        elif (present.get("subsets") or []) != subsets or labels_of(present) != labels:
            annotations = {_TRIGGER: stamp(self._context.now())}
            changed = {**present, "metadata": {**present["metadata"], "labels": labels, "annotations": annotations}}
            target = self._context.target("endpoints", *key)
            await self._context.api.update(target, {**changed, "subsets": subsets}, self._caller)

    async def _create(self, key: Key, body: Json) -> None:
        try:
            await self._context.api.create(self._context.target("endpoints", key[0]), body, self._caller)
        except ApiError as error:
            if error.reason != "Forbidden":  # its namespace is on its way out
                raise


def subsets_of(service: Json, pods: Iterable[Json]) -> list[Json]:
    """The one subset of a Service's Endpoints; none if no pod has an address. Sorted by address."""
    shown = sorted((pod for pod in pods if _address(pod)), key=_address)
    if not shown:
        return []
    tolerant = bool(service["spec"].get("publishNotReadyAddresses"))
    name = service["metadata"]["name"]
    ready = [_endpoint(pod, name) for pod in shown if tolerant or (is_ready(pod) and not is_deleting(pod))]
    unready = [_endpoint(pod, name) for pod in shown if not tolerant and not is_ready(pod) and not is_deleting(pod)]
    if not ready and not unready:
        return []
    ports = [_port(each, shown[0]) for each in service["spec"].get("ports") or ()]
    return [
        {
            **({"addresses": ready} if ready else {}),
            **({"notReadyAddresses": unready} if unready else {}),
            **({"ports": ports} if ports else {}),
        }
    ]


def _endpoint(pod: Json, service: str) -> Json:
    meta, spec = pod["metadata"], pod["spec"]
    # By which DNS knows it: HOSTNAME.SERVICE.NAMESPACE.svc.
    named = {"hostname": spec["hostname"]} if spec.get("hostname") and spec.get("subdomain") == service else {}
    return {
        **named,
        "ip": _address(pod),
        "nodeName": spec.get("nodeName"),
        "targetRef": {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]},
    }


def _port(port: Json, pod: Json) -> Json:
    target = port.get("targetPort", port["port"])
    if isinstance(target, str):
        declared = (each for container in pod["spec"]["containers"] for each in container.get("ports") or ())
        target = next((each["containerPort"] for each in declared if each.get("name") == target), port["port"])
    named = {"name": port["name"]} if port.get("name") else {}
    return {**named, "port": target, "protocol": port.get("protocol", "TCP")}


def _selects(service: Json, labels: Mapping[str, str]) -> bool:
    selector = service["spec"].get("selector") or {}
    return bool(selector) and selector.items() <= labels.items()


def _address(pod: Json) -> str:
    return "" if is_finished(pod) else str((pod.get("status") or {}).get("podIP") or "")


def _shown(pod: Json) -> tuple[object, ...]:
    return _address(pod), is_ready(pod), is_deleting(pod), labels_of(pod)
