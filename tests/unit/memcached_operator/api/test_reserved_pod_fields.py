"""What of the pods' template stays the operator's, by a table."""

from __future__ import annotations

from typing import Any

import pytest

from memcached_operator.api.reserved_pod_fields import of_pod_template

REMEDY = "leave it out, as the operator sets it"
PORT = "leave out the port 11211 and the name memcached, as the operator sets them"
NAMED = "must be a list of objects, each with a name of its own"
ELSEWHERE = "mount it elsewhere than in /etc/memcached"
SERVER, RELOADER = "containers[memcached]", "initContainers[reloader]"


def server(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "memcached", **fields}]}


def mounts(*paths: str) -> dict[str, Any]:
    return server(volumeMounts=[{"name": "a", "mountPath": path} for path in paths])


def reloader(**fields: Any) -> dict[str, Any]:
    return {"initContainers": [{"name": "reloader", **fields}]}


REFUSED: list[tuple[dict[str, Any], str]] = [
    (server(image="a"), f"{SERVER}.image: use spec.image"),
    (server(args=["-v"]), f"{SERVER}.args: use spec.extraArgs"),
    (server(command=["a"]), f"{SERVER}.command: use spec.memory and the like, and spec.extraArgs for the rest"),
    (server(resources={"limits": {"cpu": 1}}), f"{SERVER}.resources: use spec.resources"),
    (server(ports=[{"containerPort": 11211}]), f"{SERVER}.ports: {PORT}"),
    (server(ports=[{"containerPort": 1}, {"containerPort": 2, "name": "memcached"}]), f"{SERVER}.ports: {PORT}"),
    (server(ports="a"), f'{SERVER}.ports: must be a list of objects, got "a"'),
    (server(env=[{"value": "a"}]), f'{SERVER}.env: {NAMED}, got [{{"value": "a"}}]'),
    (mounts("/etc/memcached/tls", "/etc/m"), f"{SERVER}.volumeMounts[/etc/memcached/tls]: {ELSEWHERE}"),
    (mounts("/etc/memcached"), f"{SERVER}.volumeMounts[/etc/memcached]: {ELSEWHERE}"),
    (server(volumeMounts=5), f"{SERVER}.volumeMounts: {NAMED.replace('name', 'mountPath')}, got 5"),
    ({"shareProcessNamespace": False}, f"shareProcessNamespace: {REMEDY}"),
    (reloader(image="a"), f"{RELOADER}.image: use spec.image"),
    (reloader(command=["sh"]), f"{RELOADER}.command: {REMEDY}"),
    (reloader(args=["a"]), f"{RELOADER}.args: {REMEDY}"),
    ({"volumes": [{"name": "tls"}]}, "volumes[tls]: name it otherwise, as that of spec.tls is called so"),
    ({"containers": {}}, f"containers: {NAMED}, got [{{}}]"),
    ({"containers": ["a"]}, f'containers: {NAMED}, got ["a"]'),
    ({"volumes": [{"name": "a"}, {"name": "a"}]}, f'volumes: {NAMED}, got [{{"name": "a"}}, {{"name": "a"}}]'),
]


@pytest.mark.parametrize(("spec", "complaint"), REFUSED)
def test_what_stays_the_operator_s_is_refused_by_name_and_with_the_remedy(spec: dict[str, Any], complaint: str) -> None:
    assert list(of_pod_template({"spec": spec})) == [f"spec.podTemplate.spec.{complaint}"]


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"labels": {"team": "a", "memcached_cr": "b"}}, "labels[memcached_cr]"),
        ({"labels": {"app.kubernetes.io/name": "a"}}, "labels[app.kubernetes.io/name]"),
        ({"annotations": {"a": "b", "cache.example.com/transport": "tls"}}, "annotations[cache.example.com/transport]"),
    ],
)
def test_so_are_labels_and_annotations_of_the_operator_s(metadata: dict[str, Any], field: str) -> None:
    assert list(of_pod_template({"metadata": metadata})) == [f"spec.podTemplate.metadata.{field}: {REMEDY}"]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        server(env=[{"name": "A"}], ports=[{"containerPort": 1, "name": "a"}], livenessProbe={}),
        reloader(resources={"limits": {"memory": "64Mi"}}),
        {"containers": [{"name": "exporter", "image": "a", "args": ["b"], "ports": [{"name": "memcached"}]}]},
        {"containers[memcached].image": "a"},  # unknown to the API server
        {"volumes": None, "tolerations": [{}], "dnsPolicy": 5, "containers": []},
    ],
)
def test_the_rest_is_the_api_server_s_to_judge(spec: dict[str, Any]) -> None:
    assert list(of_pod_template({"metadata": {"labels": {"app.kubernetes.io/part-of": "a"}}, "spec": spec})) == []
