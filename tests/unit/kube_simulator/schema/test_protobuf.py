"""What bodies in protobuf are read into, and which are refused; the words are those of a real API server."""

import base64
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.schema import kubernetes, protobuf
from kube_simulator.values import Json
from tests.unit.kube_simulator.schema.protobuf_messages import EXTENSIONS, Chance, body, encoded, message, number, part

SENT = json.loads(Path(__file__).with_name("kubectl_bodies.json").read_bytes())
"""What kubectl sent, and for the same command what it says itself that it sends (--dry-run=client -o json)."""

NO_PREFIX = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
NAMED = part(1, part(1, "x"))
"""The metadata of an object that is named x."""


def read(api_version: str, kind: str, raw: bytes) -> Any:
    return protobuf.decode(body(api_version, kind, raw), kind)


def metadata(raw: bytes) -> Any:
    return read("v1", "ServiceAccount", part(1, raw))["metadata"]


def status(raw: bytes) -> Any:
    return read("apps/v1", "Deployment", part(3, raw))["status"]


def schema(raw: bytes) -> Any:
    """A JSONSchemaProps, as it stands in a CRD."""
    version = part(1, "v1") + number(2, 1) + number(3, 1) + part(4, part(1, raw))
    crd = read("apiextensions.k8s.io/v1", "CustomResourceDefinition", part(2, part(1, "g") + part(7, version)))
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def refusal(sent: bytes, expected: str = "Namespace") -> str:
    with pytest.raises(ApiError) as refused:
        protobuf.decode(sent, expected)
    assert (refused.value.code, refused.value.reason) == (400, "BadRequest")
    return str(refused.value)


@pytest.mark.parametrize("sent", SENT, ids=[each["command"] for each in SENT])
def test_what_kubectl_sends_is_the_object_that_it_shows(sent: Json) -> None:
    decoded = protobuf.decode(base64.b64decode(sent["body"]))
    assert decoded == sent["object"]
    assert protobuf.decode(encoded(decoded)) == decoded, "the tests' own encoder"


def test_every_kind_that_is_served_can_be_sent() -> None:
    served = {(each.api_version, each.kind) for each in kubernetes.builtin_resources()}
    served |= {("v1", "DeleteOptions"), ("authentication.k8s.io/v1", "TokenRequest"), ("autoscaling/v1", "Scale")}
    served.add(("policy/v1", "Eviction"))
    assert set(protobuf.kinds()) == {f"{api_version}/{kind}" for api_version, kind in served}


def field_names(name: str) -> set[str]:
    """As they are in JSON."""
    names: set[str] = set()
    for field in protobuf.messages()[name].fields:
        names |= {field.name} if field.name else field_names(field.type)
    return names


def test_the_names_of_fields_are_those_of_the_schemas() -> None:
    """Two descriptions of Kubernetes, from its types and from its server, must not differ."""
    compared = 0
    for name in protobuf.messages():
        package, _, kind = name.replace("k8s.io/", "io.k8s.").replace("/", ".").rpartition(".")
        schema = kubernetes.schemas().get(f"{package}.{kind}", {})
        if properties := schema.get("properties"):
            of_kind = {"apiVersion", "kind"} if "x-kubernetes-group-version-kind" in schema else set()
            assert field_names(name) | of_kind == set(properties), name
            compared += 1
    assert compared > 200


def test_an_object_is_what_it_was_after_a_way_through_protobuf() -> None:
    seen: set[str] = set()
    for kind in sorted(protobuf.kinds()):
        api_version, _, name = kind.rpartition("/")
        for seed in range(30):
            chance = Chance(f"{kind} {seed}")
            made = chance.object(api_version, name)
            assert protobuf.decode(encoded(made), name) == made, f"{kind}, seed {seed}"
            seen |= chance.seen
    assert seen == set(protobuf.messages()), "chance needs more seeds to come upon these"


