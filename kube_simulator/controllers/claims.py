"""Whose an object is: a controller adopts what matches its selector and has no controller, and lets go what does not.

Source of the rules: Kubernetes' design of controllerRef, and what a real controller-manager does.
"""

from __future__ import annotations

from kube_simulator.controllers.base import Context, key_of
from kube_simulator.controllers.index import Index, orphans_in
from kube_simulator.controllers.object_fields import (
    controller_reference,
    is_deleting,
    labels_of,
    references_of,
)
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import Caller, Patch
from kube_simulator.store.selectors import from_label_selector
from kube_simulator.values import Json


async def claim(context: Context, caller: Caller, owner: Json, collection: str, index: Index) -> list[Json]:
    """The objects of a collection that belong to the owner, after adopting and letting go.

    An owner that is being deleted keeps what it has, takes nothing and lets nothing go.
    """
    selector = from_label_selector(owner["spec"]["selector"])
    uid, namespace = owner["metadata"]["uid"], owner["metadata"]["namespace"]
    leaving = is_deleting(owner)
    claimed = []
    for owned in index.get(uid):
        if selector.matches(labels_of(owned)):
            claimed.append(owned)
        elif not leaving:
            kept = [each for each in references_of(owned) if each["uid"] != uid]
            await _own(context, caller, collection, owned, kept)
    for orphan in index.get(orphans_in(namespace)) if not leaving else ():
        if selector.matches(labels_of(orphan)) and not is_deleting(orphan):
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
