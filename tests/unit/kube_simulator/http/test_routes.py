"""What a method and a path ask for."""

from __future__ import annotations

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.http.routes import parse, target
from kube_simulator.requests.types import Target
from kube_simulator.resources import Registry, Resource
from kube_simulator.schema.node import Definitions


def resource(group: str, plural: str, *, namespaced: bool = True, **more: object) -> Resource:
    schema = Definitions({}).node({"type": "object"})
    return Resource(group, "v1", plural, plural.title(), plural, namespaced, schema, **more)  # type: ignore[arg-type]


PODS = resource("", "pods", subresources=frozenset({"status"}))
NAMESPACES = resource("", "namespaces", namespaced=False, subresources=frozenset({"status", "finalize"}))
DEPLOYMENTS = resource("apps", "deployments", subresources=frozenset({"status", "scale"}))
REVIEWS = resource("authentication.k8s.io", "tokenreviews", namespaced=False, verbs=frozenset({"create"}))
WIDGETS = resource("example.com", "widgets", custom=True, subresources=frozenset({"status"}))
FACTORIES = resource("example.com", "factories", custom=True, namespaced=False)


@pytest.fixture
def registry() -> Registry:
    found = Registry()
    for each in (PODS, NAMESPACES, DEPLOYMENTS, REVIEWS, WIDGETS, FACTORIES):
        found.put(each)
    return found


def resolved(registry: Registry, method: str, path: str) -> Target:
    return target(parse(method, path), registry)


@pytest.mark.parametrize(
    ("method", "path", "verb", "parts"),
    [
        ("GET", "/api/v1/pods", "list", ("", "v1", "pods", "", "", "")),
        ("GET", "/api/v1/pods?watch=1", "watch", ("", "v1", "pods", "", "", "")),
        ("GET", "/api/v1/namespaces/a/pods?watch=False", "list", ("", "v1", "pods", "a", "", "")),
        ("GET", "/api/v1/namespaces/a/pods/p?watch=1", "get", ("", "v1", "pods", "a", "p", "")),
        ("POST", "/api/v1/namespaces/a/pods/", "create", ("", "v1", "pods", "a", "", "")),
        ("DELETE", "/api/v1/namespaces/a/pods", "deletecollection", ("", "v1", "pods", "a", "", "")),
        ("DELETE", "/api/v1/namespaces/a/pods/p", "delete", ("", "v1", "pods", "a", "p", "")),
        ("GET", "/api/v1/namespaces", "list", ("", "v1", "namespaces", "", "", "")),
        ("PUT", "/api/v1/namespaces/a/finalize", "update", ("", "v1", "namespaces", "a", "a", "finalize")),
        ("PATCH", "/apis/apps/v1/namespaces/a/deployments/d/scale", "patch",
         ("apps", "v1", "deployments", "a", "d", "scale")),
        ("PATCH", "/apis/apps/v1/namespaces/a/config%6daps/d", "patch", ("apps", "v1", "configmaps", "a", "d", "")),
    ],
)  # fmt: skip
def test_a_path_says_what_is_asked_for(method: str, path: str, verb: str, parts: tuple[str, ...]) -> None:
    route = parse(method, path)
    found = (route.group, route.version, route.resource, route.namespace, route.name, route.subresource)
    assert (route.verb, found) == (verb, parts)


def test_the_only_selected_name_counts_for_authorization() -> None:
    path = "/api/v1/namespaces/a/pods?fieldSelector="
    assert parse("GET", f"{path}metadata.name%3Dp").attributes.name == "p"
    assert parse("GET", f"{path}metadata.name%3D%3Dp&watch=1").attributes.name == "p"
    for several in ("metadata.name!%3Dp", "metadata.name%3Dp,status.phase%3DRunning"):
        assert parse("GET", path + several).attributes.name == ""
    assert parse("GET", "/api/v1/namespaces/a/pods/q?fieldSelector=metadata.name%3Dp").attributes.name == "q"


def refusal(registry: Registry, method: str, path: str) -> tuple[int, str]:
    with pytest.raises(ApiError) as refused:
        resolved(registry, method, path)
    return refused.value.code, refused.value.reason


def test_what_kubernetes_has_and_the_simulator_has_not_is_501_with_its_name(registry: Registry) -> None:
    with pytest.raises(ApiError, match=r"horizontalpodautoscalers of autoscaling/v2 are not served") as refused:
        resolved(registry, "GET", "/apis/autoscaling/v2/horizontalpodautoscalers")
    assert refused.value.code == 501
    of_a_pod = "/api/v1/namespaces/shop/pods/web-1"
    assert refusal(registry, "GET", f"{of_a_pod}/exec") == (501, "NotImplemented")
    assert refusal(registry, "GET", f"{of_a_pod}/nothing") == (404, "NotFound")
