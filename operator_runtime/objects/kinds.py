"""Kinds: where the objects of one kind live in the API, and what their JSON becomes.

`typed` is for kinds whose spec and status have types of their own, `plain` for those without a model, and
`Kind` itself for an author who brings a decoder. Only the declared parts of a document are decoded: managedFields
never, nor fields of a spec that its type does not name.
"""

from __future__ import annotations

import contextlib
import re
import traceback
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast, overload

import msgspec

from operator_runtime.cache.store import ObjectKey
from operator_runtime.client.dns_names import SUBDOMAIN
from operator_runtime.client.errors import UnreadableObject
from operator_runtime.client.frames import metadata_of
from operator_runtime.client.json_depth import shallow
from operator_runtime.client.resources import Resource
from operator_runtime.client.watch import Record
from operator_runtime.events.event_bodies import ObjectReference
from operator_runtime.objects.api_objects import (
    Object,
    PlainObject,
    parts_of,
    plain_object,
)
from operator_runtime.objects.bodies import OwnerEntry

R = TypeVar("R", bound=Record)
S = TypeVar("S")
T = TypeVar("T")

Decoder = Callable[[msgspec.Raw | bytes], R]

# RFC 1035 label, which a version and a plural are; a group is an RFC 1123 subdomain.
_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_CORE_VERSION = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")


class Kind(Generic[R]):
    """One kind of object: where it lives, and what its JSON becomes.

    Kinds are distinguished by identity: the same instance used twice shares one informer, and so one cache.
    """

    __slots__ = ("_decode", "resource")

    def __init__(self, resource: Resource, decode: Decoder[R]) -> None:
        """
        Args:
            decode: an object's JSON to what the caches hold of it. Whatever it raises makes that one object unreadable,
                but for NotImplementedError: then it can read none, and the operator ends.
        """
        self.resource = resource
        self._decode = decode

    def __repr__(self) -> str:
        return f"<Kind {self.resource.api_version} {self.resource.kind}>"

    def decode(self, raw: msgspec.Raw | bytes) -> R:
        """An object from its JSON; UnreadableObject where it does not fit the kind's type."""
        try:
            try:
                return self._decode(raw)
            except RecursionError:
                return self._decode(shallow(bytes(raw)))
        except NotImplementedError:
            raise  # the kind's type cannot be read, which is no fault of the object
        except Exception as error:
            metadata = metadata_of(msgspec.Raw(raw))
            key = ObjectKey(metadata.namespace, metadata.name or "(nameless)")
            reason = isinstance(error, msgspec.MsgspecError | ValueError) and str(error)
            what = reason or f"{error!r} at {_place_of(error)}"
            raise UnreadableObject(f"{self.resource.kind} {key}", what) from error


@overload
def typed(
    api_version: str, kind: str, plural: str, *, spec: type[S], status: type[T], namespaced: bool = ...
) -> Kind[Object[S, T]]: ...
@overload
def typed(
    api_version: str, kind: str, plural: str, *, spec: type[S], namespaced: bool = ...
) -> Kind[Object[S, dict[str, Any]]]: ...
@overload
def typed(
    api_version: str, kind: str, plural: str, *, status: type[T], namespaced: bool = ...
) -> Kind[Object[dict[str, Any], T]]: ...
def typed(
    api_version: str,
    kind: str,
    plural: str,
    *,
    spec: type[Any] = dict[str, Any],
    status: type[Any] = dict[str, Any],
    namespaced: bool = True,
) -> Kind[Object[Any, Any]]:
    """A kind whose spec and status have types: msgspec structs, pydantic models, TypedDicts or `dict[str, Any]`.

    A struct names the fields as JSON does, or has `rename="camel"`; fields that it leaves out are not decoded. An
    object without a spec or a status is read as if it had an empty one.

    Args:
        api_version: `GROUP/VERSION`, or `v1` for the core group.
        kind: its name in a body, e.g. `Deployment`.
        plural: its name in a path, e.g. `deployments`.
        spec: the type of `spec`.
        status: the type of `status`; each of its fields needs a default, as a new object has none yet.
        namespaced: False for a cluster-scoped kind; its objects have the namespace "".

    Raises:
        ValueError: a name that the API server cannot know.
        TypeError: a type that JSON cannot be read into, or a status type without defaults.
    """
    resource = resource_of(api_version, kind, plural, namespaced=namespaced)
    read_spec = _part_decoder("spec", spec, kind)
    read_status = _part_decoder("status", status, kind)
    try:
        read_status(msgspec.Raw())
    except msgspec.DecodeError as error:
        raise TypeError(
            f"the status type {_type_name(status)} of {kind} cannot be empty ({error}): "
            "give each of its fields a default, as a new object has no status"
        ) from error

    def decode(raw: msgspec.Raw | bytes) -> Object[Any, Any]:
        metadata, spec_, status_ = parts_of(raw)
        return Object(metadata, read_spec(spec_), read_status(status_))

    return Kind(resource, decode)


