"""Which form an answer takes, and how bodies are read."""

from __future__ import annotations

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.http import negotiation
from kube_simulator.http.negotiation import PLAIN, Representation

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", PLAIN),
        ("*/*", PLAIN),
        ("application/json", PLAIN),
        ("application/yaml", Representation(yaml=True)),
        ("application/vnd.kubernetes.protobuf,application/json", PLAIN),
        (f"{TABLE},application/json", Representation("table")),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io", Representation("table", "v1beta1")),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", PLAIN),
        (METADATA, Representation("metadata")),
        ("application/json;q=0.5,application/yaml;q=0.9", Representation(yaml=True)),
    ],
)
def test_the_best_form_that_is_spoken_is_taken(accept: str, expected: Representation) -> None:
    assert negotiation.representation(accept) == expected


def test_bodies_are_json_unless_they_say_yaml() -> None:
    for content_type in ("", "application/json", "Application/JSON; charset=utf-8"):
        assert negotiation.body_object(b'{"a": 1}', content_type, "Pod") == {"a": 1}
    body = b"day: 2026-01-01\non: yes\n2: [x]\n"
    assert negotiation.body_object(body, "application/yaml", "Pod") == {"day": "2026-01-01", "true": True, "2": ["x"]}


@pytest.mark.parametrize(
    "text", ["a: !!binary aGk=", "a: !!set {x}", "a: .inf", "a: .nan", "a: &b [*b]", "a: &b 1\nc: *b"]
)
def test_yaml_that_json_has_nothing_for_is_refused(text: str) -> None:
    with pytest.raises(ApiError, match="error decoding YAML") as refused:
        negotiation.body_object(text.encode(), "application/yaml", "Pod")
    assert refused.value.code == 400


def test_answers_are_json_of_one_line_unless_asked_otherwise() -> None:
    document = {"kind": "Pod", "items": [1]}
    assert negotiation.encoded(document, PLAIN, {}) == b'{"kind":"Pod","items":[1]}\n'
    assert negotiation.encoded(document, PLAIN, {"pretty": "true"}).startswith(b'{\n  "kind": "Pod"')
    shared = {"a": 1}
    in_yaml = negotiation.encoded({"x": shared, "y": shared}, Representation(yaml=True), {})
    assert in_yaml == b"x:\n  a: 1\ny:\n  a: 1\n"
