from __future__ import annotations

import json
import re
from typing import Any

import pytest

from memcached_operator.api.names import NAME_MAX_LENGTH, NAME_PATTERN, InvalidSpec
from memcached_operator.api.v1alpha1 import MemcachedSpec, validate_spec


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b'{"size": "3"}', '"3" (a string)'),
        (b'{"size": true}', "true (a boolean)"),
        (b'{"size": 3.0}', "3.0 (a number with a decimal point)"),
        (b'{"size": null}', "null"),
        (b'{"size": -1}', "-1"),
        (b'{"size": 2147483648}', "2147483648"),
    ],
)
def test_what_is_no_size_is_named_with_what_it_is_and_what_it_must_be(raw: bytes, shown: str) -> None:
    for given in (raw, json.loads(raw)):
        with pytest.raises(InvalidSpec) as caught:
            validate_spec(given)
        assert str(caught.value) == f"spec.size: must be a whole number from 0 to 2147483647, got {shown}"


@pytest.mark.parametrize("image", ["", " memcached", "mem cached", "memcached\n", "memcachéd", "a;b", "x" * 521, 5])
def test_what_is_no_image_reference_is_refused_with_an_example_of_one(image: object) -> None:
    with pytest.raises(InvalidSpec, match=r"^spec\.image: must be an image reference such as docker\.io/library/mem"):
        validate_spec({"image": image})


def test_a_long_wrong_value_is_cut_in_the_message() -> None:
    with pytest.raises(InvalidSpec) as caught:
        validate_spec({"size": "9" * 100_000})
    assert str(caught.value).endswith("999… (a string)")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("raw", "shown"), [(b"[]", "[] (a list)"), (b'"3"', '"3" (a string)'), (b"3", "3"), ([], "[] (a list)")]
)
def test_a_spec_that_is_no_object_is_refused(raw: Any, shown: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        validate_spec(raw)
    assert str(caught.value) == f'spec: must be an object such as {{"size": 3}}, got {shown}'


def test_unknown_fields_are_ignored_as_the_api_server_prunes_them() -> None:
    assert validate_spec(b'{"size": 2, "siez": "x"}') == MemcachedSpec(size=2)


FULL = b"""{
  "size": 3, "image": "memcached:1.6", "workload": "StatefulSet", "publish": "ConfigMap", "drainSeconds": 0,
  "service": {"type": "Headless", "annotations": {"a": "b"}, "labels": {"c": "d"}},
  "disruptionBudget": {"maxUnavailable": "25%"},
  "podTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"tolerations": [{"any": [1, null]}], "affinity": null,
    "securityContext": {}, "terminationGracePeriodSeconds": 9223372036854775807}},
  "networkPolicy": {"allowFrom": []},
  "memory": "1Gi", "maxConnections": 4096, "threads": 8, "maxItemSize": "2Mi", "extraArgs": ["-o", "idle_timeout=60"],
  "resources": {"requests": {"cpu": "1.5", "ephemeral-storage": 5}, "limits": {"memory": "2Gi"}},
  "rollout": {"pauseSeconds": 5, "paused": true}, "warmRestart": true, "handover": {"forSeconds": 60},
  "extstore": {"size": "100Gi", "itemSizeMin": 1024, "threads": 4,
    "volume": {"ephemeral": {"storageClassName": "local", "accessModes": ["ReadWriteOnce"]}}}
}"""


def test_every_field_is_read_and_written_by_its_name_in_the_api() -> None:
    spec = validate_spec(FULL)
    assert spec.network_policy is not None
    assert spec.network_policy.allow_from == []
    assert json.loads(spec.model_dump_json(by_alias=True, exclude_none=True)) == json.loads(FULL)


def test_names_fit_for_a_service_and_a_label_match_the_pattern() -> None:
    fit, others = ["a", "example-memcached", "a1", "x" * 52], ["", "1a", "-a", "a-", "a.b", "A", "a_b"]
    assert [name for name in (*fit, *others) if re.search(NAME_PATTERN, name)] == fit
    assert NAME_MAX_LENGTH == 52
