"""Whether an answer is to what was asked: by kind, namespace, name and uid, however the server writes it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from operator_runtime.client.errors import MalformedAnswer
from operator_runtime.client.resources import DEPLOYMENTS, NODES, PODS, SCALES, Resource
from operator_runtime.client.response_identity import ExpectedList, ExpectedObject, ExpectedReview

SHOPS = Resource("example.com", "v1", "shops", "Shop")
SHOP = ExpectedObject(DEPLOYMENTS, "bank", "shop")


def body(kind: str = "Deployment", version: str = "apps/v1", **metadata: Any) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": version, "metadata": metadata}


EXPECTED = body(name="shop", namespace="bank", uid="u")


def written(answer: object) -> list[bytes]:
    """As the API server writes Kubernetes' own kinds, as it writes others, and with white space."""
    dense = (",", ":")
    return [
        json.dumps(answer, separators=dense).encode(),
        json.dumps(answer, separators=dense, sort_keys=True).encode(),
        json.dumps(answer, indent=2).encode(),
    ]


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        (SHOP, EXPECTED),
        (SHOP._replace(uid="u"), EXPECTED),
        (SHOP, body(name="shop", generateName="sh", namespace="bank", uid="u", labels={"kind": "Pod"})),
        (ExpectedObject(DEPLOYMENTS, "bank", ""), EXPECTED),
        (ExpectedObject(NODES, "", "node"), body("Node", "v1", name="node", uid="u")),
        (ExpectedObject(NODES, "ignored", "node"), body("Node", "v1", name="node", uid="u")),
        (ExpectedObject(SCALES, "bank", "shop"), body("Scale", "autoscaling/v1", name="shop", namespace="bank")),
        (ExpectedObject(SHOPS, "bank", "shop"), body("Shop", "example.com/v1", name="shop", namespace="bank")),
        (SHOP._replace(or_status=True, uid="u"), EXPECTED),
        (SHOP._replace(or_status=True), {"kind": "Status", "apiVersion": "v1", "status": "Success"}),
        (SHOP._replace(or_status=True, uid="u"), {"kind": "Status", "details": {"name": "shop", "uid": "u"}}),
    ],
)
def test_what_was_asked_for_is_believed(expected: ExpectedObject, answer: object) -> None:
    for text in written(answer):
        expected.check(text)


@pytest.mark.parametrize(
    ("expected", "answer", "came"),
    [
        (SHOP, body(name="shoe", namespace="bank", uid="u"), "Deployment bank/shoe of uid u"),
        (SHOP, body(name="sho", namespace="bank"), "Deployment bank/sho"),
        (SHOP, body(name="shop", namespace="post", uid="u"), "Deployment post/shop of uid u"),
        (SHOP, body("StatefulSet", name="shop", namespace="bank"), "StatefulSet bank/shop"),
        (SHOP, body("Deployment", "shops.example.com/v1", name="shop", namespace="bank"), "Deployment bank/shop"),
        (SHOP, body("DeploymentList", resourceVersion="1"), "DeploymentList"),
        (SHOP, {"kind": "Status", "apiVersion": "v1", "status": "Success"}, "Status"),
        (SHOP, body(namespace="bank"), "Deployment bank"),
        (SHOP, {"status": "ok"}, "an object of no kind"),
        (SHOP, {"metadata": 1}, "something that is not an API object"),
        (ExpectedObject(DEPLOYMENTS, "bank", ""), body(name="a", namespace="post"), "Deployment post/a"),
        (ExpectedObject(NODES, "", "node"), body("Node", "v1", name="edge"), "Node edge"),
        (SHOP._replace(or_status=True), {"kind": "Status", "details": {"name": "shoe", "uid": "u"}}, "Status"),
    ],
)
def test_what_is_of_something_else_is_not_believed_and_named(
    expected: ExpectedObject, answer: object, came: str
) -> None:
    for text in written(answer):
        with pytest.raises(MalformedAnswer) as caught:
            expected.check(text)
        assert str(caught.value) == f"requested {expected}, received {came}"


