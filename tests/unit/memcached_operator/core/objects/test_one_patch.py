"""From any specification to any other by one patch: nothing of the former is left, and nothing of others is lost."""

from __future__ import annotations

import itertools
import json
from typing import Any

import msgspec
import pytest

from kube_simulator.patches.strategic import strategic_merge
from kube_simulator.schema import kubernetes
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.labels import APPLIED_ANNOTATION
from memcached_operator.core.objects.workload import DEPLOYMENT, STATEFUL_SET, desired_workload
from memcached_operator.core.objects.workload_types import WorkloadManifest
from memcached_operator.core.observed.caches import DEPLOYMENTS, STATEFUL_SETS
from memcached_operator.core.observed.workloads import deployment_record, stateful_set_record
from operator_runtime.owned.patching import needs_live, patch_of
from tests.specifications import BROKEN
from tests.unit.memcached_operator.live import full_spec, spec_of
from tests.unit.memcached_operator.support import OWNER

Json = dict[str, Any]
KINDS = {
    "Deployment": (DEPLOYMENTS.resource, deployment_record, DEPLOYMENT.rules),
    "StatefulSet": (STATEFUL_SETS.resource, stateful_set_record, STATEFUL_SET.rules),
}
SCHEMAS = {each.kind: each.schema for each in kubernetes.builtin_resources()}


def sidecar(*variables: Json) -> Json:
    server = {"name": "memcached", "readinessProbe": {"exec": {"command": ["a"] * len(variables)}}}
    exporter = {"name": "exporter", "image": "exporter:1", "env": [*variables]}
    return {"podTemplate": {"spec": {"containers": [exporter, server | {"env": [*variables[:1]]}]}}}


ANOTHER_USER = {"name": "memcached", "imagePullPolicy": "Never", "securityContext": {"runAsUser": 1000}}


def hook(handler: str) -> Json:
    does = {"exec": {"command": ["a"]}, "httpGet": {"port": 80}}
    return {"name": "memcached", "lifecycle": {"preStop": {handler: does[handler]}}}


SPECS: dict[str, Json] = {
    "the defaults": {},
    "pods of the user's": {"podTemplate": full_spec()["podTemplate"]},
    "others": {
        "podTemplate": {
            "metadata": {"labels": {"other": "1"}},
            "spec": {
                "nodeSelector": {"zone": "a"},
                "tolerations": [{"key": "other"}],
                "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "z"}]}},
                "imagePullSecrets": [{"name": "second"}],
                "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}],
                "securityContext": {"fsGroup": 5},
            },
        }
    },
    "servers that end at once": {"podTemplate": {"spec": {"terminationGracePeriodSeconds": 0}}},
    "servers that end at once, with a hook of the user's": {
        "podTemplate": {"spec": {"terminationGracePeriodSeconds": 0, "containers": [hook("exec")]}}
    },
    "a hook of the user's": {"podTemplate": {"spec": {"containers": [hook("exec")]}}},
    "another hook of the user's": {"podTemplate": {"spec": {"containers": [hook("httpGet")]}}},
    "a sidecar": sidecar({"name": "X", "value": "1"}, {"name": "Y", "value": "2"}),
    "a sidecar with its variables in another order": sidecar({"name": "Y", "value": "2"}, {"name": "X", "value": "1"}),
    "a sidecar with a variable less, and another probe": sidecar({"name": "Y", "value": "3"})
    | {"tls": {"secretName": "tls"}},
    "TLS": {"tls": {"secretName": "tls"}},
    "passwords": {"auth": {"secretName": "auth"}},
    "TLS and passwords": {"tls": {"secretName": "other"}, "auth": {"secretName": "auth"}},
    "TLS by new pods": {"tls": {"secretName": "tls", "reload": "Restart"}, "auth": {"secretName": "auth"}},
    "a warm restart": {"workload": "StatefulSet", "warmRestart": True},
    "a disk of a claim": {
        "extstore": {"size": "1Gi", "volume": {"ephemeral": {"storageClassName": "fast"}}, "itemSizeMin": 1024}
    },
    "a disk of the node": {"extstore": {"size": "1Gi", "volume": {"emptyDir": {}}}},
    "a disk and TLS": {"extstore": {"size": "2Gi", "volume": {"ephemeral": {}}}, "tls": {"secretName": "tls"}},
    "TLS with bounds": {"tls": {"secretName": "tls"}, "resources": {"limits": {"cpu": 2, "ephemeral-storage": "1Gi"}}},
    "TLS by another user": {"tls": {"secretName": "tls"}, "podTemplate": {"spec": {"containers": [ANOTHER_USER]}}},
    "other resources": {"resources": {"requests": {"ephemeral-storage": "1Gi"}, "limits": {"cpu": 1}}},
}
THEIRS: Json = {
    "spec": {
        "template": {
            "metadata": {"labels": {"squad": "theirs"}, "annotations": {"example.com/note": "theirs"}},
            "spec": {
                "containers": [
                    {"name": "proxy", "image": "proxy:1"},
                    {"name": "memcached", "env": [{"name": "A", "value": "1"}]},
                ],
                "volumes": [{"name": "theirs", "emptyDir": {}}],
            },
        }
    }
}


