"""Kinds: where objects live, and what their JSON becomes."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest

from operator_runtime.cache.store import ObjectKey
from operator_runtime.client.errors import KubeError, UnreadableObject
from operator_runtime.client.resources import CONFIG_MAPS, DEPLOYMENTS, NODES, Resource
from operator_runtime.client.watch import Watch
from operator_runtime.objects.api_objects import Object, OwnerReference, same
from operator_runtime.objects.bodies import patch_body, whole_body
from operator_runtime.objects.kinds import Kind, owner_reference, plain, typed
from tests.unit.operator_runtime.client.watch_support import Sink
from tests.unit.things import Thing

OWNER = {"apiVersion": "example.com/v1", "kind": "Farm", "name": "f", "uid": "f1", "controller": True}


class ShellSpec(msgspec.Struct, frozen=True, rename="camel"):
    size: int = 1
    time_zone: str = "UTC"


class ShellStatus(msgspec.Struct, frozen=True):
    pods: tuple[str, ...] = ()


class ModelSpec(pydantic.BaseModel):
    size: int = pydantic.Field(ge=0)


class Nested(msgspec.Struct):
    inner: ModelSpec


class Opaque:
    pass


class Inside(msgspec.Struct):
    part: Opaque


class DictSpec(TypedDict, total=False):
    size: int


SHELLS = typed("shells.example.com/v1", "Shell", "shells", spec=ShellSpec, status=ShellStatus)
MONITORS = plain("monitoring.coreos.com/v1", "ServiceMonitor", "servicemonitors")


def body(spec: object = None, status: object = None, **metadata: Any) -> bytes:
    """The JSON of an object; `spec` and `status` are left out where they are None."""
    identity = {
        "namespace": "ns",
        "name": "a",
        "uid": "u1",
        "resourceVersion": "10",
        "managedFields": [{"manager": "m"}],
    }
    parts = {"spec": spec, "status": status}
    content = {"apiVersion": "shells.example.com/v1", "kind": "Shell", "metadata": identity | metadata}
    return json.dumps(content | {name: part for name, part in parts.items() if part is not None}).encode()


def test_an_object_has_its_metadata_and_typed_parts() -> None:
    raw = body(
        {"size": 3, "timeZone": "CET", "unknown": 1},
        {"pods": ["p"]},
        generation=4,
        labels={"l": "1"},
        annotations={"n": "2"},
        finalizers=["x/y"],
        ownerReferences=[{**OWNER, "controller": False, "name": "other"}, OWNER],
        creationTimestamp="2026-11-21T10:00:00Z",
    )
    shell = SHELLS.decode(raw)
    assert (shell.spec, shell.status) == (ShellSpec(3, "CET"), ShellStatus(("p",)))
    assert (shell.namespace, shell.name, shell.uid, shell.resource_version) == ("ns", "a", "u1", "10")
    assert (shell.generation, shell.labels, shell.annotations) == (4, {"l": "1"}, {"n": "2"})
    assert (shell.finalizers, shell.key, shell.deleting) == (("x/y",), ObjectKey("ns", "a"), False)
    assert [owner.name for owner in shell.owners] == ["other", "f"]
    assert shell.controller == OwnerReference("example.com/v1", "Farm", "f", "f1", True)
    assert shell.metadata.creation_timestamp == "2026-11-21T10:00:00Z"


def test_what_metadata_leaves_out_or_has_as_null_is_empty() -> None:
    nothing = dict.fromkeys(["labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp"])
    for shell in (SHELLS.decode(body()), SHELLS.decode(body(**nothing))):
        assert (shell.labels, shell.annotations, shell.finalizers, shell.owners) == ({}, {}, (), ())
        assert (shell.generation, shell.deleting, shell.controller) == (0, False, None)


@pytest.mark.parametrize("spec", [ModelSpec, DictSpec, dict[str, Any], Nested])
def test_a_spec_may_be_a_model_a_typed_dict_or_any_dict(spec: type[Any]) -> None:
    kind = typed("v1", "Shell", "shells", spec=spec)
    read = kind.decode(body({"inner": {"size": 2}} if spec is Nested else {"size": 2})).spec
    desired: dict[Any, object] = {ModelSpec: ModelSpec(size=2), Nested: Nested(ModelSpec(size=2))}
    assert read == desired.get(spec, {"size": 2})


def shell_of(spec: type[Any]) -> Kind[Any]:
    return typed("v1", "Shell", "shells", spec=spec)


@pytest.mark.parametrize(
    ("kind", "raw", "message"),
    [
        (SHELLS, body({"size": "x"}), "Shell ns/a: spec.size: Expected `int`, got `str`"),
        (SHELLS, body(3), "Shell ns/a: spec: Expected `object`, got `int`"),
        (SHELLS, body(status={"pods": [1]}), "Shell ns/a: status.pods[0]: Expected `str`, got `int`"),
        (shell_of(ModelSpec), body({"size": -1}), "Shell ns/a: spec: size: Input should be greater than or equal to 0"),
        (shell_of(Nested), body({"inner": {}}), "Shell ns/a: spec.inner: size: Field required"),
        (shell_of(ModelSpec), body(), "Shell ns/a: spec is missing, and ModelSpec has no default for it: spec: size: "),
        (SHELLS, b'{"metadata":{"name":"a"}}', "Shell a: Object missing required field `uid` - at `$.metadata`"),
        (MONITORS, b'{"metadata":{"name":"a"}}', "ServiceMonitor a: Object missing required field `uid`"),
        (MONITORS, b'{"metadata":', "ServiceMonitor (nameless): Input data was truncated"),
        (MONITORS, b'{"metadata":3}', "ServiceMonitor (nameless): Expected `object`, got `int`"),
    ],
)
def test_an_unreadable_object_is_told_with_its_field_and_problem(kind: Kind[Any], raw: bytes, message: str) -> None:
    with pytest.raises(UnreadableObject) as raised:
        kind.decode(raw)
    assert str(raised.value).startswith(message)
    assert isinstance(raised.value, KubeError)  # to a controller: about the world, and no bug


def broken(_raw: msgspec.Raw | bytes) -> Object[Any, Any]:
    raise KeyError("color")


def divides(_raw: msgspec.Raw | bytes) -> Object[Any, Any]:
    raise ZeroDivisionError


def at(function: Callable[..., object]) -> str:
    return f"{__file__}:{function.__code__.co_firstlineno + 1} in {function.__name__}"


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (SHELLS, "ns/b: spec.size: Expected `int`, got `str`"),
        (Kind(SHELLS.resource, broken), f"ns/b: KeyError('color') at {at(broken)}"),
        (Kind(SHELLS.resource, divides), f"ns/b: ZeroDivisionError() at {at(divides)}"),
    ],
)
def test_a_watch_goes_on_past_an_object_that_cannot_be_read(kind: Kind[Any], why: str) -> None:
    sink = Sink()
    watch = Watch(kind.decode, sink)
    watch.next_request()
    watch.line(b'{"type":"ADDED","object":' + body({"size": "x"}, name="b") + b"}")
    assert sink.why == [why]
    sink.take()
    watch.line(b'{"type":"ADDED","object":' + body({"size": 1}, name="c") + b"}")
    assert (("put", "c", "10") in sink.received) is (kind is SHELLS)


def test_a_document_nested_too_deeply_is_cut_and_not_refused() -> None:
    deep: Callable[[int], str] = lambda levels: '{"x":' * levels + "1" + "}" * levels  # noqa: E731
    raw = body().replace(b'"apiVersion"', f'"annex":{deep(5000)},"apiVersion"'.encode())
    assert SHELLS.decode(raw).name == "a"
    assert MONITORS.decode(raw).name == "a"


def test_a_plain_object_has_its_whole_body_without_managed_fields() -> None:
    monitor = MONITORS.decode(b'{"metadata":{"name":"a","uid":"u","resourceVersion":"1","managedFields":[1]},"x":[2]}')
    assert monitor.body == {
        "apiVersion": "monitoring.coreos.com/v1",  # the items of a list come without
        "kind": "ServiceMonitor",
        "metadata": {"name": "a", "uid": "u", "resourceVersion": "1"},
        "x": [2],
    }
    assert (monitor.name, monitor.namespace, monitor.key) == ("a", "", ObjectKey("", "a"))


def test_a_kind_knows_where_it_lives() -> None:
    assert typed("apps/v1", "Deployment", "deployments", spec=ShellSpec).resource == DEPLOYMENTS
    node = plain("v1", "Node", "nodes", namespaced=False)
    assert node.resource == Resource("", "v1", "nodes", "Node", namespaced=False)
    assert str(ObjectKey("", "worker")) == "worker"
    assert repr(node) == "<Kind v1 Node>"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("apps/v1/x", "A", "as"), r"api_version is 'apps/v1/x': write GROUP/VERSION, such as 'apps/v1', or .* 'v1'"),
        (("/v1", "A", "as"), "api_version is '/v1'"),
        (("apps/", "A", "as"), "api_version is 'apps/'"),
        (("apps/v1", "deployments", "Deployment"), "kind is 'deployments': write it as a manifest does"),
        (("apps/v1", "Deployment", ""), "plural is '': write the name that `kubectl api-resources` shows"),
        (("apps/v1", "Deployment", "Deployments"), "plural is 'Deployments'"),
    ],
)
def test_a_name_that_no_server_knows_is_refused_at_once(names: tuple[str, str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plain(*names)
    with pytest.raises(ValueError, match=message):
        typed(*names, spec=ShellSpec)


class Strict(msgspec.Struct):
    size: int


class Local(msgspec.Struct):
    part: Unknown  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"status": Strict}, r"the status type Strict of Shell cannot be empty .*missing required field `size`"),
        ({"spec": Opaque}, "the spec type Opaque of Shell cannot be read from JSON .*: use a msgspec struct, a pyd"),
        ({"spec": Local}, r"the spec type Local of Shell .*name 'Unknown' is not defined"),
        ({"status": set[dict[str, int]]}, "the status type"),
    ],
)
def test_a_type_that_json_cannot_be_read_into_is_refused_at_once(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        typed("v1", "Shell", "shells", **parts)


def test_a_type_inside_of_it_ends_the_operator_when_there_is_one_as_it_is_no_fault_of_the_object() -> None:
    with pytest.raises(NotImplementedError, match="Opaque is neither a type of msgspec's nor a model of pydantic's"):
        shell_of(Inside).decode(body({"part": {}}))


def test_the_owner_reference_of_an_object_makes_it_the_controller() -> None:
    owner = {"apiVersion": "shells.example.com/v1", "kind": "Shell", "name": "a", "uid": "u1"}
    made = owner_reference(SHELLS, SHELLS.decode(body()))
    assert made == owner | {"controller": True, "blockOwnerDeletion": True}
    with pytest.raises(ValueError, match="Shell ns/a has no uid and cannot own anything"):
        owner_reference(SHELLS, Thing(uid=""))


@pytest.mark.parametrize(
    ("resource", "namespace", "where"),
    [(CONFIG_MAPS, "other", "the ConfigMap is in namespace other"), (NODES, "", "the Node is cluster-scoped")],
)
def test_an_owner_in_another_namespace_is_refused_as_the_dependent_would_be_deleted(
    resource: Resource, namespace: str, where: str
) -> None:
    metadata = {"ownerReferences": [owner_reference(SHELLS, SHELLS.decode(body()))]}
    key = ObjectKey(namespace, "x")
    writes: list[Callable[[], object]] = [
        lambda: whole_body(resource, {"metadata": {**metadata, "name": "x", "namespace": namespace}}),
        lambda: patch_body(resource, key, {"metadata": copy.deepcopy(metadata)}),
    ]
    for write in writes:
        with pytest.raises(ValueError, match=re.escape(f"ownerReferences names Shell ns/a, but {where}: the garbage")):
            write()


def test_an_owner_in_the_same_namespace_or_in_none_is_fine_and_is_sent_as_it_is() -> None:
    nodes = plain("v1", "Node", "nodes", namespaced=False)
    node = nodes.decode(b'{"metadata": {"name": "n", "uid": "u2", "resourceVersion": "1"}}')
    owners = [owner_reference(SHELLS, SHELLS.decode(body())), owner_reference(nodes, node)]
    metadata = {"namespace": "ns", "name": "x", "ownerReferences": owners}
    sent = msgspec.json.decode(msgspec.json.encode(whole_body(CONFIG_MAPS, {"metadata": metadata}).content))
    assert [each["name"] for each in sent["metadata"]["ownerReferences"]] == ["a", "n"]
    assert sent["metadata"]["ownerReferences"] == owners
    assert patch_body(CONFIG_MAPS, ObjectKey("ns", "x"), {"metadata": {"ownerReferences": None}}).name == "x"


@dataclass(frozen=True)
class Unversioned:
    size: int


class Flat(msgspec.Struct, frozen=True):
    name: str
    resource_version: str


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (SHELLS.decode(body()), SHELLS.decode(body(resourceVersion="11")), True),
        (SHELLS.decode(body()), SHELLS.decode(body({"size": 2}, resourceVersion="11")), False),
        (SHELLS.decode(body()), SHELLS.decode(body({"unknown": 2}, resourceVersion="11")), True),
        (MONITORS.decode(body()), MONITORS.decode(body(resourceVersion="11", managedFields=[])), True),
        (MONITORS.decode(body()), MONITORS.decode(body({"size": 2}, resourceVersion="11")), False),
        (Flat("a", "1"), Flat("a", "2"), True),
        (Flat("a", "1"), Flat("b", "2"), False),
        (Thing(), replace(Thing(), resource_version="11"), True),
        (Unversioned(1), Unversioned(1), False),
        (None, Thing(), False),
        (Thing(), None, False),
        (Thing(), Flat("a", "1"), False),
        (SHELLS.decode(body()), MONITORS.decode(body()), False),
    ],
)
def test_two_versions_are_the_same_if_nothing_but_the_version_differs(
    before: object, after: object, expected: bool
) -> None:
    assert same(before, after) is expected
