"""Which form an answer takes, and which bodies are read."""

from __future__ import annotations

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.http import negotiation

JSON, TABLE = "application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    "accept", ["", "*/*", JSON, f"application/vnd.kubernetes.protobuf,{JSON}", f"{METADATA},{JSON}"]
)
def test_objects_are_json(accept: str) -> None:
    assert not negotiation.wants_table(accept)


def test_a_table_can_be_had_but_in_a_watch() -> None:
    assert negotiation.wants_table(f"{TABLE},{JSON}")
    assert not negotiation.wants_table(f"{TABLE},{JSON}", tables=False)


@pytest.mark.parametrize("accept", ["application/yaml", METADATA, "application/vnd.kubernetes.protobuf", "text/html"])
def test_what_is_not_spoken_is_406(accept: str) -> None:
    with pytest.raises(ApiError) as refused:
        negotiation.wants_table(accept)
    assert refused.value.code == 406


@pytest.mark.parametrize("content_type", ["application/yaml", "application/vnd.kubernetes.protobuf"])
def test_bodies_are_json_alone(content_type: str) -> None:
    assert negotiation.body_object(b'{"a": 1}', "Application/JSON; charset=utf-8") == {"a": 1}
    with pytest.raises(ApiError) as refused:
        negotiation.body_object(b"a: 1", content_type)
    assert refused.value.code == 415