def desired(kind: Any, spec: Spec, user_id: int | None = 11211) -> WorkloadManifest:
    return desired_workload(kind, OWNER, 2, "memcached:1", user_id, spec)


def made(manifest: WorkloadManifest) -> Json:
    found = manifest.body()
    found["metadata"] |= {"uid": "1", "resourceVersion": "1"}
    return found


def without_what_is_empty(value: Any) -> Any:
    if not isinstance(value, dict):
        return [*map(without_what_is_empty, value)] if isinstance(value, list) else value
    kept = {name: without_what_is_empty(part) for name, part in value.items()}
    return {name: part for name, part in kept.items() if part not in ({}, [], None)}


def in_order(value: Any) -> Any:
    """Entries that Kubernetes tells apart by their names, in one order."""
    if isinstance(value, list):
        entries = [*map(in_order, value)]
        return sorted(entries, key=_text) if entries and isinstance(entries[0], dict) else entries
    return {field: in_order(part) for field, part in value.items()} if isinstance(value, dict) else value


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def variables(template: Json, like: WorkloadManifest) -> dict[str, list[str]]:
    """Names of the variables of each container that a manifest has, too, in their order."""
    containers = {each["name"]: each for each in like.body()["spec"]["template"]["spec"]["containers"]}
    known = {name: {each["name"] for each in container.get("env", ())} for name, container in containers.items()}
    return {
        each["name"]: [var["name"] for var in each.get("env", ()) if var["name"] in known[each["name"]]]
        for each in template["spec"]["containers"]
        if each["name"] in known
    }


# What only another client can have written where the specification is kept: rules between fields are broken in it.
SERVER: Json = {"name": "memcached"}
CONTRADICTIONS: list[Json] = [
    *(each.spec for each in BROKEN),
    {"podTemplate": {"spec": {"containers": [SERVER | {"image": "a", "args": ["b"], "volumeMounts": 5}]}}},
    {"podTemplate": {"spec": {"containers": "a", "volumes": {}, "securityContext": 5}}},
    {"podTemplate": {"spec": {"containers": [SERVER | {"ports": "a"}], "initContainers": [{"name": 5}, None]}}},
    {"podTemplate": {"metadata": {"labels": {"app": "a"}, "annotations": {"cache.example.com/template": "a"}}}},
    {"tls": {"secretName": "a"}, "podTemplate": {"spec": {"initContainers": [{"name": "reloader", "command": 5}]}}},
    {
        "tls": {"secretName": "a"},
        "podTemplate": {"spec": {"containers": [SERVER | {"securityContext": {}}], "initContainers": [None]}},
    },
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("written", CONTRADICTIONS, ids=str)
def test_what_contradicts_itself_as_the_former_specification_is_put_right_at_once(kind: str, written: Json) -> None:
    resource, record, rules = KINDS[kind]
    old, new = (desired(kind, spec_of(SPECS[each])) for each in ("TLS", "pods of the user's"))
    live = made(old)
    live["metadata"]["annotations"][APPLIED_ANNOTATION] = json.dumps(written)
    found = list(rules.differences(new, record(json.dumps(live).encode())))
    sent = json.loads(msgspec.json.encode(patch_of(found, resource, desired=new.body())))
    after = strategic_merge(live, sent, SCHEMAS[kind])
    assert list(rules.differences(new, record(json.dumps(after).encode()))) == []
    assert after["metadata"]["annotations"] == made(new)["metadata"]["annotations"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("first", "then"), [*itertools.permutations(SPECS, 2)])
def test_one_patch_takes_away_what_the_former_alone_had_and_nothing_of_others(kind: str, first: str, then: str) -> None:
    resource, record, rules = KINDS[kind]
    old, new = (desired(kind, spec_of(SPECS[each])) for each in (first, then))
    live = strategic_merge(made(old), THEIRS, SCHEMAS[kind])
    found = list(rules.differences(new, record(json.dumps(live).encode())))
    assert not needs_live(found, resource)
    sent = json.loads(msgspec.json.encode(patch_of(found, resource, desired=new.body())))
    after = strategic_merge(live, sent, SCHEMAS[kind])
    assert list(rules.differences(new, record(json.dumps(after).encode()))) == []
    expected = without_what_is_empty(strategic_merge(made(new), THEIRS, SCHEMAS[kind]))
    after = without_what_is_empty(after)
    assert after["metadata"] == expected["metadata"]
    template, other = after["spec"].pop("template"), expected["spec"].pop("template")
    assert variables(template, new) == variables(made(new)["spec"]["template"], new)
    assert template["metadata"] == other["metadata"]
    assert in_order(template["spec"]) == in_order(other["spec"])
    assert after["spec"] == expected["spec"]
