"""A list that is read live, page by page, so that no answer is larger than it may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.frames import MAX_PAGE_BYTES, PAGE_SIZE, page_of
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
        KubeError: a page did not come, as its pages took longer than the server keeps a version, or is too long.
        ValueError: the kind has no namespaces, or the name is empty.
    """
    if namespace is not None and not (namespace and kind.resource.namespaced):
        raise ValueError(
            f"namespace is {namespace!r} for a list of {kind.resource.plural}: "
            "name a namespace, or give None for all of them and for cluster-scoped kinds"
        )
    query = {name: text for name, text in selectors.items() if text} | {"limit": str(PAGE_SIZE)}
    path, expected = kind.resource.path(namespace), ExpectedList(kind.resource)
    found: list[R] = []
    while True:
        answer = await api.request("GET", path, query=query, gzip=True, max_bytes=MAX_PAGE_BYTES, expected=expected)
        page = page_of(answer)
        found += [kind.decode(item) for item in page.items or ()]
        if not page.metadata.continue_:
            return found
        query = {**query, "continue": page.metadata.continue_}
