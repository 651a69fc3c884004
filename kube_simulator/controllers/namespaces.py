"""Namespaces: a service account and the certificate of whom to trust from the beginning, and in the end everything in
them is deleted before they are let go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kube_simulator.controllers.controller import Context, Controller, controller_caller, namespace_is_leaving
from kube_simulator.controllers.object_fields import is_deleting, with_spec
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import Caller, DeleteOptions
from kube_simulator.store.store import Change
from kube_simulator.values import Json

_NAMESPACES: Final = "namespaces"
_FINALIZER: Final = "kubernetes"
_CERTIFICATES: Final = "kube-root-ca.crt"


class Namespaces:
    """The controllers of namespaces, service accounts and root certificates: what is deleted comes back."""

    def __init__(self, context: Context, ca_certificate: str) -> None:
        self._context = context
        self._ca_certificate = ca_certificate
        self.controller: Controller[str] = Controller("namespace", self._reconcile)
        self.controller.watch(context.store, _NAMESPACES, lambda change: (change.object["metadata"]["name"],))
        self.controller.watch(context.store, None, self._keys)

    def _keys(self, change: Change) -> Iterable[str]:
        """The namespace of what is gone, or is one of those that each has."""
        meta = change.object["metadata"]
        given = (change.collection, meta["name"]) in (("serviceaccounts", "default"), ("configmaps", _CERTIFICATES))
        return (meta["namespace"],) if "namespace" in meta and (given or change.type == "DELETED") else ()

    async def _reconcile(self, name: str) -> None:
        found = self._context.store.get(_NAMESPACES, "", name)
        if found is None:
            return
        if is_deleting(found):
            await self._empty(name, found)
            return
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        await self._give("serviceaccounts", name, account, controller_caller("service-account-controller"))
        data = {"data": {"ca.crt": self._ca_certificate}}
        certificates = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": _CERTIFICATES}, **data}
        await self._give("configmaps", name, certificates, controller_caller("root-ca-cert-publisher"))

    async def _give(self, collection: str, namespace: str, body: Json, caller: Caller) -> None:
        name, api = body["metadata"]["name"], self._context.api
        try:
            if self._context.store.get(collection, namespace, name) is None:
                await api.create(self._context.target(collection, namespace), body, caller)
        except ApiError as error:
            if error.reason != "AlreadyExists" and not namespace_is_leaving(error):
                raise

    async def _empty(self, name: str, found: Json) -> None:
        if _FINALIZER not in found["spec"].get("finalizers", ()):
            return
        store, api, left = self._context.store, self._context.api, False
        stored = {each.collection for each in self._context.registry if each.namespaced and each.stored}
        for collection in sorted(stored):
            for each in store.list(collection, name):
                if not is_deleting(each):
                    target = self._context.target(collection, name, each["metadata"]["name"])
                    await api.delete(target, DeleteOptions(propagation="Background"))
            left = left or bool(store.list(collection, name))
        if not left:
            kept = [each for each in found["spec"]["finalizers"] if each != _FINALIZER]
            target = self._context.target(_NAMESPACES, "", name, "finalize")
            await api.update(target, with_spec(found, finalizers=kept), controller_caller("namespace-controller"))
