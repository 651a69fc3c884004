"""Creations that store nothing: reviews, which are answered, and tokens of service accounts, which are issued."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kube_simulator.access import reviews
from kube_simulator.admission import namespaces
from kube_simulator.http.verbs import Special
from kube_simulator.requests.decoding import fitted, identified, placed
from kube_simulator.requests.types import Caller, Target, WriteOptions
from kube_simulator.resources import Resource
from kube_simulator.schema import kubernetes
from kube_simulator.store.store import Store
from kube_simulator.values import Json

_TOKENS = "serviceaccounts/token"


def specials(resources: list[Resource], access: reviews.Access, store: Store) -> Mapping[str, Special]:
    """Who answers a creation, by collection or collection/subresource.

    Args:
        resources: what is served from the beginning.
        store: of the namespaces.
    """
    answers: dict[str, Special] = {}

    async def review(target: Target, body: Json, caller: Caller) -> Json:
        read = _read(body, target)
        return reviews.answer(target.resource, read, caller.user, access, namespace=target.namespace)

    async def token(target: Target, body: Json, _caller: Caller) -> Json:
        namespaces.check_open(store, target)
        return access.tokens.request(target.namespace, target.name, _read(body, _of_token(target)))

    for resource in resources:
        if not resource.stored:
            answers[resource.full_name] = review
        if resource.full_name == "serviceaccounts":
            answers[_TOKENS] = token
    return answers


def _read(body: Json, target: Target) -> Json:
    read, _ = fitted(identified(body, target), target, WriteOptions())
    return placed(read, target)


def _of_token(target: Target) -> Target:
    """A TokenRequest is a kind of its own, that is posted to an account."""
    schema = kubernetes.subresource_schema("", "v1", _TOKENS)
    resource = replace(target.resource, group="authentication.k8s.io", version="v1", kind="TokenRequest", schema=schema)
    return Target(resource, target.namespace, target.name)
