"""The CRD on a real API server: what it takes and refuses, and what a user of kubectl reads."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.cluster import Cluster, await_established
from tests.specifications import BROKEN, FILLED_IN, Broken

MANIFESTS = Path(__file__).parents[2] / "manifests"
SAMPLE = MANIFESTS / "samples" / "cache_v1alpha1_memcached_cr.yaml"
# The API server publishes a new or changed schema a second or two after it has taken it; more on a busy machine.
PUBLISHED_WITHIN_S = 60.0

Outcome = CompletedProcess[str]
Kubectl = Callable[..., Outcome]


def kubectl_of(cluster: Cluster, namespace: str) -> Kubectl:
    """kubectl in `namespace`; a mapping given as `body` goes in as JSON, and a failure is an answer too."""

    def kubectl(*arguments: str, body: object = None) -> Outcome:
        text = None if body is None else json.dumps(body)
        return cluster.kubectl("--namespace", namespace, *arguments, input=text, check=False)

    return kubectl


def until(desired: Callable[[Outcome], bool], request: Callable[[], Outcome]) -> Outcome:
    """The first answer that is wanted; the last one, for the caller's assertion, once the deadline has passed."""
    deadline = time.monotonic() + PUBLISHED_WITHIN_S
    while True:
        answer = request()
        if desired(answer) or time.monotonic() > deadline:
            return answer


def succeeded(answer: Outcome) -> bool:
    return answer.returncode == 0


def install(cluster: Cluster, manifest: str, name: str) -> None:
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=manifest)
    await_established(cluster.kubectl, f"crd/{name}")


@pytest.fixture(scope="module", name="installed")
def fixture_installed(cluster: Cluster) -> Cluster:
    """The cluster with the CRD of Memcached, which stays: every other test of the operator wants it too."""
    manifest = (MANIFESTS / "crd" / "cache.example.com_memcacheds.yaml").read_text()
    install(cluster, manifest, "memcacheds.cache.example.com")
    assert succeeded(until(succeeded, lambda: cluster.kubectl("get", "--raw", SCHEMAS, check=False)))
    return cluster


@pytest.fixture(name="kubectl")
def fixture_kubectl(installed: Cluster, namespace: str) -> Kubectl:
    return kubectl_of(installed, namespace)


def memcached(name: str = "shop", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": {"name": name}, **fields}


def stored(kubectl: Kubectl, name: str = "shop", resource: str = "mcd") -> dict[str, Any]:
    found = json.loads(kubectl("get", resource, name, "--output", "json").stdout)
    assert isinstance(found, dict)
    return found


UNWRITTEN = ("Ready", "Available", "Progressing", "Degraded", "Serving", "Discouraged")


# Published a moment after the CRD; kubectl looks here before it writes.
SCHEMAS = "/openapi/v3/apis/cache.example.com/v1alpha1"


def columns(answer: Outcome) -> list[str]:
    return answer.stdout.splitlines()[0].split()


def test_the_schema_is_accepted_as_structural_without_complaint(installed: Cluster) -> None:
    found = json.loads(installed.kubectl("get", "crd", "memcacheds.cache.example.com", "--output", "json").stdout)
    conditions = {condition["type"]: condition["status"] for condition in found["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}  # NonStructuralSchema would be a third


@pytest.mark.parametrize(
    "fields", [{}, {"spec": {}}, {"spec": None}, {"spec": {"size": None}}, {"spec": {"image": None, "service": {}}}]
)
def test_size_and_what_else_holds_are_filled_in_where_they_or_the_spec_are_missing_or_null(
    kubectl: Kubectl, fields: dict[str, Any]
) -> None:
    kubectl("create", "-f", "-", body=memcached(**fields))
    assert stored(kubectl)["spec"] == FILLED_IN


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ("3", 'spec.size in body must be of type integer: "string"'),
        (3.0, ".spec.size accessor error: 3 is of the type float64, expected int64"),
        (-1, "spec.size in body should be greater than or equal to 0"),
        (2**31, "Checked value must be of type integer with format int32 in spec.size"),
    ],
)
def test_what_is_no_size_is_refused_with_the_fields_name(
    kubectl: Kubectl, namespace: str, size: object, message: str
) -> None:
    # --raw, because kubectl itself turns 3.0 into 3.
    path = f"/apis/cache.example.com/v1alpha1/namespaces/{namespace}/memcacheds"
    answer = kubectl("create", "--raw", path, "-f", "-", body=memcached(spec={"size": size}))
    assert answer.returncode == 1
    assert message in answer.stderr


STATEFUL = {"workload": "StatefulSet"}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: f"{broken.field}: {broken.message}")
def test_what_breaks_a_rule_is_refused_in_the_operators_words_and_what_keeps_to_it_is_taken(
    kubectl: Kubectl, broken: Broken
) -> None:
    refused, taken = (
        kubectl("create", "--dry-run=server", "-f", "-", body=memcached(spec=spec))
        for spec in (broken.spec, broken.mended)
    )
    assert refused.returncode == 1
    [line] = [each for each in refused.stderr.splitlines() if broken.message in each]
    assert broken.field in line
    assert succeeded(taken), taken.stderr


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        ({"memory": "xGi"}, "in body should match"),
        ({"memory": f"{10**70}Gi"}, "Too long: may not be more than 64 bytes"),
        ({"memoryScaling": {"max": "xMi"}}, "in body should match"),
    ],
)
def test_a_malformed_memory_is_reported_once_and_no_rule_fails_over_it(
    kubectl: Kubectl, memory: dict[str, Any], message: str
) -> None:
    answer = kubectl("create", "-f", "-", body=memcached(spec=STATEFUL | {"memoryScaling": {"max": "1Gi"}} | memory))
    assert answer.returncode == 1
    assert answer.stderr.count("Invalid value") == 1
    assert message in answer.stderr