def test_what_is_embedded_in_go_stands_beside_the_other_fields() -> None:
    probe = part(1, part(2, part(1, "/healthz") + part(2, number(1, 1) + part(3, "http")))) + number(2, 5)
    pod = read("v1", "Pod", part(2, part(2, part(1, "c") + part(10, probe)) + part(1, part(1, "v"))))
    container, volume = pod["spec"]["containers"][0], pod["spec"]["volumes"][0]
    assert container["livenessProbe"] == {"httpGet": {"path": "/healthz", "port": "http"}, "initialDelaySeconds": 5}
    assert volume == {"name": "v"}


def test_a_list_that_is_a_message_of_its_own_is_a_list() -> None:
    user = part(1, "u") + part(4, part(1, "k") + part(2, part(1, "a") + part(1, "b"))) + part(4, part(1, "none"))
    review = read("authentication.k8s.io/v1", "TokenReview", part(3, part(2, user)))
    assert review["status"]["user"] == {"username": "u", "extra": {"k": ["a", "b"], "none": None}}


def test_zero_is_told_from_nothing_where_go_has_a_pointer() -> None:
    assert read("apps/v1", "Deployment", part(2, number(1, 0)))["spec"]["replicas"] == 0
    assert "replicas" not in read("apps/v1", "Deployment", part(2, number(5, 7)))["spec"]
    assert read("v1", "ServiceAccount", number(4, 0))["automountServiceAccountToken"] is False


def test_what_go_never_leaves_out_is_there_when_it_was_not_sent() -> None:
    assert read("rbac.authorization.k8s.io/v1", "Role", NAMED)["rules"] is None
    assert read("v1", "Namespace", b"") == {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {},
        "spec": {},
        "status": {},
    }
    reference = read("v1", "Event", part(2, b""))["involvedObject"]
    assert reference == {}


def test_bytes_are_base64_and_may_be_empty() -> None:
    entries = [
        part(2, part(1, "a") + part(2, b"\x00\xff")),
        part(2, part(1, "b") + part(2, b"")),
        part(2, part(1, "c")),
    ]
    assert read("v1", "Secret", b"".join(entries))["data"] == {"a": "AP8=", "b": "", "c": ""}


def test_entries_of_a_map_are_sorted_and_the_last_of_a_key_counts() -> None:
    entries = [("b", "1"), ("a", "2"), ("b", "3")]
    labels = metadata(b"".join(part(11, part(1, key) + part(2, value)) for key, value in entries))["labels"]
    assert list(labels.items()) == [("a", "2"), ("b", "3")]
    assert metadata(part(11, part(2, "value")))["labels"] == {"": "value"}
    assert metadata(part(11, part(1, "key")))["labels"] == {"key": ""}


def test_of_a_field_that_is_sent_twice_the_last_counts_and_messages_are_merged() -> None:
    assert metadata(part(1, "first") + part(1, "last"))["name"] == "last"
    twice = part(1, part(1, "x") + part(3, "ns")) + part(1, part(1, "y"))
    assert read("v1", "ServiceAccount", twice)["metadata"] == {"name": "y", "namespace": "ns"}


def test_integers_have_a_sign_and_their_own_width() -> None:
    assert status(number(1, -1))["observedGeneration"] == -1
    assert status(number(2, -1))["replicas"] == -1
    assert status(number(2, 2**32 + 5))["replicas"] == 5
    assert status(number(2, 2**31))["replicas"] == -(2**31)


def test_numbers_of_a_list_may_come_one_by_one_or_packed() -> None:
    one_by_one = number(4, 5) + number(4, 1 << 20)
    packed = part(4, b"\x05\x80\x80\x40")
    for groups in (one_by_one, packed):
        pod = read("v1", "Pod", part(2, part(14, groups)))
        assert pod["spec"]["securityContext"]["supplementalGroups"] == [5, 1 << 20]


def test_a_field_that_is_not_known_is_passed_over() -> None:
    group = number(99, 1).replace(b"\x98", b"\x9b", 1)[:2] + number(1, 7) + b"\x9c\x06"
    for unknown in (number(99, 1), part(99, "x"), b"\x99\x06" + bytes(8), b"\x9d\x06" + bytes(4), group):
        assert metadata(unknown + part(1, "x")) == {"name": "x"}


