"""What TLS and passwords make of the pods, and how a pod is known to be spoken to."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from memcached_operator.memcached.spec import read_spec
from memcached_operator.memcached.wanted.pod_template import noted, template
from memcached_operator.memcached.wanted.secrets import Speech, script
from memcached_operator.memcached.wanted.workload_types import PodTemplate
from memcached_operator.memcached.workloads.pods import pod_record
from tests.unit.memcached_operator.memcached.support import IMAGE, NAME, live_pod

TLS = "/etc/memcached/tls"
PLAIN_COMMAND = ["memcached", "-m", "64", "-c", "1024", "-t", "4", "-I", "1m", "-o", "modern", "-v"]


def made(fields: dict[str, Any]) -> PodTemplate:
    return template(NAME, IMAGE, 11211, read_spec(json.dumps(fields).encode()))[0]


def pod_of(fields: dict[str, Any]) -> Any:
    return json.loads(msgspec.json.encode(made(fields).spec))


SERVED = f"ssl_chain_cert={TLS}/tls.crt,ssl_key={TLS}/tls.key,ssl_min_version=2"
VERIFIED = f"{SERVED},ssl_ca_cert={TLS}/ca.crt,ssl_verify_mode"
PASSWORDS = "/etc/memcached/auth/password-file"
OPTIONS: list[tuple[dict[str, Any], list[str]]] = [
    ({"tls": {"secretName": "a"}}, ["-Z", "-o", SERVED]),
    ({"tls": {"secretName": "a", "clientAuth": "Request"}}, ["-Z", "-o", f"{VERIFIED}=1"]),
    ({"tls": {"secretName": "a", "clientAuth": "Require"}}, ["-Z", "-o", f"{VERIFIED}=2"]),
    ({"auth": {"secretName": "a"}}, ["-Y", PASSWORDS]),
    ({"tls": {"secretName": "a"}, "auth": {"secretName": "a"}}, ["-Z", "-o", SERVED, "-Y", PASSWORDS]),
]


@pytest.mark.parametrize(("fields", "options"), OPTIONS)
def test_memcached_has_the_options_by_which_its_sidecar_judges(fields: dict[str, Any], options: list[str]) -> None:
    pod = pod_of(fields | {"extraArgs": ["-R", "40"]})
    (memcached,), (reloader,) = pod["containers"], pod["initContainers"]
    assert memcached["command"] == [*PLAIN_COMMAND, *options]
    assert memcached["args"] == ["-R", "40"]
    names = [fields.get(part, {}).get("secretName", "") for part in ("tls", "auth")]
    assert reloader["command"] == ["sh", "-c", script(), "reloader"]
    assert reloader["args"] == [*names, *options]


def test_a_native_sidecar_of_the_same_image_and_rights_lets_the_server_start_only_when_it_is_ready() -> None:
    pod = pod_of({"tls": {"secretName": "a"}})
    (memcached,), (reloader,) = pod["containers"], pod["initContainers"]
    for field in ("image", "securityContext", "volumeMounts"):
        assert reloader[field] == memcached[field]
    assert pod["shareProcessNamespace"] is True
    assert reloader["restartPolicy"] == "Always"
    # For as long as it takes: the container is not started again because of it.
    looks = {"exec": {"command": ["test", "-e", "/dev/shm/reloader/ready"]}}
    assert reloader["startupProbe"] == looks | {"periodSeconds": 1, "failureThreshold": 2147483647}
    assert reloader["resources"] == {"requests": {"cpu": "5m", "memory": "32Mi"}, "limits": {"memory": "32Mi"}}


@pytest.mark.parametrize(
    ("fields", "optional"),
    [
        ({"tls": {"secretName": "one"}, "auth": {"secretName": "two"}}, {"optional": True}),
        ({"tls": {"secretName": "one", "reload": "Restart"}, "auth": {"secretName": "two"}}, {}),
    ],
    ids=["the sidecar waits for them", "the kubelet waits for them"],
)
def test_secrets_are_mounted_where_they_can_only_be_read(fields: dict[str, Any], optional: dict[str, bool]) -> None:
    pod = pod_of(fields)
    assert pod["volumes"] == [
        {"name": "tls", "secret": {"secretName": "one"} | optional},
        {"name": "auth", "secret": {"secretName": "two"} | optional},
    ]
    assert pod["containers"][0]["volumeMounts"] == [
        {"name": "tls", "mountPath": TLS, "readOnly": True},
        {"name": "auth", "mountPath": "/etc/memcached/auth", "readOnly": True},
    ]


def test_servers_that_are_restarted_have_no_sidecar_and_processes_of_their_own() -> None:
    pod = pod_of({"tls": {"secretName": "a", "reload": "Restart"}})
    assert not {"initContainers", "shareProcessNamespace"} & set(pod)
    assert pod["containers"][0]["command"] == [*PLAIN_COMMAND, "-Z", "-o", SERVED]


SPEECHES: list[tuple[dict[str, Any], Speech]] = [
    ({}, Speech()),
    ({"tls": {"secretName": "a"}}, Speech(tls=True)),
    ({"tls": {"secretName": "a", "clientAuth": "Request"}}, Speech(tls=True)),
    ({"tls": {"secretName": "a", "clientAuth": "Require"}}, Speech(tls=True, client_certificate=True)),
    ({"auth": {"secretName": "a"}}, Speech(passwords=True)),
    ({"tls": {"secretName": "a"}, "auth": {"secretName": "a"}}, Speech(tls=True, passwords=True)),
]


@pytest.mark.parametrize(("fields", "speech"), SPEECHES)
def test_a_pod_says_by_its_annotation_how_its_server_is_spoken_to(fields: dict[str, Any], speech: Speech) -> None:
    meta = made(fields | {"podTemplate": {"metadata": {"annotations": {"a": "b"}}}}).metadata
    pod = live_pod()
    pod["metadata"]["annotations"] = meta.annotations if meta else None
    assert pod_record(json.dumps(pod).encode()).speech == speech


def test_the_digest_of_a_template_is_another_with_each_of_them() -> None:
    digests = {noted(made(fields))[0] for fields, _ in [*OPTIONS, *SPEECHES]}
    assert len(digests) == len({json.dumps(fields) for fields, _ in [*OPTIONS, *SPEECHES]})


def test_a_pod_has_the_script_without_its_comments() -> None:
    assert not [line for line in script().splitlines() if not line.strip() or line.lstrip().startswith("#")]
