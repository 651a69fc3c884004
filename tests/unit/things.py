"""The kind of object that the tests of the wire and of the cache speak of."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from operator_runtime.client.resources import Resource

THINGS = Resource("example.com", "v1", "things", "Thing")


@dataclass(frozen=True)
class Thing:
    """A record; `owner` names another object in its namespace."""

    namespace: str = "ns"
    name: str = "a"
    uid: str = "u1"
    resource_version: str = "10"
    size: int = 0
    owner: str = ""


class _Metadata(msgspec.Struct):
    name: str
    uid: str
    resourceVersion: str
    namespace: str = ""


class _Object(msgspec.Struct):
    metadata: _Metadata
    size: int = 0


def decode(raw: msgspec.Raw) -> Thing:
    """The record of an object; msgspec.DecodeError where it is none."""
    found = msgspec.json.decode(raw, type=_Object)
    meta = found.metadata
    return Thing(meta.namespace, meta.name, meta.uid, meta.resourceVersion, found.size)


def thing(name: str, version: object, size: object = 1, uid: str = "u1") -> dict[str, object]:
    """The object as the API server shows it."""
    return {"metadata": {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": str(version)}, "size": size}
