"""Execution of an authorized request for a resource: its parts are read, `Api` acts, the answer is written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kube_simulator.errors import bad_request
from kube_simulator.http import forms
from kube_simulator.http.negotiation import (
    JSON_TYPE,
    Representation,
    body_object,
    encoded,
    patch_body,
    patch_kind,
    warning,
)
from kube_simulator.http.options import delete_options, write_options
from kube_simulator.requests import views
from kube_simulator.requests.api import Api
from kube_simulator.requests.types import Caller, Patch, Target, WriteOptions, Written
from kube_simulator.store import lists
from kube_simulator.store.selectors import selection_of
from kube_simulator.values import Json

# Of subresources that are no parts of the object.
_OWN_KINDS = {
    "scale": ("Scale", "autoscaling/v1"),
    "token": ("TokenRequest", "authentication.k8s.io/v1"),
    "eviction": ("Eviction", "policy/v1"),
}

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
class Asked:
    """An authorized request for a resource."""

    verb: str
    target: Target
    query: Mapping[str, str]
    body: bytes
    content_type: str
    caller: Caller
    shape: Representation


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

    async def answer(self, asked: Asked, named: Callable[[str], None]) -> Answer:
        """Do what is asked.

        Args:
            named: is told the name of an object to be created, as soon as it is known.

        Raises:
            ApiError: it cannot be done.
        """
        match asked.verb:
            case "get":
                return self._one(asked, 200, self._api.get(asked.target))
            case "list":
                return self._list(asked)
            case "create":
                return await self._create(asked, named)
            case "update":
                body = self._body(asked)
                options = write_options(asked.query, "UpdateOptions")
                return self._written(asked, await self._api.update(asked.target, body, asked.caller, options))
            case "patch":
                return await self._patch(asked)
            case "delete":
                return await self._delete(asked)
            case _:
                return await self._delete_collection(asked)

    def _list(self, asked: Asked) -> Answer:
        resource = asked.target.resource
        page = lists.list_page(self._api.store, resource, asked.target.namespace, asked.query)
        metadata: Json = {"resourceVersion": str(page.revision)}
        if page.continue_token:
            metadata["continue"] = page.continue_token
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
        items = [views.shown(resource, item) for item in page.items]
        return self._many(asked, items, metadata)

    async def _create(self, asked: Asked, named: Callable[[str], None]) -> Answer:
        body, target = self._body(asked), asked.target
        if isinstance(body, dict) and isinstance(metadata := body.get("metadata"), dict):
            named(str(metadata.get("name") or ""))
        options = write_options(asked.query, "CreateOptions")
        collection = target.resource.full_name
        special = self._special.get(f"{collection}/{target.subresource}" if target.subresource else collection)
        if special is not None:
            if not isinstance(body, dict):
                raise bad_request("couldn't get version/kind; json parse error: the body must be an object")
            return self._written(asked, await special(target, body, asked.caller, options))
        return self._written(asked, await self._api.create(target, body, asked.caller, options))

    async def _patch(self, asked: Asked) -> Answer:
        kind = patch_kind(asked.content_type, custom=asked.target.resource.custom)
        options = write_options(asked.query, "PatchOptions", apply=kind == "apply")
        patch = Patch(kind, patch_body(asked.body, kind))
        return self._written(asked, await self._api.patch(asked.target, patch, asked.caller, options))

    async def _delete(self, asked: Asked) -> Answer:
        options = delete_options(self._options_body(asked), asked.query)
        found, gone = await self._api.delete(asked.target, options)
        if not gone:
            return self._one(asked, 200, found)
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": found}
        return self._encoded(asked, 200, status)

    async def _delete_collection(self, asked: Asked) -> Answer:
        options = delete_options(self._options_body(asked), asked.query)
        selection = selection_of(asked.target.resource, asked.query)
        items = await self._api.delete_collection(asked.target, selection, options)
        return self._many(asked, items, {"resourceVersion": str(self._api.store.revision)})

    def _body(self, asked: Asked) -> Any:
        return body_object(asked.body, asked.content_type, *_expected(asked.target))

    def _options_body(self, asked: Asked) -> Any:
        return body_object(asked.body, asked.content_type, "DeleteOptions") if asked.body else None

    def _written(self, asked: Asked, written: Written) -> Answer:
        status = 201 if written.created else 200
        headers = tuple(("Warning", warning(text)) for text in written.warnings)
        return self._one(asked, status, written.object, headers)

    def _one(self, asked: Asked, status: int, found: Json, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
        shaped = forms.one(asked.target.resource, found, asked.shape, asked.query, self._now())
        return self._encoded(asked, status, shaped, headers)

    def _many(self, asked: Asked, items: list[Json], metadata: Json) -> Answer:
        resource = asked.target.resource
        return self._encoded(asked, 200, forms.many(resource, items, metadata, asked.shape, asked.query, self._now()))

    def _encoded(self, asked: Asked, status: int, document: Json, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
        return Answer(status, encoded(document, asked.shape, asked.query), asked.shape.content_type, headers)


def _expected(target: Target) -> tuple[str, str]:
    """Kind and apiVersion of what a client sends there."""
    if target.subresource in _OWN_KINDS:
        return _OWN_KINDS[target.subresource]
    return target.resource.kind, target.resource.api_version
