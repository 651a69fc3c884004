"""Execution of an authorized request for a resource: its parts are read, `Api` acts, the answer is written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kube_simulator.errors import bad_request
from kube_simulator.http import forms
from kube_simulator.http.negotiation import JSON_TYPE, body_object, encoded, patch_body, patch_kind, warning
from kube_simulator.http.options import delete_options, write_options
from kube_simulator.requests import views
from kube_simulator.requests.api import Api
from kube_simulator.requests.types import Caller, Patch, Target, WriteOptions, Written
from kube_simulator.resources import full_resource
from kube_simulator.store import lists
from kube_simulator.store.selection import selection_of
from kube_simulator.values import Json

Special = Callable[[Target, Json, Caller, WriteOptions], Awaitable[Written]]
"""Answers a creation that stores nothing: a review, a token, an eviction."""


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

    def __init__(
        self,
        api: Api,
        special: Mapping[str, Special],
        now: Callable[[], datetime],
    ) -> None:
        """
        Args:
            special: by collection, or collection/subresource, who answers creations that store nothing.
            now: the present time, in UTC; ages in tables are counted from it.
        """
        self._api = api
        self._special = special
        self._now = now

    async def answer(self, request: ResourceRequest, named: Callable[[str], None]) -> Answer:
        """Do what is requested.

        Args:
            named: receives the name of an object to be created, as soon as it is known.

        Raises:
            ApiError: it cannot be done.
        """
        match request.verb:
            case "get":
                return self._one(request, 200, self._api.get(request.target))
            case "list":
                return self._list(request)
            case "create":
                return await self._create(request, named)
            case "update":
                body = self._body(request)
                options = write_options(request.query, "UpdateOptions")
                return self._written(request, await self._api.update(request.target, body, request.caller, options))
            case "patch":
                return await self._patch(request)
            case "delete":
                return await self._delete(request)
            case _:
                return await self._delete_collection(request)

    def _list(self, request: ResourceRequest) -> Answer:
        resource = request.target.resource
        page = lists.list_page(self._api.store, resource, request.target.namespace, request.query)
        metadata: Json = {"resourceVersion": str(page.revision)}
        if page.continue_token:
            metadata["continue"] = page.continue_token
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
        items = [views.shown(resource, item) for item in page.items]
        return self._many(request, items, metadata)

    async def _create(self, request: ResourceRequest, named: Callable[[str], None]) -> Answer:
        body, target = self._body(request), request.target
        if isinstance(body, dict) and isinstance(metadata := body.get("metadata"), dict):
            named(str(metadata.get("name") or ""))
        options = write_options(request.query, "CreateOptions")
        special = self._special.get(full_resource(target.resource.full_name, target.subresource))
        if special is not None:
            if not isinstance(body, dict):
                raise bad_request("couldn't get version/kind; json parse error: the body must be an object")
            return self._written(request, await special(target, body, request.caller, options))
        return self._written(request, await self._api.create(target, body, request.caller, options))

    async def _patch(self, request: ResourceRequest) -> Answer:
        kind = patch_kind(request.content_type, custom=request.target.resource.custom)
        options = write_options(request.query, "PatchOptions", apply=kind == "apply")
        patch = Patch(kind, patch_body(request.body, kind))
        return self._written(request, await self._api.patch(request.target, patch, request.caller, options))

    async def _delete(self, request: ResourceRequest) -> Answer:
        options = delete_options(self._options_body(request), request.query)
        found, gone = await self._api.delete(request.target, options)
        if not gone:
            return self._one(request, 200, found)
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": found}
        return Answer(200, encoded(status))

    async def _delete_collection(self, request: ResourceRequest) -> Answer:
        options = delete_options(self._options_body(request), request.query)
        selection = selection_of(request.target.resource, request.query)
        items = await self._api.delete_collection(request.target, selection, options)
        return self._many(request, items, {"resourceVersion": str(self._api.store.revision)})

    def _body(self, request: ResourceRequest) -> Any:
        return body_object(request.body, request.content_type)

    def _options_body(self, request: ResourceRequest) -> Any:
        return body_object(request.body, request.content_type) if request.body else None

    def _written(self, request: ResourceRequest, written: Written) -> Answer:
        status = 201 if written.created else 200
        headers = tuple(("Warning", warning(text)) for text in written.warnings)
        return self._one(request, status, written.object, headers)

    def _one(
        self, request: ResourceRequest, status: int, found: Json, headers: tuple[tuple[str, str], ...] = ()
    ) -> Answer:
        shaped = forms.one(request.target.resource, found, self._form(request))
        return Answer(status, encoded(shaped), headers=headers)

    def _many(self, request: ResourceRequest, items: list[Json], metadata: Json) -> Answer:
        return Answer(200, encoded(forms.many(request.target.resource, items, metadata, self._form(request))))

    def _form(self, request: ResourceRequest) -> forms.Form:
        return forms.Form(request.table, request.query, self._now())
