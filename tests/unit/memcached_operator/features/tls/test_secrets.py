"""What TLS and passwords make of the pods, and how a pod is known to be spoken to."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from memcached_operator.api.reading import read_spec
from memcached_operator.core.objects.pod_template import fingerprint, template
from memcached_operator.core.objects.workload import desired_workload
from memcached_operator.core.objects.workload_types import PodTemplateSpec
from memcached_operator.core.observed.pods import pod_record
from memcached_operator.servers.transport import Transport
from tests.unit.memcached_operator.support import IMAGE, NAME, OWNER, live_pod

TLS = "/etc/memcached/tls"
PLAIN_COMMAND = ["memcached", "-m", "64", "-c", "1024", "-t", "4", "-I", "1m", "-o", "modern", "-v"]


def made(fields: dict[str, Any]) -> PodTemplateSpec:
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
    assert reloader["command"] == ["sh", "/etc/memcached/scripts/reloader.sh"]
    assert reloader["args"] == [*names, *options]


def test_a_native_sidecar_of_the_same_image_and_rights_lets_the_server_start_only_when_it_is_ready() -> None:
    pod = pod_of({"tls": {"secretName": "a"}})
    (memcached,), (reloader,) = pod["containers"], pod["initContainers"]
    for field in ("image", "securityContext"):
        assert reloader[field] == memcached[field]
    scripts = {"name": "operator-scripts", "mountPath": "/etc/memcached/scripts", "readOnly": True}
    assert reloader["volumeMounts"] == [*memcached["volumeMounts"], scripts]
    assert pod["shareProcessNamespace"] is True
    assert reloader["restartPolicy"] == "Always"
    # For as long as it takes: the container is not started again because of it.
    probe = {"exec": {"command": ["test", "-e", "/dev/shm/reloader/ready"]}}
    assert reloader["startupProbe"] == probe | {"periodSeconds": 1, "failureThreshold": 2147483647}
    assert reloader["resources"] == {"requests": {"cpu": "5m", "memory": "32Mi"}, "limits": {"memory": "32Mi"}}


RESOURCES: list[tuple[Any, Any]] = [
    ({}, {"requests": {"cpu": "5m", "memory": "32Mi"}, "limits": {"memory": "32Mi"}}),
    (
        {"limits": {"cpu": 2, "nvidia.com/gpu": 1}},
        {"requests": {"cpu": "5m", "memory": "32Mi"}, "limits": {"memory": "32Mi", "cpu": "100m"}},
    ),
    (
        {"limits": {"cpu": "3m"}},
        {"requests": {"cpu": "3m", "memory": "32Mi"}, "limits": {"memory": "32Mi", "cpu": "3m"}},
    ),
    (
        {"requests": {"cpu": 1}, "limits": {"cpu": 1}},
        {"requests": {"cpu": "100m", "memory": "32Mi"}, "limits": {"memory": "32Mi", "cpu": "100m"}},
    ),
    (
        {"requests": {"ephemeral-storage": "1Gi"}, "limits": {"ephemeral-storage": "2Gi"}},
        {
            "requests": {"cpu": "5m", "memory": "32Mi", "ephemeral-storage": "16Mi"},
            "limits": {"memory": "32Mi", "ephemeral-storage": "64Mi"},
        },
    ),
]


@pytest.mark.parametrize(("given", "resources"), RESOURCES)
def test_the_sidecar_is_bounded_in_what_memcached_is_bounded_in(given: Any, resources: Any) -> None:
    pod = pod_of({"auth": {"secretName": "a"}, "resources": given})
    assert pod["initContainers"][0]["resources"] == resources


def test_the_sidecar_s_bounds_follow_no_memory_that_a_running_server_is_given() -> None:
    one, other = (made({"auth": {"secretName": "a"}, "memory": memory}) for memory in ("64Mi", "128Mi"))
    assert fingerprint(one).template_hash == fingerprint(other)[0]
    assert one.spec is not None
    assert other.spec is not None
    assert one.spec.initContainers == other.spec.initContainers


def run_by(server: Any, sidecar: Any = None, **others: Any) -> tuple[Any, Any]:
    """memcached and its sidecar, as such a podTemplate has them run."""
    inits = [{"name": "reloader", **sidecar}] if sidecar is not None else []
    template = {"spec": {"containers": [{"name": "memcached", **server}], "initContainers": inits, **others}}
    spec = read_spec(json.dumps({"auth": {"secretName": "a"}, "podTemplate": template}).encode())
    pod = desired_workload("Deployment", OWNER, 1, IMAGE, 11211, spec).body()["spec"]["template"]["spec"]
    named = {each["name"]: each for each in (*pod["containers"], *pod["initContainers"])}
    return named["memcached"], named["reloader"]


SELINUX = {"seLinuxOptions": {"level": "s0:c1"}, "appArmorProfile": {"type": "Unconfined"}}


@pytest.mark.parametrize(
    "server",
    [
        {"securityContext": {"runAsUser": 1000}},
        {"securityContext": {"runAsUser": 1000, "runAsGroup": 1000, "runAsNonRoot": True}},
        {"securityContext": SELINUX},
        {"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}},
        {"imagePullPolicy": "Never"},
        {"env": [{"name": "A", "value": "1"}]},
    ],
)
def test_the_sidecar_is_run_as_memcached_is(server: Any) -> None:
    memcached, reloader = run_by(server)
    for field in ("securityContext", "imagePullPolicy"):
        assert memcached.get(field) == reloader.get(field)
    assert "env" not in reloader


def test_what_is_said_of_the_sidecar_itself_goes_before_that() -> None:
    _, reloader = run_by(
        {"securityContext": {"runAsUser": 1000, "runAsGroup": 1000}, "imagePullPolicy": "Never"},
        {"securityContext": {"runAsGroup": 7}, "resources": {"limits": {"cpu": "1"}}, "imagePullPolicy": "Always"},
    )
    assert (reloader["securityContext"]["runAsUser"], reloader["securityContext"]["runAsGroup"]) == (1000, 7)
    assert reloader["imagePullPolicy"] == "Always"
    assert reloader["resources"]["limits"] == {"memory": "32Mi", "cpu": "1"}


@pytest.mark.parametrize("wrong", ["no object", ["no object"], 3])
def test_what_is_no_security_context_is_left_for_the_api_server_to_refuse(wrong: Any) -> None:
    memcached, reloader = run_by({"securityContext": wrong}, {"securityContext": {"runAsUser": 3}})
    assert memcached["securityContext"] == wrong
    assert reloader["securityContext"]["runAsUser"] == 3


def test_without_a_sidecar_none_is_made_up() -> None:
    fields = {"podTemplate": {"spec": {"containers": [{"name": "memcached", "securityContext": {"runAsUser": 1000}}]}}}
    body = desired_workload("Deployment", OWNER, 1, IMAGE, 11211, read_spec(json.dumps(fields).encode())).body()
    assert "initContainers" not in body["spec"]["template"]["spec"]


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
    assert pod["volumes"][:2] == [
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


SPEECHES: list[tuple[dict[str, Any], Transport]] = [
    ({}, Transport()),
    ({"tls": {"secretName": "a"}}, Transport(tls=True)),
    ({"tls": {"secretName": "a", "clientAuth": "Request"}}, Transport(tls=True)),
    ({"tls": {"secretName": "a", "clientAuth": "Require"}}, Transport(tls=True, client_certificate=True)),
    ({"auth": {"secretName": "a"}}, Transport(passwords=True)),
    ({"tls": {"secretName": "a"}, "auth": {"secretName": "a"}}, Transport(tls=True, passwords=True)),
]


@pytest.mark.parametrize(("fields", "transport"), SPEECHES)
def test_a_pod_says_by_its_annotation_how_its_server_is_spoken_to(fields: dict[str, Any], transport: Transport) -> None:
    meta = made(fields | {"podTemplate": {"metadata": {"annotations": {"a": "b"}}}}).metadata
    pod = live_pod()
    pod["metadata"]["annotations"] = meta.annotations if meta else None
    assert pod_record(json.dumps(pod).encode()).transport == transport


def test_the_digest_of_a_template_is_another_with_each_of_them() -> None:
    digests = {fingerprint(made(fields))[0] for fields, _ in [*OPTIONS, *SPEECHES]}
    assert len(digests) == len({json.dumps(fields) for fields, _ in [*OPTIONS, *SPEECHES]})
