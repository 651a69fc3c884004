"""Pure: the resources of a server, from its settings and the user's `spec.resources`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from memcached_operator.api.quantities import canonical, of_mebibytes, value
from memcached_operator.api.server_memory import memory_of_server_mib
from memcached_operator.api.v1alpha1 import Spec

# An idle memcached takes next to none; what a busy one takes is not to be cut.
CPU: Final = "50m"

Quantities = dict[str, str]


def resources_of(spec: Spec) -> tuple[Quantities, Quantities]:
    """Requests and limits of the container, in the form in which the API server writes quantities back.

    What the user names is taken, name by name. What follows from the settings fits it: a limit is no smaller than the
    user's request, and a request no larger than the user's limit.
    """
    memory = of_mebibytes(memory_of_server_mib(spec))
    needed = {"cpu": CPU, "memory": memory}
    if spec.extstore is not None and spec.extstore.volume.emptyDir is not None:
        needed["ephemeral-storage"] = spec.extstore.size  # else the node promises its disk to others, too
    requested, most = _canonical(spec.resources.requests), _canonical(spec.resources.limits)
    requests = {name: min(default, most.get(name, default), key=value) for name, default in needed.items()} | requested
    limits = {"memory": max(memory, requested.get("memory", memory), key=value)} | most
    return requests, limits


def _canonical(quantities: Mapping[str, str | int]) -> Quantities:
    return {name: canonical(quantity) for name, quantity in quantities.items()}
