"""Ownership by controllers, which adopt what matches their selector and has no controller, and release what does not.

Source of the rules: Kubernetes' design of controllerRef, and what a real controller-manager does.
"""

from __future__ import annotations

from collections.abc import Callable

from kube_simulator.controllers.controller import Context, key_of
from kube_simulator.controllers.index import Index, orphans_in
from kube_simulator.controllers.object_fields import (
    controller_of,
    controller_reference,
    is_deleting,
    labels_of,
    references_of,
)
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import Caller, Patch
from kube_simulator.store.selection import from_label_selector
from kube_simulator.store.store import Change
from kube_simulator.values import Json


def may_be_adopted(change: Change) -> bool:
    """Report whether an object without a controller is new, or has changed in what decides whose it is."""
    if change.type == "DELETED" or controller_of(change.object) is not None:
        return False
    before = change.before
    if before is None:
        return True
    return labels_of(before) != labels_of(change.object) or references_of(before) != references_of(change.object)


async def claim(
    context: Context,
    caller: Caller,
    owner: Json,
    collection: str,
    index: Index,
    *,
    may_be_owned: Callable[[Json], bool] = lambda _found: True,
) -> list[Json]:
    """The objects of a collection that belong to the owner, after adopting and letting go.

    An owner that is being deleted keeps what it has, takes nothing and lets nothing go.

    Args:
        may_be_owned: asked of what the selector matches.
    """
    labels = from_label_selector(owner["spec"]["selector"])

    def matches(found: Json) -> bool:
        return labels.matches(labels_of(found)) and may_be_owned(found)

    uid, namespace = owner["metadata"]["uid"], owner["metadata"]["namespace"]
    leaving = is_deleting(owner)
    claimed = []
    for owned in index.get(uid):
        if matches(owned):
            claimed.append(owned)
        elif not leaving:
            kept = [each for each in references_of(owned) if each["uid"] != uid]
            await _own(context, caller, collection, owned, kept)
    for orphan in index.get(orphans_in(namespace)) if not leaving else ():
        if matches(orphan) and not is_deleting(orphan):
            references = [*references_of(orphan), controller_reference(owner)]
            adopted = await _own(context, caller, collection, orphan, references)
            claimed += [adopted] if adopted is not None else []
    return claimed


async def _own(context: Context, caller: Caller, collection: str, owned: Json, references: list[Json]) -> Json | None:
    """Write the owner references; None if the object has vanished meanwhile."""
    body = {"metadata": {"uid": owned["metadata"]["uid"], "ownerReferences": references or None}}
    try:
        written = await context.api.patch(context.target(collection, *key_of(owned)), Patch("merge", body), caller)
    except ApiError as error:
        if error.code == 404:
            return None
        raise
    return written.object
