"""Rules by which `ensure_object.Keeper` keeps owned objects, as authors give them, and the results they get back."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from operator_runtime.cache.store import ObjectKey, key_of
from operator_runtime.client.api_client import Propagation
from operator_runtime.client.errors import UNDECODABLE, KubeError
from operator_runtime.client.json_depth import decode_nested
from operator_runtime.client.resources import Resource
from operator_runtime.client.watch import Record
from operator_runtime.events.recorder import EventRecorder
from operator_runtime.objects.api_objects import OwnerReference
from operator_runtime.objects.bodies import body_of, controller_in, whole_body, without_nones
from operator_runtime.objects.kinds import Kind, reference
from operator_runtime.owned.compare import REPLACED, Difference, Steps, differences, names_of, no_longer, value_at

logger = logging.getLogger(__name__)

# The annotation with the names of fields is called so, after the manager.
_NAMES_ANNOTATION = "applied-fields"
_TYPE = ("apiVersion", "kind")
_IDENTITY = ("namespace", "name", "uid", "resourceVersion")
# Of the metadata; all else in it is the API server's.
_OWNED_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")


class Ownable(Record, Protocol):
    """Fields that are read of an object that may be owned."""

    @property
    def deleting(self) -> bool: ...
    @property
    def controller(self) -> OwnerReference | None: ...


W = TypeVar("W")
P = TypeVar("P", bound=Ownable)


class Refused(KubeError):
    """A write did not do what it should, although the API server accepted it; the message has the remedy."""


class NotOwned(Refused):
    """An object of that name belongs to another owner, or to none; the message has which, and the remedy."""


class Unwatched(Refused):
    """The API server refuses the list of an optional kind, in its words, so that what there is to keep is unknown."""


class Reverted(Refused):
    """A change was taken and undone by another client or a policy as it was admitted; the message names the fields."""


class EnsureResult(NamedTuple, Generic[P]):
    """An owned object as it is now, None where there is none, or one that is being deleted.

    `waiting` is what is waited for before it is as desired, as a sentence; "" for nothing.
    """

    obj: P | None
    waiting: str = ""


class Change(NamedTuple, Generic[P]):
    """A write that was done.

    Attributes:
        before: the object, None where it was made.
        obj: as it is now; of a deleted one, as it was.
        fields: what was put right. Of one that was deleted to be replaced, and of the one that is made in its place,
            what could not be changed; nothing of any other that was made or deleted.
        desired_changed: the user requested it; else another client had changed the fields, or deleted the object.
        routine: it is contested, and that was reported: this one is not worth a message.
    """

    before: P | None
    obj: P
    fields: Sequence[Difference]
    desired_changed: bool
    routine: bool
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Rules(Generic[W, P]):
    """Rules for the objects of one kind.

    Attributes:
        differences: which fields of the live object are not as desired, all of them: each is written, in one
            patch. One that is to go has None for what is desired.
        key: of what is desired.
        body: of what is desired, as a manifest has it; a None in it is sent as a null.
        is_owned: whether an object is that of the owner of this uid.
        handover: what would make an object owned that has no owner, to follow the remedy; "" for nothing.
        fixed: paths of fields that cannot be put right, as Kubernetes does not let them change, nor what is in them.
            `spec.selector` is one without a word in the groups apps and batch: Deployments, StatefulSets, Jobs.
        replace: an object that differs in such a field is deleted so, and made anew when it is gone; None: it is left
            as it is, and `Refused` reports it. "Orphan" leaves its dependents, such as the pods of a StatefulSet.
        derived: paths of differences that follow from others, and are reported where nothing else differs.
    """

    differences: Callable[[W, P], Iterable[Difference]]
    key: Callable[[W], ObjectKey]
    body: Callable[[W], Mapping[str, Any]]
    is_owned: Callable[[P, str], bool] = lambda live, uid: live.controller is not None and live.controller.uid == uid
    handover: str = ""
    fixed: tuple[str, ...] = ()
    replace: Propagation | None = None
    derived: tuple[str, ...] = ()


def rules_for_bodies(
    manager: str, resource: Resource, *, fixed: tuple[str, ...] = (), replace: Propagation | None = None
) -> Rules[Any, Any]:
    """Make the rules for objects that are desired as dicts. An annotation of the object has the names in the last body,
    so that a name that the next one leaves out is removed.
    """
    annotation, one = f"{manager}/{_NAMES_ANNOTATION}", REPLACED[1] if resource.group == REPLACED[0] else ()

    def body(desired: Mapping[str, Any]) -> Mapping[str, Any]:
        controller_in(resource, whole_body(resource, desired))
        content = without_nones(desired)
        names = msgspec.json.encode(names_of(_compared(content)), order="deterministic").decode()
        annotations = {**content["metadata"].get("annotations", {}), annotation: names}
        return {**content, "metadata": {**content["metadata"], "annotations": annotations}}

    def differ(desired: Mapping[str, Any], live: Any) -> Iterable[Difference]:
        content = _compared(body(desired))
        held = body_of(live, content)
        found = list(differences(content, held))
        before = (held["metadata"].get("annotations") or {}).get(annotation, "")
        if before != content["metadata"]["annotations"][annotation]:
            found += no_longer(_names_in(before), content, held)
        return _with_one(found, content, held, one) if one else found

    derived = (f"metadata.annotations[{annotation}]",)
    return Rules(differ, _key_in, body, fixed=fixed, replace=replace, derived=derived)


def _with_one(
    found: Iterable[Difference], desired: Mapping[str, Any], live: Mapping[str, Any], path: Steps
) -> Iterable[Difference]:
    """Differences, of which those in the dict at the end of that path are one: it is replaced, so owned as a whole."""
    yield from (each for each in found if each.steps == path or each.steps[: len(path)] != path)
    value, actual = value_at(desired, path), value_at(live, path)
    if value is not None and (actual is None or any(differences(value, actual)) or any(differences(actual, value))):
        yield Difference(path, value, actual)


def _compared(body: Mapping[str, Any]) -> dict[str, Any]:
    """A body without which object it is."""
    metadata = {field: value for field, value in body["metadata"].items() if field not in _IDENTITY}
    return {part: value for part, value in body.items() if part not in _TYPE} | {"metadata": metadata}


def _names_in(text: str) -> Mapping[str, object]:
    """The names in such an annotation, which any client may write: none where it is no such annotation."""
    try:
        names = decode_nested(msgspec.json.decode, text.encode())
    except UNDECODABLE:
        return {}
    if not isinstance(names, Mapping):
        return {}
    metadata = names.get("metadata")
    owned = metadata if isinstance(metadata, Mapping) else {}
    owned = {field: owned[field] for field in _OWNED_METADATA if field in owned}
    return {part: each for part, each in names.items() if part not in _TYPE} | {"metadata": owned}


def _key_in(body: Mapping[str, Any]) -> ObjectKey:
    metadata = body["metadata"]
    return ObjectKey(str(metadata.get("namespace", "")), str(metadata["name"]))


def record_changes(events: EventRecorder, owners: Kind[Any], kind: Kind[Any]) -> Callable[[Any, Change[Any]], None]:
    """The default for `on_change=`: a line in the log, and an event on the owner."""

    def on_change(owner: Any, change: Change[Any]) -> None:
        done, action = ("Deleted", "Delete") if change.deleted else ("Updated", "Update")
        if change.before is None:
            done, action = "Created", "Create"
        apart = change.obj.namespace != owner.namespace
        what = f"{kind.resource.kind} {key_of(change.obj) if apart else change.obj.name}"
        why = _why(change)
        logger.log(logging.DEBUG if change.routine else logging.INFO, "%s %s: %s", done.lower(), what, why)
        if not change.routine:
            note = f"{done} {what}: {why}"
            events.emit(reference(owners, owner), type="Normal", reason=done, action=action, note=note)

    return on_change


def _why(change: Change[Any]) -> str:
    fields = "; ".join(map(str, change.fields))
    if change.deleted:
        return f"to be replaced, as {fields}" if fields else "no longer desired"
    if change.before is None:
        return f"replaced, as {fields}" if fields else "new" if change.desired_changed else "it was missing"
    return fields
