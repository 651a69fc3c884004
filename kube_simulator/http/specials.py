"""Creations that store nothing: reviews, which are answered, tokens of service accounts, which are issued, and
evictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kube_simulator.access import reviews
from kube_simulator.admission import namespace_lifecycle
from kube_simulator.errors import bad_request
from kube_simulator.http.options import delete_options
from kube_simulator.http.verbs import Special
from kube_simulator.requests.api import Api
from kube_simulator.requests.body_decoding import fitted, identified, placed
from kube_simulator.requests.evictions import evict
from kube_simulator.requests.types import Caller, Target, WriteOptions, Written
from kube_simulator.resources import Resource, full_resource
from kube_simulator.schema import kubernetes
from kube_simulator.values import Json

_TOKENS, _EVICTIONS = "serviceaccounts/token", "pods/eviction"


def specials(resources: list[Resource], access: reviews.Access, api: Api) -> Mapping[str, Special]:
    """Return the functions that answer a creation, by collection or collection/subresource.

    Args:
        resources: what is served from the beginning.
    """
    answers: dict[str, Special] = {}

    async def review(target: Target, body: Json, caller: Caller, options: WriteOptions) -> Written:
        read, warnings = _read(body, target, options)
        answer = reviews.answer(target.resource, read, caller.user, access, namespace=target.namespace)
        return Written(answer, True, warnings)

    async def token(target: Target, body: Json, _caller: Caller, options: WriteOptions) -> Written:
        namespace_lifecycle.check_open(api.store, target)
        read, warnings = _read(body, _of_kind(target, "authentication.k8s.io", "TokenRequest"), options)
        return Written(access.tokens.request(target.namespace, target.name, read), True, warnings)

    async def eviction(target: Target, body: Json, _caller: Caller, options: WriteOptions) -> Written:
        namespace_lifecycle.check_open(api.store, target)
        kind = replace(_of_kind(target, "policy", "Eviction"), name="")
        read, warnings = _read(body, kind, options)
        if read["metadata"].get("name") != target.name:
            raise bad_request("name in URL does not match name in Eviction object")
        requested = delete_options(read.get("deleteOptions") or {}, {})
        requested = replace(requested, dry_run=requested.dry_run or options.dry_run)
        await evict(api, target, requested)
        done = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
        return Written(done, True, warnings)

    for resource in resources:
        if not resource.stored:
            answers[resource.full_name] = review
        if resource.full_name == "serviceaccounts":
            answers[_TOKENS] = token
        if resource.full_name == "pods":
            answers[_EVICTIONS] = eviction
    return answers


def _read(body: Json, target: Target, options: WriteOptions) -> tuple[Json, tuple[str, ...]]:
    read, warnings = fitted(identified(body, target), target, options)
    return placed(read, target), warnings


def _of_kind(target: Target, group: str, kind: str) -> Target:
    """Return the target for a body of a subresource that takes a kind of its own."""
    beneath = full_resource(target.resource.plural, target.subresource)
    schema = kubernetes.subresource_schema(target.resource.group, target.resource.version, beneath)
    resource = replace(target.resource, group=group, version="v1", kind=kind, schema=schema)
    return Target(resource, target.namespace, target.name)