@pytest.mark.parametrize("answer", [EXPECTED, {"kind": "Status", "details": {"name": "shop", "uid": "u"}}])
def test_a_successor_of_the_same_name_is_another_object(answer: object) -> None:
    expected = SHOP._replace(uid="before", or_status=True)
    for text in written(answer):
        with pytest.raises(MalformedAnswer, match=r"^requested Deployment bank/shop of uid before, received "):
            expected.check(text)


def listed(kind: str, version: str, *items: str, **more: Any) -> dict[str, Any]:
    found = [{"kind": each} if each else {} for each in items]
    return {"kind": kind, "apiVersion": version, "metadata": {"resourceVersion": "1"}, "items": found, **more}


@pytest.mark.parametrize(
    ("resource", "answer"),
    [
        (PODS, listed("PodList", "v1")),
        (PODS, listed("PodList", "v1", "", "")),
        (SHOPS, listed("ShopList", "example.com/v1", "Shop")),
        (SHOPS, listed("Shopping", "example.com/v1", "Shop", "Shop")),
        (SHOPS, listed("Shopping", "example.com/v1")),
    ],
)
def test_a_list_of_the_kind_is_believed_also_one_that_its_definition_names_otherwise(
    resource: Resource, answer: object
) -> None:
    for text in written(answer):
        ExpectedList(resource).check(text)


@pytest.mark.parametrize(
    ("resource", "answer"),
    [
        (PODS, listed("ServiceList", "v1")),
        (PODS, listed("PodList", "metrics.k8s.io/v1beta1")),
        (PODS, listed("SecretList", "v1") | {"metadata": {"name": None, "uid": 7}, "details": 3}),
        (PODS, body("Pod", "v1", name="a", namespace="b", resourceVersion="1")),
        (SHOPS, body("Shop", "example.com/v1", name="a", namespace="b", resourceVersion="1")),
        (SHOPS, listed("FruitList", "example.com/v1", "Fruit")),
        (SHOPS, listed("ShopList", "example.com/v2", "Shop")),
        (PODS, {"metadata": {"resourceVersion": "1"}, "items": []}),
        (PODS, listed("SecretList", "v1") | {"items": [None]}),
        (SHOPS, listed("FruitList", "example.com/v1") | {"items": [{"kind": 7}]}),
    ],
)
def test_a_list_of_another_kind_and_what_is_none_are_not_believed(resource: Resource, answer: object) -> None:
    for text in written(answer):
        with pytest.raises(MalformedAnswer, match=f"^requested a list of {resource.qualified_name}, received "):
            ExpectedList(resource).check(text)


ACCESS: dict[str, Any] = {"user": "jane", "groups": [], "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}


@pytest.mark.parametrize("spec", [ACCESS, ACCESS | {"groups": None, "uid": ""}])
def test_a_review_that_repeats_the_question_is_believed(spec: object) -> None:
    for text in written({"kind": "SubjectAccessReview", "spec": spec, "status": {"allowed": True}}):
        ExpectedReview("SubjectAccessReview", ACCESS | {"uid": ""}).check(text)


@pytest.mark.parametrize(
    "answer",
    [
        {"kind": "SubjectAccessReview", "spec": ACCESS | {"user": "joe"}, "status": {"allowed": True}},
        {"kind": "SubjectAccessReview", "spec": ACCESS | {"nonResourceAttributes": {"path": "/", "verb": "get"}}},
        {"kind": "SubjectAccessReview", "status": {"allowed": True}},
        {"kind": "TokenReview", "spec": ACCESS, "status": {"authenticated": True}},
        {"spec": "jane"},
    ],
)
def test_a_review_of_another_question_is_not_believed_and_not_quoted(answer: object) -> None:
    for text in written(answer):
        with pytest.raises(MalformedAnswer, match=r"^requested a SubjectAccessReview, received ") as caught:
            ExpectedReview("SubjectAccessReview", ACCESS).check(text)
        assert "joe" not in str(caught.value)
