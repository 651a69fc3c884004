"""ConfigMaps and Secrets."""

from __future__ import annotations

import base64

import pytest

from kube_simulator.resources import Resource
from kube_simulator.values import Json
from tests.unit.kube_simulator.kinds.kinds_support import an, created, problems, refused, resource, updated

MAPS, SECRETS = resource("configmaps"), resource("secrets")
FROZEN = "Forbidden: field is immutable when `immutable` is set"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_a_config_map_has_no_generation_and_no_empty_data() -> None:
    assert created(MAPS, an(MAPS, data={}, binaryData=None)) == an(MAPS)
    assert created(MAPS, an(MAPS, data={"a": ""}))["data"] == {"a": ""}


def test_the_keys_of_a_config_map_can_be_names_of_files() -> None:
    assert refused(MAPS, data={"a.b-c_D": ""}, binaryData={".x": encoded("x")}) == set()
    assert refused(MAPS, data={"..": "", "x": ""}, binaryData={"x": ""}) == {
        "data[..]: Invalid value: \"..\": must not be '..'",
        'data[x]: Invalid value: "x": duplicate of key present in binaryData',
    }
    [message] = refused(MAPS, binaryData={"a b": ""})
    assert message.startswith('binaryData[a b]: Invalid value: "a b": a valid config key must consist of')


@pytest.mark.parametrize(("kind", "field"), [(MAPS, "[]"), (SECRETS, "data")])
def test_a_mebibyte_is_the_limit(kind: Resource, field: str) -> None:
    key = "data" if kind is MAPS else "stringData"
    assert refused(kind, **{key: {"k": "x" * 2**20}}) == set()
    assert refused(kind, **{key: {"k": "x" * 2**20, "l": "y"}}) == {
        f"{field}: Too long: may not be more than 1048576 bytes"
    }
    if kind is MAPS:
        assert refused(MAPS, data={"a": "x" * 2**19}, binaryData={"b": encoded("x" * 2**19 + "y")})


def test_the_texts_of_a_secret_become_data() -> None:
    stored = created(SECRETS, an(SECRETS, data={"a": encoded("1"), "b": None}, stringData={"a": "2", "c": "3"}))
    assert stored["data"] == {"a": encoded("2"), "b": "", "c": encoded("3")}
    assert stored["type"] == "Opaque"
    assert "stringData" not in stored
    assert created(SECRETS, an(SECRETS, type="example.com/x")) == an(SECRETS, type="example.com/x")


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        ("kubernetes.io/tls", {"data[tls.crt]", "data[tls.key]"}),
        ("example.com/own", set()),
    ],
)
def test_secrets_of_kubernetes_own_types_have_their_keys(kind: str, missing: set[str]) -> None:
    assert refused(SECRETS, type=kind) == {f"{field}: Required value" for field in missing}


@pytest.mark.parametrize("kind", [MAPS, SECRETS], ids=["map", "secret"])
@pytest.mark.parametrize(
    ("change", "fields"),
    [({"data": {"a": "eg=="}}, {"data"}), ({"immutable": False}, {"immutable"}), ({"immutable": None}, {"immutable"})],
)
def test_what_is_immutable_stays_so(kind: Resource, change: Json, fields: set[str]) -> None:
    old = created(kind, an(kind, data={"a": "eA=="}, immutable=True))
    assert problems(kind, updated(kind, old, change), old) == {f"{field}: {FROZEN}" for field in fields}
    labelled = {"metadata": {**old["metadata"], "labels": {"a": "b"}}}
    assert problems(kind, updated(kind, old, labelled), old) == set()


def test_the_type_of_a_secret_does_not_change() -> None:
    old = created(SECRETS, an(SECRETS))
    assert problems(SECRETS, updated(SECRETS, old, {"type": "a/b"}), old) == {
        'type: Invalid value: "a/b": field is immutable'
    }
