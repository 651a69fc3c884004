"""Pure: the bodies that authors write, completed and checked before anything is sent.

What is wrong in one is a mistake of the program and not of the cluster: a ValueError or TypeError that has what to
write instead. The API server would answer that it does not know the path, or with another object than was meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import msgspec

from operator_runtime.cache.store import ObjectKey, key_of
from operator_runtime.client.resources import Resource
from operator_runtime.client.watch import Record
from operator_runtime.objects.api_objects import Object, PlainObject


class Body(NamedTuple):
    """A body that is ready to be sent, and where to. `name` is "" where the API server is to make one."""

    namespace: str | None
    name: str
    content: dict[str, Any]


class OwnerEntry(dict[str, object]):
    """An entry of `metadata.ownerReferences` that remembers the owner's namespace, for which the API has no field."""

    __slots__ = ("namespace",)

    def __init__(self, namespace: str, **entry: object) -> None:
        super().__init__(entry)
        self.namespace = namespace


def whole_body(resource: Resource, body: Mapping[str, object]) -> Body:
    """The body of an object of that kind, with apiVersion and kind.

    Raises:
        TypeError: it is no mapping, or its metadata is none.
        ValueError: it is of another kind, does not name its object, or has an owner in another namespace.
    """
    metadata = _checked(resource, body)
    name, namespace = metadata.get("name", ""), metadata.get("namespace", "")
    if not name and not metadata.get("generateName"):
        raise ValueError(f"metadata.name is missing: name the {resource.kind}")
    if resource.namespaced and not namespace:
        raise ValueError(f"metadata.namespace is missing: a {resource.kind} lives in a namespace, such as its owner's")
    if not resource.namespaced and namespace:
        raise ValueError(
            f"metadata.namespace is {namespace!r}: a {resource.kind} is cluster-scoped, so leave the namespace out"
        )
    _check_owners(resource, metadata, str(namespace or ""))
    content = {**body, "apiVersion": resource.api_version, "kind": resource.kind}
    return Body(str(namespace) or None, str(name or ""), content)


def identity_of(which: ObjectKey | Record) -> tuple[ObjectKey, str | None]:
    """The key of what is given, and the uid where it is an object and not a key alone; TypeError for anything else."""
    if isinstance(which, ObjectKey):
        return which, None
    try:
        return key_of(which), which.uid or None
    except AttributeError:
        raise TypeError(f"the key is {which!r}: give ObjectKey(namespace, name), or an object") from None


def patch_body(resource: Resource, key: ObjectKey, body: Mapping[str, object], uid: str | None = None) -> Body:
    """A patch of the object of that name, and with a uid of that one alone; raises as `whole_body`."""
    place = checked_key(resource, key)
    metadata = _checked(resource, body)
    for field, desired in (("name", key.name), ("namespace", key.namespace)):
        if metadata.get(field, desired) != desired:
            raise ValueError(
                f"metadata.{field} is {metadata[field]!r}, but the patch is for {resource.kind} {key}: leave it out"
            )
    _check_owners(resource, metadata, key.namespace)
    content = dict(body)
    if uid is not None:
        content["metadata"] = {"uid": uid, **metadata}
    return Body(place, key.name, content)


def checked_key(resource: Resource, key: ObjectKey) -> str | None:
    """The namespace of that key for a path, None for a cluster-scoped kind; TypeError or ValueError for no such key."""
    if not isinstance(key, ObjectKey):
        raise TypeError(f"the key is {key!r}: give ObjectKey(namespace, name), such as `obj.key`")
    if not key.name:
        raise ValueError(f"the key of a {resource.kind} has no name: give ObjectKey(namespace, name)")
    if resource.namespaced and not key.namespace:
        raise ValueError(f"the key of {resource.kind} {key} has no namespace: give ObjectKey(namespace, name)")
    if not resource.namespaced and key.namespace:
        raise ValueError(
            f"the key of {resource.kind} {key} has a namespace, but the kind is cluster-scoped: "
            f"give ObjectKey('', {key.name!r})"
        )
    return key.namespace or None


