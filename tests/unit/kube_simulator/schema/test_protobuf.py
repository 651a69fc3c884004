"""What bodies in protobuf are read into, and which are refused."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.schema import kubernetes, protobuf
from kube_simulator.values import Json

SENT = json.loads(Path(__file__).with_name("kubectl_bodies.json").read_bytes())
"""What kubectl sent, and for the same command what it says itself that it sends (--dry-run=client -o json)."""


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def number(field: int, value: int) -> bytes:
    """A field that is a varint."""
    return varint(field << 3) + varint(value)


def part(field: int, value: bytes | str) -> bytes:
    """A field that has a length: a string, bytes or a message."""
    content = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(content)) + content


def body(api_version: str, kind: str, message: bytes) -> bytes:
    """What is sent for an object whose own message this is."""
    return protobuf.PREFIX + part(1, part(1, api_version) + part(2, kind)) + part(2, message)


def read(api_version: str, kind: str, raw: bytes) -> Any:
    return protobuf.decode(body(api_version, kind, raw), kind)


def metadata(raw: bytes) -> Any:
    return read("v1", "ServiceAccount", part(1, raw))["metadata"]


def schema(raw: bytes) -> Any:
    """A JSONSchemaProps, as it stands in a CRD."""
    version = part(1, "v1") + number(2, 1) + number(3, 1) + part(4, part(1, raw))
    crd = read("apiextensions.k8s.io/v1", "CustomResourceDefinition", part(2, part(1, "g") + part(7, version)))
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


@pytest.mark.parametrize("sent", SENT, ids=[each["command"] for each in SENT])
def test_what_kubectl_sends_is_the_object_that_it_shows(sent: Json) -> None:
    assert protobuf.decode(base64.b64decode(sent["body"])) == sent["object"]


def test_every_kind_that_is_served_can_be_sent() -> None:
    served = {(each.api_version, each.kind) for each in kubernetes.builtin_resources()}
    served |= {("v1", "DeleteOptions"), ("authentication.k8s.io/v1", "TokenRequest"), ("autoscaling/v1", "Scale")}
    served.add(("policy/v1", "Eviction"))
    assert set(protobuf.kinds()) == {f"{api_version}/{kind}" for api_version, kind in served}


def test_of_a_field_that_is_sent_twice_the_last_counts_and_messages_are_merged() -> None:
    assert metadata(part(1, "first") + part(1, "last"))["name"] == "last"
    twice = part(1, part(1, "x") + part(3, "ns")) + part(1, part(1, "y"))
    assert read("v1", "ServiceAccount", twice)["metadata"] == {"name": "y", "namespace": "ns"}


def test_integers_have_a_sign_and_their_own_width() -> None:
    def replicas(value: int) -> Any:
        return read("apps/v1", "Deployment", part(3, number(2, value)))["status"]["replicas"]

    assert [replicas(value) for value in (-1, 2**32 + 5, 2**31)] == [-1, 5, -(2**31)]


def test_a_field_that_is_not_known_is_passed_over() -> None:
    group = b"\x9b\x06" + number(1, 7) + b"\x9c\x06"
    for unknown in (number(99, 1), part(99, "x"), b"\x99\x06" + bytes(8), b"\x9d\x06" + bytes(4), group):
        assert metadata(unknown + part(1, "x")) == {"name": "x"}


@pytest.mark.parametrize(
    ("raw", "time"),
    [
        (number(1, 1767323045) + number(2, 999_999_999), "2026-01-02T03:04:05Z"),
        (number(1, -1), "1969-12-31T23:59:59Z"),
        (b"", None),
        (number(1, -62135596800), None),
    ],
)
def test_times_are_whole_seconds_of_utc_and_the_zero_of_go_is_null(raw: bytes, time: str | None) -> None:
    assert metadata(part(9, raw))["deletionTimestamp"] == time


def test_schemas_may_be_nested_and_not_without_end() -> None:
    def nested(levels: int) -> bytes:
        raw = b""
        for _ in range(levels):
            raw = part(28, raw)
        return raw

    found = schema(nested(100))
    for _ in range(100):
        found = found["not"]
    assert found == {}
    with pytest.raises(ApiError, match="exceeded max depth") as refused:
        schema(nested(5000))
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"", "empty data"),
        (b"hello", "does not appear to be a protobuf message"),
        (b"k8s\x00", "empty body"),
        (b"k8s\x00\x08\x01", "proto: wrong wireType = 0 for field TypeMeta"),
        *(
            (body("v1", "Namespace", raw), words)
            for raw, words in (
                (b"\x0a\x05ab", "unexpected EOF"),
                (b"\x0c", "proto: Namespace: wiretype end group for non-group"),
                (b"\x0a" + b"\xff" * 11, "proto: integer overflow"),
                (part(1, part(9, number(1, 1 << 60))), "year outside of range"),
            )
        ),
    ],
)
def test_a_malformed_body_is_400_with_what_is_wrong(sent: bytes, words: str) -> None:
    with pytest.raises(ApiError) as refused:
        protobuf.decode(sent, "Namespace")
    assert (refused.value.code, refused.value.reason) == (400, "BadRequest")
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("api_version", "kind"), [("cache.example.com/v1alpha1", "Memcached"), ("v2", "Pod"), ("", "")]
)
def test_a_kind_that_is_not_served_is_not_implemented(api_version: str, kind: str) -> None:
    with pytest.raises(ApiError, match=f"read {kind}.* in protobuf") as refused:
        read(api_version, kind, b"")
    assert refused.value.code == 501


def test_the_options_of_a_deletion_come_in_any_group() -> None:
    raw = number(1, 5) + part(2, part(1, "u")) + part(4, "Foreground") + part(5, "All")
    options = {"gracePeriodSeconds": 5, "preconditions": {"uid": "u"}, "propagationPolicy": "Foreground"}
    for api_version in ("v1", "apps/v1", "cache.example.com/v1alpha1"):
        found = read(api_version, "DeleteOptions", raw)
        assert found == {"kind": "DeleteOptions", "apiVersion": api_version, **options, "dryRun": ["All"]}
