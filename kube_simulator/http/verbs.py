"""Execution of an authorized request for a resource: its parts are read, `Api` acts, the answer is written.

Some creations store nothing: reviews, which are answered, tokens of service accounts, which are issued, and evictions.
An answer has objects whole, or as the rows of a Table, which `kubectl get` prints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from kube_simulator.access.reviews import Reviews
from kube_simulator.access.tokens import Tokens
from kube_simulator.errors import bad_request, not_implemented
from kube_simulator.http.negotiation import JSON_TYPE, body_object, encoded, patch_body, patch_kind, warning
from kube_simulator.http.options import delete_options, write_options
from kube_simulator.kinds import tables
from kube_simulator.requests import bodies
from kube_simulator.requests.admission import check_open
from kube_simulator.requests.api import Api
from kube_simulator.requests.types import Caller, Patch, Target, WriteOptions, Written
from kube_simulator.resources import full_resource
from kube_simulator.schema import kubernetes
from kube_simulator.store import lists
from kube_simulator.values import Json

# By the subresource: group and kind of what is posted to it.
_POSTED = {"token": ("authentication.k8s.io", "TokenRequest"), "eviction": ("policy", "Eviction")}


@dataclass(frozen=True, slots=True)
class Answer:
    """Everything that goes back for a request that is no watch."""

    status: int
    body: bytes
    content_type: str = JSON_TYPE
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """An authorized request for a resource."""

    verb: str
    target: Target
    query: Mapping[str, str]
    body: bytes
    content_type: str
    caller: Caller
    table: bool
    """Whether a Table is wanted rather than objects."""


class Verbs:
    """Answers what `Api` and the store's lists can answer."""

    def __init__(self, api: Api, reviews: Reviews, tokens: Tokens, now: Callable[[], datetime]) -> None:
        self._api = api
        self._reviews = reviews
        self._tokens = tokens
        self._now = now

    async def answer(self, request: ResourceRequest, named: Callable[[str], None]) -> Answer:
        """Do what is requested; `named` receives the name of an object to be created. Raises ApiError."""
        target, query, caller = request.target, request.query, request.caller
        match request.verb:
            case "get":
                return self._one(request, 200, self._api.get(target))
            case "list":
                return self._list(request)
            case "create":
                return self._written(request, await self._create(request, named))
            case "update":
                body, options = self._body(request), write_options(query, "UpdateOptions")
                return self._written(request, await self._api.update(target, body, caller, options))
            case "patch":
                kind = patch_kind(request.content_type, custom=target.resource.custom)
                options = write_options(query, "PatchOptions", apply=kind == "apply")
                patch = Patch(kind, patch_body(request.body, kind))
                return self._written(request, await self._api.patch(target, patch, caller, options))
            case "delete":
                return await self._delete(request)
        raise not_implemented(f"{request.verb} of {target.resource.full_name}")

    def _list(self, request: ResourceRequest) -> Answer:
        resource = request.target.resource
        page = lists.list_page(self._api.store, resource, request.target.namespace, request.query)
        metadata: Json = {"resourceVersion": str(page.revision)}
        if page.continue_token:
            metadata["continue"] = page.continue_token
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
        return self._many(request, [bodies.shown(resource, item) for item in page.items], metadata)

    async def _create(self, request: ResourceRequest, named: Callable[[str], None]) -> Written:
        body, target = self._body(request), request.target
        if isinstance(body, dict) and isinstance(metadata := body.get("metadata"), dict):
            named(str(metadata.get("name") or ""))
        options = write_options(request.query, "CreateOptions")
        if target.subresource in _POSTED:
            return await self._post(target, body, options)
        if target.resource.stored:
            return await self._api.create(target, body, request.caller, options)
        read, warnings = bodies.fitted(bodies.identified(body, target), target, options)
        user, now = request.caller.user, self._now()
        found = self._reviews.answer(target.resource, read, user, now, namespace=target.namespace)
        return Written(found, True, warnings)

    async def _post(self, target: Target, body: Any, options: WriteOptions) -> Written:
        """Issue a token, or evict a pod."""
        check_open(self._api.store, target)
        resource, (group, kind) = target.resource, _POSTED[target.subresource]
        beneath = full_resource(resource.plural, target.subresource)
        schema = kubernetes.subresource_schema(resource.group, resource.version, beneath)
        eviction = target.subresource == "eviction"
        posted = replace(resource, group=group, version="v1", kind=kind, schema=schema)
        at = Target(posted, target.namespace, "" if eviction else target.name)
        read, warnings = bodies.fitted(bodies.identified(body, at), at, options)
        if not eviction:
            return Written(self._tokens.request(target.namespace, target.name, read), True, warnings)
        if read["metadata"].get("name") != target.name:
            raise bad_request("name in URL does not match name in Eviction object")
        deletion = delete_options(read.get("deleteOptions") or {}, {})
        deletion = replace(deletion, dry_run=deletion.dry_run or options.dry_run)
        await self._api.delete(replace(target, subresource=""), deletion)
        done = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
        return Written(done, True, warnings)

    async def _delete(self, request: ResourceRequest) -> Answer:
        options = delete_options(self._body(request) if request.body else None, request.query)
        found, gone = await self._api.delete(request.target, options)
        if not gone:
            return self._one(request, 200, found)
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": found}
        return Answer(200, encoded(status))

    def _body(self, request: ResourceRequest) -> Any:
        return body_object(request.body, request.content_type)

    def _written(self, request: ResourceRequest, written: Written) -> Answer:
        headers = tuple(("Warning", warning(text)) for text in written.warnings)
        return self._one(request, 201 if written.created else 200, written.object, headers)

    def _one(
        self, request: ResourceRequest, status: int, found: Json, headers: tuple[tuple[str, str], ...] = ()
    ) -> Answer:
        """One object; what is none of the resource's own, such as a Scale, stays whole."""
        if request.table and found.get("kind") == request.target.resource.kind:
            metadata = {"resourceVersion": found["metadata"].get("resourceVersion", "")}
            found = self._table(request, [found], metadata)
        return Answer(status, encoded(found), headers=headers)

    def _many(self, request: ResourceRequest, items: Sequence[Json], metadata: Json) -> Answer:
        resource = request.target.resource
        if request.table:
            return Answer(200, encoded(self._table(request, items, metadata)))
        if not resource.custom:  # items of built-in kinds do not repeat what their list says
            items = [{key: item[key] for key in item if key not in ("kind", "apiVersion")} for item in items]
        kind = {"kind": resource.list_kind or f"{resource.kind}List", "apiVersion": resource.api_version}
        return Answer(200, encoded({**kind, "metadata": metadata, "items": items}))

    def _table(self, request: ResourceRequest, items: Sequence[Json], metadata: Json) -> Json:
        resource, now, version = request.target.resource, self._now(), "meta.k8s.io/v1"
        whole = request.query.get("includeObject") == "Object"
        partial = {"kind": "PartialObjectMetadata", "apiVersion": version}
        return {
            "kind": "Table",
            "apiVersion": version,
            "metadata": metadata,
            "columnDefinitions": tables.columns(resource),
            "rows": [
                {
                    "cells": tables.cells(resource, item, now),
                    "object": item if whole else {**partial, "metadata": item["metadata"]},
                }
                for item in items
            ],
        }
