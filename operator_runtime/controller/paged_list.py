"""A list that is read live, page by page, so that no answer is larger than it may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import AnswerTooLong, Expired
from operator_runtime.client.frames import MAX_LIST_BYTES, MAX_PAGE_BYTES, PAGE_SIZE, page_of, smaller_page
from operator_runtime.client.response_identity import ExpectedList
from operator_runtime.client.watch import Record
from operator_runtime.objects.kinds import Kind

R = TypeVar("R", bound=Record)


async def paged_list(api: ApiClient, kind: Kind[R], namespace: str | None, selectors: Mapping[str, str]) -> list[R]:
    """List all objects of a kind.

    Args:
        api: speaks to the API server.
        kind: of the objects.
        namespace: theirs, None for all namespaces.
        selectors: by their names in the API's query; "" selects all.

    Raises:
        ValueError: the kind has no namespaces, or the name is empty.
    """
    if namespace is not None and not (namespace and kind.resource.namespaced):
        raise ValueError(
            f"namespace is {namespace!r} for a list of {kind.resource.plural}: "
            "name a namespace, or give None for all of them and for cluster-scoped kinds"
        )
    selector = {name: text for name, text in selectors.items() if text}
    try:
        return await _pages(api, kind, namespace, selector, PAGE_SIZE)
    except Expired:
        # The pages took longer than the server keeps a version: all at once.
        return await _pages(api, kind, namespace, selector, 0)


async def _pages(
    api: ApiClient, kind: Kind[R], namespace: str | None, selector: dict[str, str], page_size: int
) -> list[R]:
    """A list page by page; in one piece where the page size is 0."""
    path, resume = kind.resource.path(namespace), ""
    found: list[R] = []
    while True:
        query = selector | ({"limit": str(page_size)} if page_size else {}) | ({"continue": resume} if resume else {})
        max_bytes = MAX_PAGE_BYTES if page_size else MAX_LIST_BYTES
        try:
            expected = ExpectedList(kind.resource)
            page = page_of(
                await api.request("GET", path, query=query, gzip=True, max_bytes=max_bytes, expected=expected)
            )
        except AnswerTooLong:
            if page_size <= 1:
                raise
            page_size = smaller_page(page_size)
            continue
        found += [kind.decode(item) for item in page.items or ()]
        resume = page.metadata.continue_
        if not resume:
            return found
