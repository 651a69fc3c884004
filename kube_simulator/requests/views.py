"""One object, several forms: what is stored and what a resource shows of it.

Events are one store for core/v1 and events.k8s.io/v1, which name their fields differently. A custom resource that is
served in several versions (conversion strategy None) differs in its apiVersion alone.
"""

from __future__ import annotations

from kube_simulator.kinds import events
from kube_simulator.resources import Resource
from kube_simulator.values import Json


def shown(resource: Resource, found: Json) -> Json:
    """A stored object as this resource shows it."""
    if found["apiVersion"] == resource.api_version:
        return found
    if resource.plural == "events" and not resource.custom:
        return events.to_core(found)
    return {**found, "apiVersion": resource.api_version}


def stored(resource: Resource, body: Json) -> Json:
    """An object of this resource as it is stored."""
    if resource.plural == "events" and not resource.group:
        return events.from_core(body)
    return body