def controller_in(resource: Resource, body: Body) -> Mapping[str, Any]:
    """The owner that a body names as its controller; ValueError where it names none."""
    for owner in body.content.get("metadata", {}).get("ownerReferences") or ():
        if owner.get("controller"):
            return cast("Mapping[str, Any]", owner)
    raise ValueError(
        f"metadata.ownerReferences of {resource.kind} {body.name} names no controller: "
        "put owner_reference(KIND, owner) into it"
    )


def without_nones(value: Any) -> Any:
    """A body without its fields that are None, which would be written as nulls."""
    match value:
        case str() | int():
            return value  # as most are, and an abstract class is slow to check
        case Mapping():
            return {name: without_nones(part) for name, part in value.items() if part is not None}
        case list() | tuple():
            return [without_nones(each) for each in value]
        case _:
            return value


def body_of(live: PlainObject | Object[Any, Any], desired: Mapping[str, Any]) -> Mapping[str, Any]:
    """The body of an object as dicts and lists, as far as `desired` is about it.

    Raises TypeError where the kind's type does not keep what `desired` is about.
    """
    if isinstance(live, PlainObject):
        return live.body
    metadata = msgspec.to_builtins(live.metadata)
    lists = {field: list(metadata[field]) for field in ("finalizers", "ownerReferences")}  # tuples until here
    held: dict[str, Any] = {"metadata": metadata | lists}
    for part in desired.keys() - held.keys():
        value = getattr(live, part, None)
        if not isinstance(value, Mapping):
            raise TypeError(
                f"what is cached of {live.key} has no whole {part!r} to compare with the body's: make its kind by "
                "`plain`, or by `typed` with spec=dict[str, Any]"
            )
        held[part] = value
    return held


def merge_diff(live: Mapping[str, Any], desired: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON merge patch (RFC 7386) that makes `desired` of `live`; empty where nothing differs.

    A null and a missing field are the same. A list is replaced as a whole.
    """
    difference: dict[str, Any] = {}
    for name, value in desired.items():
        was = live.get(name)
        if isinstance(value, Mapping) and isinstance(was, Mapping):
            if inner := merge_diff(was, value):
                difference[name] = inner
        elif was != value:
            difference[name] = value
    for name, was in live.items():
        if name not in desired and was is not None:
            difference[name] = None
    return difference


def plain_status(status: object) -> dict[str, Any]:
    """A status of whatever type as JSON has it; TypeError where that is no object."""
    plain = msgspec.to_builtins(status, str_keys=True, enc_hook=_dumped_model)
    if not isinstance(plain, dict):
        raise TypeError(f"the status is {status!r}: give a struct, a model or a dict")
    return plain


def _dumped_model(value: object) -> object:
    """msgspec's hook for types that are not its own: pydantic's models, known by what they do."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__name__} cannot be written as JSON: {value!r}")
    found: object = dump(mode="json", by_alias=True)
    return found


def _checked(resource: Resource, body: Mapping[str, object]) -> Mapping[str, Any]:
    """The metadata of a body that is of that kind, or names none."""
    if not isinstance(body, Mapping):
        raise TypeError(f"the body of a {resource.kind} is {body!r}: give a dict, as a manifest has it")
    for field, desired in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        if body.get(field, desired) != desired:
            raise ValueError(f"the body's {field} is {body[field]!r}, that of the kind is {desired!r}: leave it out")
    metadata = body.get("metadata", {})
    if not isinstance(metadata, Mapping):
        raise TypeError(f"metadata is {metadata!r}: give a dict with the object's name and namespace")
    return metadata


def _check_owners(resource: Resource, metadata: Mapping[str, Any], namespace: str) -> None:
    """Refuses an owner in another namespace than its dependent's."""
    for entry in metadata.get("ownerReferences") or ():
        if isinstance(entry, OwnerEntry) and entry.namespace not in ("", namespace):
            owner = f"{entry['kind']} {ObjectKey(entry.namespace, str(entry['name']))}"
            where = f"is in namespace {namespace}" if resource.namespaced else "is cluster-scoped"
            raise ValueError(
                f"metadata.ownerReferences names {owner}, but the {resource.kind} {where}: the garbage collector would "
                f"delete it at once. Write it into namespace {entry.namespace}, or leave the owner out and delete it "
                "yourself, by a finalizer of the owner's"
            )
