"""How the resource is called, and what its fields can hold.

Apart from the models, so that a process which needs only this loads no pydantic.
"""

from __future__ import annotations

import json
from typing import Final, Literal

GROUP: Final = "cache.example.com"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "Memcached"
PLURAL: Final = "memcacheds"
FINALIZER: Final = "finalizer.cache.example.com"
"""Keeps a deleted Memcached until its pods are gone, with --finalizer."""

SIZE_MAX: Final = 2**31 - 1
# A repository of 255 characters, ":" and a tag of 128, "@" and a sha512 digest: the longest that registries take.
IMAGE_MAX_LENGTH: Final = 255 + 1 + 128 + 1 + len("sha512:") + 128
# Every character of a reference's grammar, so that a slip such as a space is refused at once.
IMAGE_CHARACTERS: Final = r"[-A-Za-z0-9_.:/@+\[\]]"
# A share of the servers, as a PodDisruptionBudget takes it.
PERCENTAGE: Final = "([0-9]|[1-9][0-9]|100)%"
DRAIN_SECONDS: Final = 30
DRAIN_SECONDS_MAX: Final = 86_400
GRACE_PERIOD_SECONDS_MAX: Final = 2**63 - 1

Workload = Literal["Deployment", "StatefulSet"]
ServiceType = Literal["Headless", "ClusterIP", "None"]
Publish = Literal["None", "ConfigMap"]


class InvalidSpec(ValueError):
    """A specification that cannot be acted on; the message names each wrong field, what it holds, and the remedy."""


def refuse_contradiction(workload: str | None, service_type: str | None) -> None:
    """Hold fields that are right by themselves to the rule over both; None for one that is left out.

    Raises:
        InvalidSpec: a StatefulSet's servers would have no names.
    """
    if workload == "StatefulSet" and service_type == "ClusterIP":
        raise InvalidSpec(
            "spec.service.type: must be Headless (or None, where you make the headless Service yourself) with "
            f"spec.workload StatefulSet, whose servers' names come from it, got {json.dumps(service_type)}"
        )