@pytest.mark.parametrize(
    ("raw", "time"),
    [
        (number(1, 0) + number(2, 0), "1970-01-01T00:00:00Z"),
        (number(1, 1767323045) + number(2, 999_999_999), "2026-01-02T03:04:05Z"),
        (number(1, -1), "1969-12-31T23:59:59Z"),
        (b"", None),
        (number(1, -62135596800), None),
    ],
)
def test_times_are_whole_seconds_of_utc_and_the_zero_of_go_is_null(raw: bytes, time: str | None) -> None:
    assert metadata(part(9, raw))["deletionTimestamp"] == time


def test_an_empty_time_that_go_leaves_out_is_left_out() -> None:
    assert metadata(part(8, b"")) == {}
    assert metadata(part(8, number(1, 60))) == {"creationTimestamp": "1970-01-01T00:01:00Z"}


def test_micro_times_have_six_digits() -> None:
    lease = read("coordination.k8s.io/v1", "Lease", part(2, part(3, number(1, 5) + number(2, 1_999)) + part(4, b"")))
    assert lease["spec"] == {"acquireTime": "1970-01-01T00:00:05.000001Z", "renewTime": None}


def test_a_time_that_no_calendar_has_is_refused() -> None:
    far = part(1, part(9, number(1, 1 << 60)))
    assert "year outside of range" in refusal(body("v1", "Namespace", far))


def test_integers_or_strings_are_what_they_say_they_are() -> None:
    def port(raw: bytes) -> Any:
        return read("v1", "Service", part(2, part(1, part(4, raw))))["spec"]["ports"][0]["targetPort"]

    assert port(number(1, 0) + number(2, 8080) + part(3, "")) == 8080
    assert port(number(1, 1) + number(2, 0) + part(3, "http")) == "http"
    assert port(b"") == 0


def test_quantities_are_strings_and_zero_where_there_is_none() -> None:
    def pods(raw: bytes) -> Any:
        limits = part(2, part(2, part(8, part(1, part(1, "pods") + raw))))
        return read("v1", "Pod", limits)["spec"]["containers"][0]["resources"]["limits"]["pods"]

    assert pods(part(2, part(1, "1500m"))) == "1500m"
    assert pods(b"") == pods(part(2, b"")) == "0"
    assert pods(part(2, part(1, ""))) == "", "which is refused later as no quantity"


def test_schemas_carry_json_and_stand_for_it() -> None:
    assert schema(part(8, part(1, '{"a": [1, null]}')))["default"] == {"a": [1, None]}
    assert schema(part(20, part(1, '"x"')) + part(20, part(1, "0")))["enum"] == ["x", 0]
    assert schema(part(8, b""))["default"] is None
    string = part(5, "string")
    assert schema(part(24, part(1, string)))["items"] == {"type": "string"}
    assert schema(part(24, part(2, string) + part(2, b"")))["items"] == [{"type": "string"}, {}]
    assert schema(part(30, number(1, 0)))["additionalProperties"] is False
    assert schema(part(30, number(1, 1)))["additionalProperties"] is True
    assert schema(part(30, number(1, 1) + part(2, string)))["additionalProperties"] == {"type": "string"}
    assert schema(part(32, part(1, "k") + part(2, part(2, "a"))))["dependencies"] == {"k": ["a"]}


def test_floats_without_a_fraction_are_written_as_integers() -> None:
    def maximum(value: float) -> Any:
        return schema(b"\x49" + struct.pack("<d", value))["maximum"]

    assert (repr(maximum(5.0)), repr(maximum(0.5))) == ("5", "0.5")
    with pytest.raises(ApiError, match="unsupported value: nan"):
        maximum(float("nan"))


def test_json_that_is_none_is_refused() -> None:
    with pytest.raises(ApiError, match=r"cannot be handled as a CustomResourceDefinition: json: error calling Marshal"):
        schema(part(8, part(1, "{oo")))


def test_text_that_is_no_utf_8_is_mended_as_go_does() -> None:
    assert metadata(part(1, b"a\xff\xfeb"))["name"] == "a\ufffd\ufffdb"


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