def plain(api_version: str, kind: str, plural: str, *, namespaced: bool = True) -> Kind[PlainObject]:
    """A kind without a model, such as a third party's: objects keep their whole body. Names as in `resource_of`."""
    resource = resource_of(api_version, kind, plural, namespaced=namespaced)
    return Kind(resource, lambda raw: plain_object(raw, resource.api_version, resource.kind))


def resource_of(api_version: str, kind: str, plural: str, *, namespaced: bool = True) -> Resource:
    """Return the location of a kind, from the names that its manifests and `kubectl api-resources` show.

    Raises:
        ValueError: a name that the API server cannot know.
    """
    group, slash, version = api_version.rpartition("/")
    known = re.fullmatch(SUBDOMAIN, group) and _LABEL.fullmatch(version) if slash else _CORE_VERSION.fullmatch(version)
    if not known:
        raise ValueError(
            f"api_version is {api_version!r}: write GROUP/VERSION, such as 'apps/v1', or for the core group 'v1'"
        )
    if not _KIND.fullmatch(kind):
        raise ValueError(f"kind is {kind!r}: write it as a manifest does, such as 'Deployment'")
    if not _LABEL.fullmatch(plural):
        raise ValueError(
            f"plural is {plural!r}: write the name that `kubectl api-resources` shows, such as 'deployments'"
        )
    return Resource(group, version, plural, kind, namespaced)


def owner_reference(kind: Kind[Any], obj: Record) -> dict[str, object]:
    """The entry of `metadata.ownerReferences` that makes `obj` the controller of the object that carries it.

    The garbage collector then deletes that object with its owner; both are in one namespace, or the owner is
    cluster-scoped. It takes an owner in another namespace for one that is gone, and deletes the object at once: the
    client refuses to write such an entry, with a ValueError. One that is written by hand it cannot know.

    Raises:
        ValueError: `obj` has no uid: it did not come from the API server.
    """
    if not obj.uid:
        raise ValueError(
            f"{kind.resource.kind} {ObjectKey(obj.namespace, obj.name)} has no uid and cannot own anything: "
            "take it from a store or the client"
        )
    return OwnerEntry(
        obj.namespace,
        apiVersion=kind.resource.api_version,
        kind=kind.resource.kind,
        name=obj.name,
        uid=obj.uid,
        controller=True,
        blockOwnerDeletion=True,
    )


def reference(kind: Kind[Any], obj: Record) -> ObjectReference:
    """`obj` as `EventRecorder.emit` takes it."""
    resource = kind.resource
    return ObjectReference(resource.api_version, resource.kind, obj.namespace, obj.name, obj.uid, obj.resource_version)


def _part_decoder(part: str, type_: type[Any], kind: str) -> Callable[[msgspec.Raw], Any]:
    """Reads `spec` or `status`, with errors from the object's root on; TypeError for a type that JSON cannot become."""
    try:
        decode = msgspec.json.Decoder(type_, dec_hook=_read_model).decode
        with contextlib.suppress(msgspec.ValidationError):
            decode(b"{}")  # here is the place to learn that it is no type for JSON at all
    except (TypeError, NotImplementedError, NameError) as error:
        raise TypeError(
            f"the {part} type {_type_name(type_)} of {kind} cannot be read from JSON ({error}): "
            "use a msgspec struct, a pydantic model, a TypedDict or dict[str, Any]"
        ) from error

    def read(raw: msgspec.Raw) -> Any:
        text = bytes(raw)
        missing = text in (b"", b"null")
        try:
            return decode(b"{}" if missing else text)
        except msgspec.ValidationError as error:
            problem = _from_root(part, str(error))
            if missing:
                problem = f"{part} is missing, and {_type_name(type_)} has no default for it: {problem}"
            raise msgspec.ValidationError(problem) from error

    return read


def _read_model(type_: type[Any], value: object) -> object:
    """msgspec's hook for types that are not its own: pydantic's models, known by what they do."""
    validate = getattr(type_, "model_validate", None)
    if validate is None:
        raise NotImplementedError(f"{type_.__name__} is neither a type of msgspec's nor a model of pydantic's")
    try:
        return cast("object", validate(value))
    except ValueError as error:
        problems = getattr(error, "errors", None)
        if problems is None:
            raise
        # A ValidationError of pydantic: its text has a line and a link for each problem.
        messages = [f"{'.'.join(map(str, each['loc'])) or 'the whole'}: {each['msg']}" for each in problems()]
        raise ValueError("; ".join(messages)) from error


def _from_root(part: str, problem: str) -> str:
    """msgspec's "Expected `int`, got `str` - at `$.size`" as "spec.size: Expected `int`, got `str`"."""
    what, separator, where = problem.rpartition(" - at `$")
    if not separator:
        return f"{part}: {problem}"
    return f"{part}{where.removesuffix('`')}: {what}"


def _place_of(error: Exception) -> str:
    """The line that raised it: what an author needs of an error that speaks of code and not of the document."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename}:{frame.lineno} in {frame.name}"


def _type_name(type_: type[Any]) -> str:
    return str(getattr(type_, "__name__", type_))
