"""Objects of each namespace from the beginning: a service account, and the certificate of whom to trust."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kube_simulator.controllers.controller import Context, Controller, controller_caller
from kube_simulator.controllers.object_fields import is_deleting, with_metadata
from kube_simulator.controllers.refusals import namespace_is_leaving
from kube_simulator.errors import ApiError
from kube_simulator.store.store import Change
from kube_simulator.values import Json

ACCOUNT = "default"
ROOT_CERTIFICATES = "kube-root-ca.crt"
_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class Accounts:
    """The controllers of service accounts and of root certificates: what is deleted or edited comes back."""

    def __init__(self, context: Context, ca_certificate: str) -> None:
        """
        Args:
            ca_certificate: PEM.
        """
        self._context = context
        self._ca_certificate = ca_certificate
        self._account_caller = controller_caller("service-account-controller")
        self._certificate_caller = controller_caller("root-ca-cert-publisher")
        self.controller: Controller[str] = Controller("account", self._reconcile)
        self.controller.watch(context.store, "namespaces", _names)
        self.controller.watch(context.store, "serviceaccounts", _namespace_of(ACCOUNT))
        self.controller.watch(context.store, "configmaps", _namespace_of(ROOT_CERTIFICATES))

    async def _reconcile(self, namespace: str) -> None:
        found = self._context.store.get("namespaces", "", namespace)
        if found is None or is_deleting(found):
            return
        if self._context.store.get("serviceaccounts", namespace, ACCOUNT) is None:
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}}
            await self._create("serviceaccounts", namespace, account)
        present = self._context.store.get("configmaps", namespace, ROOT_CERTIFICATES)
        data = {"ca.crt": self._ca_certificate}
        if present is None:
            meta = {"name": ROOT_CERTIFICATES, "annotations": {"kubernetes.io/description": _DESCRIPTION}}
            certificates = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
            await self._create("configmaps", namespace, certificates)
        elif present.get("data") != data and not is_deleting(present):
            target = self._context.target("configmaps", namespace, ROOT_CERTIFICATES)
            await self._context.api.update(target, {**present, "data": data}, self._certificate_caller)

    async def _create(self, collection: str, namespace: str, body: Json) -> None:
        caller = self._account_caller if collection == "serviceaccounts" else self._certificate_caller
        body = with_metadata(body, namespace=namespace)
        try:
            await self._context.api.create(self._context.target(collection, namespace), body, caller)
        except ApiError as error:
            if error.reason != "AlreadyExists" and not namespace_is_leaving(error):
                raise


def _names(change: Change) -> Iterable[str]:
    return () if change.type == "DELETED" else (change.object["metadata"]["name"],)


def _namespace_of(name: str) -> Callable[[Change], Iterable[str]]:
    def keys(change: Change) -> Iterable[str]:
        meta = change.object["metadata"]
        return (meta["namespace"],) if meta["name"] == name and change.before is not None else ()

    return keys