@pytest.mark.parametrize("named", [("", ""), ("v1", ""), ("", "ConfigMap")])
def test_what_a_body_does_not_say_of_itself_is_what_is_expected(named: tuple[str, str]) -> None:
    sent = body(*named, part(1, part(1, "a")))
    identity = {"apiVersion": "v1", "kind": "ConfigMap"}
    assert protobuf.decode(sent, "ConfigMap", "v1") == {**identity, "metadata": {"name": "a"}}


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"", "empty data (<empty>)"),
        (
            b"hello",
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (68656c6c6f)",
        ),
        (
            b'{"a":1}',
            'provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] ({"a":1})',
        ),
        (b"k8s\x00", "empty body (6b387300)"),
        (b"k8s\x00\x0a", "unexpected EOF (6b3873000a)"),
        (b"k8s\x00\x08\x01", "proto: wrong wireType = 0 for field TypeMeta (6b3873000801)"),
        (b"k8s\x00\x0a" + b"\x00" * 40, f"proto: Unknown: illegal tag 0 (wire type 0) (6b3873000a{'00' * 25} ...)"),
    ],
)
def test_a_body_that_is_none_is_refused_and_shown(sent: bytes, words: str) -> None:
    assert refusal(sent) == f"the object provided is unrecognized (must be of type Namespace): {words}"


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"\x08\x01", "proto: wrong wireType = 0 for field ObjectMeta"),
        (b"\x0a\x05ab", "unexpected EOF"),
        (b"\x0c", "proto: Namespace: wiretype end group for non-group"),
        (b"\x02\x00", "proto: Namespace: illegal tag 0 (wire type 2)"),
        (b"\x7f\x00", "proto: illegal wireType 7"),
        (b"\x0a" + b"\xff" * 9 + b"\x01", "proto: negative length found during unmarshaling"),
        (b"\x0a" + b"\xff" * 11, "proto: integer overflow"),
        (part(1, b"\x08\x01"), "proto: wrong wireType = 0 for field Name"),
    ],
)
def test_a_malformed_message_is_refused_with_what_is_wrong(raw: bytes, words: str) -> None:
    said = refusal(body("v1", "Namespace", raw))
    assert said == f'Namespace in version "v1" cannot be handled as a Namespace: {words}'


def test_an_object_of_another_kind_is_read_as_what_it_is() -> None:
    assert protobuf.decode(body("v1", "Pod", NAMED), "Namespace")["kind"] == "Pod"


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("cache.example.com/v1alpha1", "Memcached"),
        ("v2", "Pod"),
        ("", ""),
    ],
)
def test_a_kind_that_is_not_served_is_not_implemented(api_version: str, kind: str) -> None:
    with pytest.raises(ApiError, match=f"read {kind}.* in protobuf") as refused:
        read(api_version, kind, NAMED)
    assert refused.value.code == 501


def test_the_options_of_a_deletion_come_in_any_group() -> None:
    raw = number(1, 5) + part(2, part(1, "u")) + part(4, "Foreground") + part(5, "All")
    for api_version in ("v1", "apps/v1", "cache.example.com/v1alpha1"):
        assert read(api_version, "DeleteOptions", raw) == {
            "kind": "DeleteOptions",
            "apiVersion": api_version,
            "gracePeriodSeconds": 5,
            "preconditions": {"uid": "u"},
            "propagationPolicy": "Foreground",
            "dryRun": ["All"],
        }


def test_malformed_options_of_a_deletion_are_refused_without_further_words() -> None:
    assert refusal(b"hello", "DeleteOptions") == NO_PREFIX
    malformed = body("v1", "DeleteOptions", b"\x0a\x01\x00")
    assert refusal(malformed, "DeleteOptions") == "proto: wrong wireType = 2 for field GracePeriodSeconds"


def test_the_messages_of_the_schema_language_know_each_other() -> None:
    raw = message(f"{EXTENSIONS}JSONSchemaProps", {"type": "object", "properties": {"a": {"$ref": "x"}}})
    assert schema(raw) == {"type": "object", "properties": {"a": {"$ref": "x"}}}
