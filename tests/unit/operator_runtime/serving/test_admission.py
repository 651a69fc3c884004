"""What the API server asks a webhook and is told, as bytes."""

from __future__ import annotations

import base64
import copy
from typing import Any

import jsonpatch
import msgspec
import pytest
from hypothesis import given, strategies as st

from operator_runtime.serving.admission import (
    AdmissionRequest,
    Allowed,
    AnyObject,
    Denied,
    Json,
    MalformedReview,
    Patched,
    Unreadable,
    json_patch,
    read_review,
    write_review,
)

KIND = {"group": "apps", "version": "v1", "kind": "Deployment"}
RESOURCE = {"group": "apps", "version": "v1", "resource": "deployments"}
REQUEST: Json = {
    "uid": "u-1",
    "kind": KIND,
    "resource": RESOURCE,
    "subResource": "scale",
    "requestKind": KIND,
    "requestResource": RESOURCE,
    "name": "a",
    "namespace": "shop",
    "operation": "UPDATE",
    "userInfo": {"username": "jane", "uid": "7", "groups": ["g"], "extra": {"k": ["v"]}},
    "object": {"spec": {"size": 2}},
    "oldObject": {"spec": {"size": 1}},
    "dryRun": True,
    "options": {"kind": "UpdateOptions"},
}


def review(**changes: object) -> bytes:
    return msgspec.json.encode(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**REQUEST, **changes}}
    )


def read(**changes: object) -> AdmissionRequest[Json]:
    return read_review(review(**changes), AnyObject())


def response(answer: Allowed | Denied | Patched) -> Json:
    written: Json = msgspec.json.decode(write_review("u-1", answer))
    assert (written["apiVersion"], written["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    found: Json = written["response"]
    assert found.pop("uid") == "u-1"
    return found


def test_a_request_tells_who_wants_to_do_what() -> None:
    found = read()
    assert (found.uid, found.operation, found.namespace, found.name) == ("u-1", "UPDATE", "shop", "a")
    assert (found.kind.kind, found.resource.resource, found.subresource) == ("Deployment", "deployments", "scale")
    user = found.user
    assert (user.username, user.uid, user.groups, user.extra) == ("jane", "7", ("g",), {"k": ("v",)})
    assert (found.object, found.old_object) == ({"spec": {"size": 2}}, {"spec": {"size": 1}})
    assert (found.dry_run, found.options) == (True, {"kind": "UpdateOptions"})


def test_what_is_null_or_left_out_is_absent() -> None:
    found = read(object=None, options=None, userInfo={})
    assert (found.object, found.options, found.user.username) == (None, {}, "")
    bare = {key: REQUEST[key] for key in ("uid", "kind", "resource", "operation")}
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": bare}
    found = read_review(msgspec.json.encode(body), AnyObject())
    assert (found.object, found.old_object, found.name, found.dry_run) == (None, None, "", False)


class Spec(msgspec.Struct):
    size: int


class Sized(msgspec.Struct):
    spec: Spec


class SizedKind:
    def decode(self, raw: msgspec.Raw | bytes) -> Sized:
        return msgspec.json.decode(raw, type=Sized)


def test_objects_are_what_their_kind_makes_of_them() -> None:
    found = read_review(review(), SizedKind())
    assert (found.object, found.old_object) == (Sized(Spec(2)), Sized(Spec(1)))


def test_an_object_that_its_kind_cannot_read_is_told_with_the_field() -> None:
    with pytest.raises(Unreadable, match=r"^the object cannot be read: Expected `int`.+`\$.spec.size`$") as raised:
        read_review(review(object={"spec": {"size": "two"}}), SizedKind())
    assert raised.value.uid == "u-1"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"hello", "no AdmissionReview: "),
        (b"[]", "no AdmissionReview: "),
        (b"{}", "kind '' of '', not an AdmissionReview of admission.k8s.io/v1"),
        (
            review().replace(b"k8s.io/v1", b"k8s.io/v1beta1"),
            "kind 'AdmissionReview' of 'admission.k8s.io/v1beta1', not an",
        ),
        (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}', "an AdmissionReview without a request"),
        (review(operation="READ"), "no AdmissionReview: Invalid enum value"),
    ],
)
def test_what_is_no_review_is_refused_with_the_reason(body: bytes, why: str) -> None:
    with pytest.raises(MalformedReview, match=f"^{why}"):
        read_review(body, AnyObject())


def test_what_is_let_in_may_come_with_warnings() -> None:
    assert response(Allowed()) == {"allowed": True}
    assert response(Allowed(["old"])) == {"allowed": True, "warnings": ["old"]}


@pytest.mark.parametrize(("code", "reason"), [(403, {"reason": "Forbidden"}), (422, {"reason": "Invalid"}), (418, {})])
def test_a_denial_has_message_code_and_kubernetes_reason_for_it(code: int, reason: dict[str, str]) -> None:
    status = {"status": "Failure", "message": "no", "code": code, **reason}
    assert response(Denied("no", code, ["w"])) == {"allowed": False, "status": status, "warnings": ["w"]}


@pytest.mark.parametrize("code", [200, 399, 600])
def test_a_denial_with_the_code_of_a_success_is_a_mistake(code: int) -> None:
    with pytest.raises(ValueError, match=f"Denied.code is {code}: give that of an error, 400 to 599"):
        Denied("no", code)


def test_a_patch_goes_out_as_kubernetes_wants_it() -> None:
    found = response(Patched([{"op": "add", "path": "/spec", "value": {}}], ["w"]))
    assert base64.b64decode(found.pop("patch")) == b'[{"op":"add","path":"/spec","value":{}}]'
    assert found == {"allowed": True, "warnings": ["w"], "patchType": "JSONPatch"}
    assert response(Patched.between({"a": 1}, {"a": 1})) == {"allowed": True}, "a patchType without a patch is refused"


def test_a_patch_names_only_what_differs() -> None:
    before = {"metadata": {"labels": {"a/b": "1", "c~d": "2"}}, "spec": {"list": [1, 2], "same": {"x": 1}}, "old": 1}
    after: dict[str, Any] = copy.deepcopy(before)
    after["metadata"]["labels"] = {"a/b": "2", "new": "3"}
    after["spec"]["list"].append(3)
    del after["old"]
    assert json_patch(before, after) == [
        {"op": "remove", "path": "/old"},
        {"op": "remove", "path": "/metadata/labels/c~0d"},
        {"op": "replace", "path": "/metadata/labels/a~1b", "value": "2"},
        {"op": "add", "path": "/metadata/labels/new", "value": "3"},
        {"op": "replace", "path": "/spec/list", "value": [1, 2, 3]},
    ]


def test_a_patch_tells_apart_what_python_takes_for_equal() -> None:
    assert json_patch({"a": 1, "b": [0]}, {"a": True, "b": [False]}) == [
        {"op": "replace", "path": "/a", "value": True},
        {"op": "replace", "path": "/b", "value": [False]},
    ]


KEYS = st.sampled_from(["a", "b", "~", "/", "~1", ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)


@given(OBJECTS, OBJECTS)
def test_a_patch_makes_the_one_of_the_other(before: Json, after: Json) -> None:
    made = jsonpatch.apply_patch(before, json_patch(before, after))
    assert msgspec.json.encode(made, order="deterministic") == msgspec.json.encode(after, order="deterministic")
