from __future__ import annotations

import json
from typing import Any

import pytest

from memcached_operator.api.complaints import InvalidSpec
from memcached_operator.api.names import USER_ID
from memcached_operator.api.reading import read_spec
from memcached_operator.core.objects.labels import MemcachedOwner
from memcached_operator.core.objects.workload import desired_workload
from memcached_operator.render.rendering import UNKNOWN_UID, Rendered, RenderOptions, render
from memcached_operator.render.unknown_fields import unknown_fields
from memcached_operator.settings import Settings

DEFAULT_IMAGE = "memcached:of-the-operator"


def memcached(spec: object = None, **metadata: object) -> dict[str, Any]:
    body: dict[str, Any] = {"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached"}
    body["metadata"] = {"name": "example", **metadata}
    return body if spec is None else {**body, "spec": spec}


def rendered(content: dict[str, Any]) -> Rendered:
    settings = Settings(memcached_image=DEFAULT_IMAGE, memcached_user_id=USER_ID)
    return render(content, RenderOptions((), "default", settings))


def desired(
    size: int, image: str = DEFAULT_IMAGE, *, namespace: str = "default", uid: str = UNKNOWN_UID, restart: str = ""
) -> object:
    return desired_workload(
        "Deployment", MemcachedOwner("example", namespace, uid), size, image, restart=restart
    ).body()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (memcached({"size": 3}), desired(3)),
        (memcached(), desired(1)),
        (memcached({"size": None, "image": None}), desired(1)),
        (memcached({"size": 2, "image": "memcached:1.6"}), desired(2, "memcached:1.6")),
        (memcached({"size": 2}, namespace="shop"), desired(2, namespace="shop")),
        (memcached({"size": 2}, uid="1-2-3"), desired(2, uid="1-2-3")),
        (memcached({"size": 2}, annotations={"cache.example.com/restart": "now"}), desired(2, restart="now")),
    ],
)
def test_it_is_what_the_operator_wants_of_that_memcached(content: dict[str, Any], expected: object) -> None:
    found = rendered(content)
    deployment, service, *budget = found.manifests
    assert deployment == expected
    assert service["kind"] == "Service"
    assert len(budget) == (deployment["spec"]["replicas"] > 1)
    assert found.warnings == ()


def test_whether_the_uid_is_known_is_told() -> None:
    assert not rendered(memcached()).uid_known
    assert rendered(memcached(uid="1-2-3")).uid_known
    assert rendered(memcached(namespace="shop")).name == "shop/example"
    assert rendered(memcached(namespace="")).name == "default/example"


@pytest.mark.parametrize(
    "spec", [{"size": -1}, {"size": "3"}, {"size": 2.5}, {"size": True}, {"image": ""}, {"image": "a b"}, 3, "x", [1]]
)
def test_a_wrong_specification_is_told_in_the_words_of_the_condition(spec: object) -> None:
    with pytest.raises(InvalidSpec) as by_operator:
        read_spec(json.dumps(spec).encode())
    with pytest.raises(InvalidSpec) as raised:
        rendered(memcached(spec))
    assert str(raised.value) == str(by_operator.value)
    assert str(raised.value).startswith("spec")


@pytest.mark.parametrize("name", [None, "", 5, "Example", "x" * 53, "x\n"])
def test_a_wrong_name_is_told(name: object) -> None:
    with pytest.raises(InvalidSpec) as raised:
        rendered(memcached(name=name))
    assert str(raised.value).startswith("metadata.name: must be 1 to 52 lower-case letters")
    assert str(raised.value).endswith(f"got {json.dumps(name)}")


LABEL = r"must be at most 63 lower-case letters, digits and '-', not at the ends, got "


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (memcached(namespace=5), "metadata.namespace: must be a string, got 5"),
        (memcached(uid=5), "metadata.uid: must be a string, got 5"),
        *((memcached(namespace=each), f'metadata.namespace: {LABEL}"{each}"') for each in ("Bad NS!", "-a", "x" * 64)),
        ({"kind": "Memcached"}, "metadata.name: must be"),
    ],
)
def test_other_wrong_metadata_is_told(content: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidSpec) as raised:
        rendered(content)
    assert str(raised.value).startswith(words)


@pytest.mark.parametrize(
    ("content", "fields"),
    [
        (memcached({"sise": 3}), {"spec.sise": "spec.size"}),
        (memcached({"port": 3}), {"spec.port": ""}),
        (memcached(lables={}), {"metadata.lables": "metadata.labels"}),
        ({**memcached(), "spce": {}}, {"spce": "spec"}),
        ({**memcached(), "status": {"conditions": [{"type": "A", "since": 1}]}}, {"status.conditions[0].since": ""}),
        (memcached({"size": 3}, labels={"anything": "goes"}, annotations={"a": "b"}), {}),
        (memcached("text"), {}),
    ],
)
def test_each_unknown_field_is_warned_of_with_the_nearest_one(content: dict[str, Any], fields: dict[str, str]) -> None:
    assert list(unknown_fields(content)) == [
        f"unknown field {field}: it has no effect, and kubectl refuses it" + (f"; did you mean {near}?" if near else "")
        for field, near in fields.items()
    ]
