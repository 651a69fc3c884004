"""What a pod template of the user's makes of the operator's, by a table."""

from __future__ import annotations

from typing import Any

import pytest

from memcached_operator.api.reserved_pod_fields import Keys, find, keyed
from memcached_operator.core.objects import pod_template_overlay as merging
from memcached_operator.core.objects.passed_options import unkeyed
from memcached_operator.core.objects.pod_template_overlay import Part, merged

Json = dict[str, Any]
DESIRED: Json = {
    "metadata": {"labels": {"app": "memcached"}, "annotations": {"cache.example.com/template": "x"}},
    "spec": {
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "memcached",
                "ports": [{"containerPort": 11211, "name": "memcached"}],
                "readinessProbe": {"tcpSocket": {"port": "memcached"}, "periodSeconds": 5},
                "volumeMounts": [{"name": "tls", "mountPath": "/tls"}],
            }
        ],
        "volumes": [{"name": "tls", "secret": {"secretName": "a"}}],
    },
}
SERVER = ("spec", "containers", "memcached")
SIDECAR = {"name": "exporter", "image": "exporter", "env": [{"name": "A", "value": "b"}]}


def parts(given: Json) -> list[Part]:
    return list(merging.parts(keyed(given), keyed(DESIRED)))


def memcached(**fields: Any) -> Json:
    return {"spec": {"containers": [{"name": "memcached", **fields}]}}


MERGED: dict[str, tuple[Json, dict[Keys, Any]]] = {
    "nothing": ({}, {}),
    "a field": ({"spec": {"dnsPolicy": "Default"}}, {("spec", "dnsPolicy"): "Default"}),
    "what says nothing": ({"spec": {"affinity": {}, "tolerations": [], "hostNetwork": False, "hostname": ""}}, {}),
    "a label and an annotation": (
        {"metadata": {"labels": {"team": ""}, "annotations": {"a.b/c": "d"}}},
        {("metadata", "labels", "team"): "", ("metadata", "annotations", "a.b/c"): "d"},
    ),
    "a map that is merged": (
        {"spec": {"securityContext": {"fsGroup": 5, "seccompProfile": {"type": "Unconfined"}}}},
        {
            ("spec", "securityContext", "fsGroup"): 5,
            ("spec", "securityContext", "seccompProfile", "type"): "Unconfined",
        },
    ),
    "a sidecar": ({"spec": {"containers": [SIDECAR]}}, {("spec", "containers", "exporter"): SIDECAR}),
    "entries that are called as lists are": (
        {"spec": {"containers": [{"name": "env", "args": [""]}], "volumes": [{"name": "volumes", "emptyDir": {}}]}},
        {
            ("spec", "containers", "env"): {"name": "env", "args": [""]},
            ("spec", "volumes", "volumes"): {"name": "volumes", "emptyDir": {}},
        },
    ),
    "an init container": ({"spec": {"initContainers": [SIDECAR]}}, {("spec", "initContainers", "exporter"): SIDECAR}),
    "a variable": (memcached(env=[{"name": "A", "value": "b"}]), {(*SERVER, "env", "A"): {"name": "A", "value": "b"}}),
    "a volume with its mount": (
        {"spec": {"volumes": [{"name": "v", "emptyDir": {}}], **memcached(volumeMounts=[{"mountPath": "/v"}])["spec"]}},
        {("spec", "volumes", "v"): {"name": "v", "emptyDir": {}}, (*SERVER, "volumeMounts", "/v"): {"mountPath": "/v"}},
    ),
    "ours": (memcached(volumeMounts=[{"mountPath": "/tls", "a": 1}]), {(*SERVER, "volumeMounts", "/tls", "a"): 1}),
    "a port": (
        memcached(ports=[{"containerPort": 1, "name": "a"}]),
        {(*SERVER, "ports"): [{"containerPort": 11211, "name": "memcached"}, {"containerPort": 1, "name": "a"}]},
    ),
    "a probe of ours": (
        memcached(readinessProbe={"periodSeconds": 1}),
        {(*SERVER, "readinessProbe", "periodSeconds"): 1},
    ),
    "another kind of probe than ours": (
        memcached(readinessProbe={"exec": {"command": ["a"]}}),
        {(*SERVER, "readinessProbe", "tcpSocket"): None, (*SERVER, "readinessProbe", "exec"): {"command": ["a"]}},
    ),
    "a probe": (memcached(livenessProbe={"exec": {}}), {(*SERVER, "livenessProbe"): {"exec": {}}}),
    "null": (memcached(livenessProbe=None, readinessProbe=None), {}),
    "a list without keys": ({"spec": {"tolerations": [{"key": "a"}]}}, {("spec", "tolerations"): [{"key": "a"}]}),
    "the same list by two of its keys": (
        {"spec": {"topologySpreadConstraints": [{"topologyKey": "a"}, {"topologyKey": "a", "maxSkew": 1}]}},
        {("spec", "topologySpreadConstraints"): [{"topologyKey": "a"}, {"topologyKey": "a", "maxSkew": 1}]},
    ),
    "a field that is called as a path": ({"spec": {"a[b].c": 1}}, {("spec", "a[b].c"): 1}),
    "names with all that names may have": (
        memcached(env=[{"name": "A].B"}], volumeMounts=[{"mountPath": "/a.b/=,c"}]),
        {(*SERVER, "env", "A].B"): {"name": "A].B"}, (*SERVER, "volumeMounts", "/a.b/=,c"): {"mountPath": "/a.b/=,c"}},
    ),
}


@pytest.mark.parametrize(("given", "expected"), MERGED.values(), ids=MERGED)
def test_what_is_given_is_reported_by_the_places_where_it_meets_the_desired(
    given: Json, expected: dict[Keys, Any]
) -> None:
    assert dict(parts(given)) == expected


@pytest.mark.parametrize(("given", "expected"), MERGED.values(), ids=MERGED)
def test_in_the_merged_template_each_part_is_in_its_place_and_the_rest_is_as_desired(
    given: Json, expected: dict[Keys, Any]
) -> None:
    found = merged(DESIRED, parts(given))
    assert {at: unkeyed(find(keyed(found), *at)) for at in expected} == expected
    desired = {at: unkeyed(find(keyed(DESIRED), *at)) for at in expected}
    back = merged(found, desired.items())
    back["spec"] = {field: value for field, value in back["spec"].items() if value != {}}
    assert back == DESIRED
