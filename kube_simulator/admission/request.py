"""A write that asks to be let in: what every part of admission looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kube_simulator.access.identities import listed_groups
from kube_simulator.kinds import scale
from kube_simulator.requests.types import Caller, Target
from kube_simulator.values import Json

Operation = Literal["CREATE", "UPDATE", "DELETE"]
_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}

# Of subresources that are written as a kind of their own.
_OWN_KINDS = {"scale": ("autoscaling", "Scale"), "eviction": ("policy", "Eviction")}


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """Who wants to do what to which object."""

    operation: Operation
    target: Target
    new: Json | None
    """As the object would be; None in a deletion."""
    old: Json | None
    """As the object is; None in a creation."""
    caller: Caller
    dry_run: bool

    @property
    def resource_name(self) -> str:
        """Plural and group of what is written: `deployments.apps`."""
        return self.target.resource.full_name

    @property
    def name(self) -> str:
        """The name of the object; empty where it is deleted with its collection."""
        return self.target.name

    @property
    def shown_name(self) -> str:
        """The name by which a refusal calls the object."""
        return self.name or "Unknown"

    @property
    def namespace(self) -> str:
        """Of the object; a namespace counts as its own."""
        return self.target.name if self.resource_name == "namespaces" else self.target.namespace

    @property
    def whole(self) -> bool:
        """It is about the object itself, and not about a subresource."""
        return not self.target.subresource

    def json(self, uid: str, version: str) -> Json:
        """As `admission.k8s.io/v1` has it, without the objects; `version` is the one that a rule asks for."""
        resource = self.target.resource
        kind, sent_kind = self._kind(version), self._kind(resource.version)
        what = {"group": resource.group, "resource": resource.plural}
        beneath = self.target.subresource
        user = self.caller.user
        return {
            "uid": uid,
            "kind": kind,
            "resource": {**what, "version": version},
            **({"subResource": beneath} if beneath else {}),
            "requestKind": sent_kind,
            "requestResource": {**what, "version": resource.version},
            **({"requestSubResource": beneath} if beneath else {}),
            **({"name": self.name} if self.name else {}),
            **({"namespace": self.namespace} if self.namespace else {}),
            "operation": self.operation,
            "userInfo": {
                "username": user.name,
                **({"uid": user.uid} if user.uid else {}),
                "groups": listed_groups(user),
                **({"extra": {key: list(value) for key, value in user.extra.items()}} if user.extra else {}),
            },
            "dryRun": self.dry_run,
            "options": {"kind": _OPTIONS[self.operation], "apiVersion": "meta.k8s.io/v1"},
        }

    def seen(self, found: Json | None, version: str) -> Json | None:
        """An object as webhooks and policies see it: of a scale the Scale, and in the version that a rule asks for."""
        if found is None:
            return None
        resource = self.target.resource
        if self.target.subresource == "scale":
            return scale.read(resource, found)
        if version == resource.version:
            return found
        return {**found, "apiVersion": f"{resource.group}/{version}"}

    def _kind(self, version: str) -> Json:
        if self.target.subresource in _OWN_KINDS:
            group, kind = _OWN_KINDS[self.target.subresource]
            return {"group": group, "version": "v1", "kind": kind}
        return {"group": self.target.resource.group, "version": version, "kind": self.target.resource.kind}