SIZES: list[dict[str, Any]] = [
    {"memory": "512M", "maxItemSize": "1.5Mi"},
    {"memory": 2**33, "maxItemSize": 2**29, "extstore": {"size": 10**11, "volume": {"emptyDir": {}}}},
    {"memory": "1e9", "extstore": {"size": "1.5Ti", "itemSizeMin": ".5Ki", "volume": {"emptyDir": {}}}},
    STATEFUL | {"memory": "10Ti", "memoryScaling": {"max": 10 * 2**40}},
]


@pytest.mark.parametrize("spec", SIZES)
def test_a_size_is_any_quantity_of_bytes_and_stored_as_it_was_written(kubectl: Kubectl, spec: dict[str, Any]) -> None:
    answer = kubectl("create", "-f", "-", body=memcached(spec=spec))
    assert succeeded(answer), answer.stderr
    written = stored(kubectl)["spec"]
    assert {field: written[field] for field in ("memory", "maxItemSize") if field in spec}.items() <= spec.items()
    assert all(written["extstore"][field] == value for field, value in spec.get("extstore", {}).items())


# What was applied, what is applied then, and what is stored.
EMPTIED: list[Any] = [
    ({"disruptionBudget": {"maxUnavailable": 1}}, {"disruptionBudget": {}}, {"disruptionBudget": None}),
    ({"rollout": {"maxSurge": 1}}, {"rollout": {}, "workload": "StatefulSet"}, {"rollout": FILLED_IN["rollout"]}),
    ({"resources": {"limits": {"cpu": 1}}}, {"resources": {}}, {"resources": None}),
    ({"resources": {"limits": {"cpu": 1}}}, {"resources": {"limits": {}}}, {"resources": {"limits": None}}),
    ({"podTemplate": {"metadata": {"labels": {"a": "b"}}}}, {"podTemplate": {}}, {"podTemplate": None}),
    ({"podTemplate": {"spec": {"hostUsers": True}}}, {"podTemplate": {"spec": {}}}, {"podTemplate": {"spec": None}}),
    ({"service": {"labels": {"a": "b"}}}, {"service": {}}, {"service": FILLED_IN["service"]}),
]


@pytest.mark.core
@pytest.mark.parametrize(("first", "then", "left"), EMPTIED)
def test_an_object_that_server_side_apply_has_emptied_is_accepted_as_null(
    kubectl: Kubectl, first: dict[str, Any], then: dict[str, Any], left: dict[str, Any]
) -> None:
    for spec in (first, then):
        answer = kubectl("apply", "--server-side", "-f", "-", body=memcached(spec={"size": 0, **spec}))
        assert succeeded(answer), answer.stderr
    assert stored(kubectl)["spec"] == FILLED_IN | {"size": 0} | then | left


@pytest.mark.cluster("kubernetes")
@pytest.mark.parametrize(
    ("field", "needed"),
    [("networkPolicy", {"ingress": []}), ("auth", {"secretName": "a"}), ("tls", {"secretName": "a"})],
)
def test_an_object_that_needs_a_field_is_not_taken_for_left_out_when_that_goes(
    kubectl: Kubectl, field: str, needed: dict[str, Any]
) -> None:
    kubectl("apply", "--server-side", "-f", "-", body=memcached(spec={"size": 0, field: needed}))
    answer = kubectl("apply", "--server-side", "-f", "-", body=memcached(spec={"size": 0, field: {}}))
    assert answer.returncode == 1
    assert f"spec.{field}" in answer.stderr
    assert needed.items() <= stored(kubectl)["spec"][field].items()


