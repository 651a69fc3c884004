"""What a client learns before its first request."""

from __future__ import annotations

import orjson
import pytest

from kube_simulator.http.discovery import Discovery
from kube_simulator.http.routes import TextNotFound, parse
from kube_simulator.http.verbs import Answer
from kube_simulator.resources import Registry, Resource
from kube_simulator.schema import kubernetes
from kube_simulator.schema.node import Definitions
from kube_simulator.values import Json


def widgets(version: str = "v1") -> Resource:
    return Resource(
        "example.com",
        version,
        "widgets",
        "Widget",
        "widget",
        True,
        Definitions({}).node({"type": "object"}),
        short_names=("wid",),
        categories=("all",),
        subresources=frozenset({"scale", "status"}),
        custom=True,
    )


@pytest.fixture
def registry() -> Registry:
    found = Registry()
    for resource in kubernetes.builtin_resources():
        found.put(resource)
    found.put(widgets())
    return found


@pytest.fixture
def discovery(registry: Registry) -> Discovery:
    return Discovery(registry, lambda: "127.0.0.1:6443")


def get(discovery: Discovery, path: str, accept: str = "", method: str = "GET") -> Answer:
    return discovery.answer(parse(method, path), accept)


def read(discovery: Discovery, path: str, accept: str = "") -> Json:
    found: Json = orjson.loads(get(discovery, path, accept).body)
    return found


def test_of_several_versions_the_most_stable_and_newest_is_preferred(discovery: Discovery, registry: Registry) -> None:
    for version in ("v1alpha1", "v2", "v1beta2", "v10", "v1beta1", "other"):
        registry.put(widgets(version))
    versions = [each["version"] for each in read(discovery, "/apis/example.com")["versions"]]
    assert versions == ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "other"]


def test_what_is_served_anew_is_found_at_once(discovery: Discovery, registry: Registry) -> None:
    get(discovery, "/apis/example.com/v1")
    registry.remove("example.com", "widgets")
    with pytest.raises(TextNotFound):
        get(discovery, "/apis/example.com/v1")
    assert "example.com" not in str(read(discovery, "/apis"))


def test_openapi_v2_in_the_form_that_kubectl_asks_for_knows_no_kinds(discovery: Discovery) -> None:
    accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    found = get(discovery, "/openapi/v2", accept)
    assert (found.body, found.content_type) == (b"\n\x032.0", accept.replace("@", "."))
