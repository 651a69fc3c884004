"""A write that asks to be let in: what every part of admission looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kube_simulator.requests.types import Target
from kube_simulator.values import Json

Operation = Literal["CREATE", "UPDATE", "DELETE"]


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """Request for admission: what is to become of which object."""

    operation: Operation
    target: Target
    new: Json | None
    """As the object would be; None in a deletion."""
    old: Json | None
    """As the object is; None in a creation."""

    @property
    def resource_name(self) -> str:
        """Plural and group of what is written: `deployments.apps`."""
        return self.target.resource.full_name

    @property
    def name(self) -> str:
        """The name of the object."""
        return self.target.name

    @property
    def namespace(self) -> str:
        """Namespace of the object; a namespace counts as its own."""
        return self.target.name if self.resource_name == "namespaces" else self.target.namespace

    @property
    def whole(self) -> bool:
        """Report whether it is about the object itself, and not about a subresource."""
        return not self.target.subresource