def test_a_change_that_leaves_a_contradiction_is_refused_and_one_that_takes_it_away_is_not(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", body=memcached(spec={"service": {"type": "ClusterIP"}, "rollout": {"maxSurge": 1}}))
    only = kubectl("patch", "mcd/shop", "--type=merge", "-p", '{"spec":{"workload":"StatefulSet"}}')
    assert "spec.service.type: Invalid value:" in only.stderr
    both = {"workload": "StatefulSet", "service": {"type": None}, "rollout": None}
    assert succeeded(kubectl("patch", "mcd/shop", "--type=merge", "-p", json.dumps({"spec": both})))
    assert stored(kubectl)["spec"] == FILLED_IN | {"workload": "StatefulSet"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x" * 53, "metadata.name: Too long: may not be more than 52 bytes"),
        ("1st", "metadata.name in body should match '^[a-z]([-a-z0-9]*[a-z0-9])?$'"),
        ("a.b", "metadata.name in body should match '^[a-z]([-a-z0-9]*[a-z0-9])?$'"),
    ],
)
def test_a_name_that_is_no_services_name_or_too_long_is_refused(kubectl: Kubectl, name: str, message: str) -> None:
    answer = kubectl("create", "-f", "-", body=memcached(name))
    assert answer.returncode == 1
    assert message in answer.stderr


def test_the_longest_name_and_a_generated_one_are_accepted(kubectl: Kubectl) -> None:
    assert succeeded(kubectl("create", "-f", "-", body=memcached("x" * 52)))
    assert succeeded(kubectl("create", "-f", "-", body=memcached() | {"metadata": {"generateName": "shop-"}}))


CONDITION = {
    "type": "Available",
    "status": "False",
    "reason": "MinimumReplicasUnavailable",
    "message": "0 of 1 ready",
    "lastTransitionTime": "2026-01-02T03:04:05Z",
    "observedGeneration": 1,
}
STATUS = {
    "nodes": ["shop-6fd7c98d8-7dqdr"],
    "replicas": 1,
    "readyReplicas": 0,
    "selector": "app=memcached,memcached_cr=shop",
    "observedGeneration": 1,
    "conditions": [CONDITION],
}


@pytest.mark.parametrize("written", [None, {"nodes": []}])
def test_one_that_nobody_has_seen_is_not_ready_and_says_so(kubectl: Kubectl, written: object) -> None:
    kubectl("create", "-f", "-", body=memcached(status={"conditions": []}))
    if written is not None:
        kubectl("patch", "mcd/shop", "--subresource=status", "--type=merge", "-p", json.dumps({"status": written}))
    assert stored(kubectl)["status"]["conditions"] == [
        {
            "type": type_,
            "status": "Unknown",
            "reason": "Pending",
            "message": "Waiting for the operator.",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        }
        for type_ in UNWRITTEN
    ]
    assert kubectl("wait", "mcd/shop", "--for=condition=Ready", "--timeout=1s").returncode == 1
    assert succeeded(kubectl("wait", "mcd/shop", "--for=condition=Ready=Unknown", "--timeout=10s"))


@pytest.mark.cluster("kubernetes")
def test_get_shows_size_ready_available_and_age_and_what_runs_with_wide(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", body=memcached(spec={"image": "memcached:1.6.45"}))
    assert kubectl("get", "mcd").stdout.splitlines()[1].split()[:2] == ["shop", "1"]

    status = {**STATUS, "image": "memcached:1.6.44", "memory": "64Mi", "workload": "Deployment"}
    patched = kubectl("patch", "mcd/shop", "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    assert succeeded(patched), patched.stderr
    plain, wide = kubectl("get", "mcd"), kubectl("get", "mcd", "--output", "wide")
    assert columns(plain) == ["NAME", "SIZE", "READY", "AVAILABLE", "AGE"]
    assert plain.stdout.splitlines()[1].split()[:4] == ["shop", "1", "0", "False"]
    assert columns(wide) == ["NAME", "SIZE", "READY", "AVAILABLE", "AGE", "WORKLOAD", "MEMORY", "IMAGE"]
    assert wide.stdout.splitlines()[1].split()[-3:] == ["Deployment", "64Mi", "memcached:1.6.44"]
    assert "memcached.cache.example.com/shop" in kubectl("get", "all").stdout
    assert stored(kubectl)["status"] == status


@pytest.mark.cluster("kubernetes")  # the simulator has no schemas for people
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("mcd", ["Memcached", "spec\t<Object>", "status\t<Object>", "the memcached-operator runs"]),
        ("mcd.spec", ["size\t<integer>", "image\t<string>", "Number of memcached servers to run."]),
        ("mcd.spec.podTemplate", ["metadata\t<Object>", "spec\t<Object>", "The specification of a pod, as Kubernetes"]),
        ("mcd.status.conditions", ["status\t<string> -required-", "enum: True, False, Unknown"]),
    ],
)
def test_explain_reads_well(kubectl: Kubectl, path: str, words: list[str]) -> None:
    text = kubectl("explain", path).stdout
    assert [word for word in words if word not in text] == []
    assert "<no description>" not in text
