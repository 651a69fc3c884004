"""How owned objects are kept: what authors say of it, and what they are told.

`keeper.Keeper` does it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from operator_runtime.cache.store import ObjectKey, key_of
from operator_runtime.client.api_client import Propagation
from operator_runtime.client.resources import Resource
from operator_runtime.client.watch import Record
from operator_runtime.events.recorder import EventRecorder
from operator_runtime.objects.api_objects import OwnerReference
from operator_runtime.objects.bodies import controller_in, whole_body, without_nones
from operator_runtime.objects.drift import covers
from operator_runtime.objects.kinds import Kind, reference
from operator_runtime.reconciling.comparison import Difference, differences
from operator_runtime.reconciling.repairs import Refused

logger = logging.getLogger(__name__)


class Ownable(Record, Protocol):
    """What is read of an object that may be owned."""

    @property
    def deleting(self) -> bool: ...
    @property
    def controller(self) -> OwnerReference | None: ...


W = TypeVar("W")
P = TypeVar("P", bound=Ownable)


class NotOwned(Refused):
    """An object of the name that ours should have is somebody else's; the message says whose, and the remedy."""


class Unwatched(Refused):
    """The API server refuses the list of an optional kind, in its words, so that nobody knows what there is to keep."""


class Reverted(Refused):
    """A change was taken, and the object is as it was: somebody undoes it on its way in. The message names fields."""


class Kept(NamedTuple, Generic[P]):
    """An owned object as it is now.

    Attributes:
        obj: None where there is none, or one that is on its way out.
        waiting: what is waited for before it is as wanted, as a sentence; "" for nothing.
    """

    obj: P | None
    waiting: str = ""


class Patch(NamedTuple):
    """A cheaper way than an apply, or the only one, to put some fields right.

    Attributes:
        body: of the patch, without metadata.uid.
        repairs: the differences that it puts right.
        strategic: it is a strategic merge patch, and not a JSON merge patch.
    """

    body: Mapping[str, object]
    repairs: Sequence[Difference]
    strategic: bool = False


class Change(NamedTuple, Generic[P]):
    """A write that was done.

    Attributes:
        before: the object, None where it was made.
        obj: as it is now; of a deleted one, as it was.
        fields: what was put right. Of one that was deleted to be replaced, what cannot be changed of it, and so of the
            one that is made in its place; nothing of any other that was made or deleted.
        asked: the user asked for it; else somebody else had changed the fields, or deleted the object.
        routine: it is contested, and that was said: this one is not worth a word.
        deleted: the object was deleted.
    """

    before: P | None
    obj: P
    fields: Sequence[Difference]
    asked: bool
    routine: bool
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Rules(Generic[W, P]):
    """How the objects of one kind are kept.

    Attributes:
        differences: which fields of the live object are not as wanted; nothing where an apply would change nothing.
        key: of what is wanted.
        body: of what is wanted, as a manifest has it; a None in it is sent as a null, unless it is made by an apply.
        patch: a way to put differences right, None for an apply of the whole. What it leaves is put right next.
        is_ours: whether an object is that of the owner of this uid.
        handover: what would make an object ours that has no owner, to follow the remedy; "" for nothing.
        fixed: what the paths of differences begin with that nobody can put right, as Kubernetes lets nobody change the
            field. `spec.selector` is one without a word in the groups apps and batch: Deployments, StatefulSets, Jobs.
        replace: an object that differs in such a field is deleted so, and made anew when it is gone; None: it is left
            as it is, and `Refused` says so. "Orphan" leaves its dependents, such as the pods of a StatefulSet.
        by_apply: `differences` reads which fields were applied: the object is made by an apply that can only create,
            and not by a POST, which costs the API server 0.6 times as much.
    """

    differences: Callable[[W, P], Iterable[Difference]]
    key: Callable[[W], ObjectKey]
    body: Callable[[W], Mapping[str, Any]]
    patch: Callable[[W, P, Sequence[Difference]], Patch | None] = lambda *_: None
    is_ours: Callable[[P, str], bool] = lambda live, uid: live.controller is not None and live.controller.uid == uid
    handover: str = ""
    fixed: tuple[str, ...] = ()
    replace: Propagation | None = None
    by_apply: bool = False


def rules_for_bodies(
    manager: str, resource: Resource, *, fixed: tuple[str, ...] = (), replace: Propagation | None = None
) -> Rules[Any, Any]:
    """For what is wanted as dicts: an apply of it would change nothing, also of what was applied before.

    Args:
        manager: applies it.
        resource: of the objects.
        fixed: see `Rules`.
        replace: see `Rules`.
    """

    def differ(wanted: Mapping[str, Any], live: Any) -> Iterable[Difference]:
        if covers(live, wanted, manager):
            return ()
        held = getattr(live, "body", None) or {"metadata": {}, "spec": live.spec}
        body = without_nones({part: value for part, value in wanted.items() if part in held and part != "metadata"})
        return tuple(differences(body, held)) or (Difference("metadata.managedFields", "ours", "others'"),)

    def checked(wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        controller_in(resource, whole_body(resource, wanted))
        return wanted

    return Rules(differ, _key_in, checked, fixed=fixed, replace=replace, by_apply=True)


def _key_in(body: Mapping[str, Any]) -> ObjectKey:
    metadata = body["metadata"]
    return ObjectKey(str(metadata.get("namespace", "")), str(metadata["name"]))


def telling(events: EventRecorder, owners: Kind[Any], kind: Kind[Any]) -> Callable[[Any, Change[Any]], None]:
    """What is told of changes where an author says nothing else: a line in the log, and an event on the owner."""

    def tell(owner: Any, change: Change[Any]) -> None:
        done = "Deleted" if change.deleted else "Created" if change.before is None else "Updated"
        apart = change.obj.namespace != owner.namespace
        what = f"{kind.resource.kind} {key_of(change.obj) if apart else change.obj.name}"
        why = _why(change)
        logger.log(logging.DEBUG if change.routine else logging.INFO, "%s %s: %s", done.lower(), what, why)
        if not change.routine:
            note = f"{done} {what}: {why}"
            events.emit(reference(owners, owner), type="Normal", reason=done, action=done.removesuffix("d"), note=note)

    return tell


def _why(change: Change[Any]) -> str:
    fields = "; ".join(map(str, change.fields))
    if change.deleted:
        return f"to be replaced, as {fields}" if fields else "no longer wanted"
    if change.before is None:
        return f"replaced, as {fields}" if fields else "new" if change.asked else "there was none"
    return fields
