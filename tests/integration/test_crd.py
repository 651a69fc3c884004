"""The CRD on a real API server: what it takes and refuses, and what a user of kubectl reads."""

from __future__ import annotations

import json
from subprocess import CompletedProcess
from typing import Any

import pytest

from operator_runtime.testing.waiting import eventually
from tests.cluster import Cluster
from tests.integration.conftest import memcached
from tests.kubectl_in_namespace import Kubectl
from tests.specifications import BROKEN, FILLED_IN, Broken

Outcome = CompletedProcess[str]


def shop(**spec: Any) -> dict[str, Any]:
    """A Memcached of that specification."""
    return memcached("shop") | {"spec": spec}


def send(kubectl: Kubectl, *words: str, body: object) -> Outcome:
    """What comes of a request with that body, which may fail."""
    return kubectl.run(*words, "-f", "-", input=json.dumps(body), check=False)


def patch(kubectl: Kubectl, part: str, value: object, *words: str) -> Outcome:
    """Merge a value into a part of the Memcached, which may fail."""
    return kubectl.run("patch", "mcd/shop", "--type=merge", "-p", json.dumps({part: value}), *words, check=False)


def assert_refused(answer: Outcome, words: str) -> None:
    assert answer.returncode == 1
    assert words in answer.stderr


def assert_taken(answer: Outcome) -> None:
    assert answer.returncode == 0, answer.stderr


def stored(kubectl: Kubectl) -> Any:
    return kubectl.get("mcd", "shop")


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
    kubectl.apply(memcached("shop") | fields, create=True)
    assert stored(kubectl)["spec"] == FILLED_IN


STATEFUL = {"workload": "StatefulSet"}
REFUSED = {
    "a text for a size": (shop(size="3"), 'spec.size in body must be of type integer: "string"'),
    "a fraction": (shop(size=3.0), ".spec.size accessor error: 3 is of the type float64, expected int64"),
    "a size below 0": (shop(size=-1), "spec.size in body should be greater than or equal to 0"),
    "a huge size": (shop(size=2**31), "Checked value must be of type integer with format int32 in spec.size"),
    "a long name": (memcached("x" * 53), "metadata.name: Too long: may not be more than 52 bytes"),
    "a name that begins with a digit": (memcached("1st"), "metadata.name in body should match"),
    "a name with a dot": (memcached("a.b"), "metadata.name in body should match '^[a-z]([-a-z0-9]*[a-z0-9])?$'"),
}


@pytest.mark.parametrize(("body", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_size_or_name_is_refused_with_the_fields_name(
    kubectl: Kubectl, body: dict[str, Any], message: str
) -> None:
    # --raw, because kubectl itself turns 3.0 into 3.
    path = f"/apis/cache.example.com/v1alpha1/namespaces/{kubectl.namespace}/memcacheds"
    assert_refused(send(kubectl, "create", "--raw", path, body=body), message)


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
    answer = send(kubectl, "create", body=shop(**STATEFUL | {"memoryScaling": {"max": "1Gi"}} | memory))
    assert_refused(answer, message)
    assert answer.stderr.count("Invalid value") == 1


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: f"{broken.field}: {broken.message}")
def test_what_breaks_a_rule_is_refused_in_the_operators_words_and_what_keeps_to_it_is_taken(
    kubectl: Kubectl, broken: Broken
) -> None:
    refused, taken = (
        send(kubectl, "create", "--dry-run=server", body=shop(**spec)) for spec in (broken.spec, broken.mended)
    )
    assert refused.returncode == 1
    [line] = [each for each in refused.stderr.splitlines() if broken.message in each]
    assert broken.field in line
    assert_taken(taken)


SIZES: list[dict[str, Any]] = [
    {"memory": "512M", "maxItemSize": "1.5Mi"},
    {"memory": 2**33, "maxItemSize": 2**29, "extstore": {"size": 10**11, "volume": {"emptyDir": {}}}},
    {"memory": "1e9", "extstore": {"size": "1.5Ti", "itemSizeMin": ".5Ki", "volume": {"emptyDir": {}}}},
    STATEFUL | {"memory": "10Ti", "memoryScaling": {"max": 10 * 2**40}},
]


@pytest.mark.parametrize("spec", SIZES)
def test_a_size_is_any_quantity_of_bytes_and_stored_as_it_was_written(kubectl: Kubectl, spec: dict[str, Any]) -> None:
    kubectl.apply(shop(**spec), create=True)
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
        assert_taken(send(kubectl, "apply", "--server-side", body=shop(size=0, **spec)))
    assert stored(kubectl)["spec"] == FILLED_IN | {"size": 0} | then | left


@pytest.mark.cluster("kubernetes")
@pytest.mark.parametrize(
    ("field", "needed"),
    [("networkPolicy", {"ingress": []}), ("auth", {"secretName": "a"}), ("tls", {"secretName": "a"})],
)
def test_an_object_that_needs_a_field_is_not_taken_for_left_out_when_that_goes(
    kubectl: Kubectl, field: str, needed: dict[str, Any]
) -> None:
    assert_taken(send(kubectl, "apply", "--server-side", body=shop(size=0, **{field: needed})))
    assert_refused(send(kubectl, "apply", "--server-side", body=shop(size=0, **{field: {}})), f"spec.{field}")
    assert needed.items() <= stored(kubectl)["spec"][field].items()


def test_a_change_that_leaves_a_contradiction_is_refused_and_one_that_takes_it_away_is_not(kubectl: Kubectl) -> None:
    kubectl.apply(shop(service={"type": "ClusterIP"}, rollout={"maxSurge": 1}), create=True)
    assert_refused(patch(kubectl, "spec", STATEFUL), "spec.service.type: Invalid value:")
    assert_taken(patch(kubectl, "spec", STATEFUL | {"service": {"type": None}, "rollout": None}))
    assert stored(kubectl)["spec"] == FILLED_IN | STATEFUL


def test_the_longest_name_and_a_generated_one_are_accepted(kubectl: Kubectl) -> None:
    kubectl.apply(memcached("x" * 52), memcached("") | {"metadata": {"generateName": "shop-"}}, create=True)


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
    kubectl.apply(memcached("shop") | {"status": {"conditions": []}}, create=True)
    if written is not None:
        assert_taken(patch(kubectl, "status", written, "--subresource=status"))
    assert stored(kubectl)["status"]["conditions"] == [
        {
            "type": type_,
            "status": "Unknown",
            "reason": "Pending",
            "message": "Waiting for the operator.",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        }
        for type_ in ("Ready", "Available", "Progressing", "Degraded", "Serving", "Discouraged")
    ]
    assert kubectl.run("wait", "mcd/shop", "--for=condition=Ready", "--timeout=1s", check=False).returncode == 1
    kubectl("wait", "mcd/shop", "--for=condition=Ready=Unknown", "--timeout=10s")


@pytest.mark.cluster("kubernetes")
def test_get_shows_size_ready_available_and_age_and_what_runs_with_wide(kubectl: Kubectl) -> None:
    kubectl.apply(shop(image="memcached:1.6.45"), create=True)
    assert table(kubectl)[1][:2] == ["shop", "1"]

    status = {**STATUS, "image": "memcached:1.6.44", "memory": "64Mi", "workload": "Deployment"}
    assert_taken(patch(kubectl, "status", status, "--subresource=status"))
    (plain, row), (wide, wide_row) = table(kubectl), table(kubectl, "--output=wide")
    assert plain == ["NAME", "SIZE", "READY", "AVAILABLE", "AGE"]
    assert row[:4] == ["shop", "1", "0", "False"]
    assert wide == [*plain, "WORKLOAD", "MEMORY", "IMAGE"]
    assert wide_row[-3:] == ["Deployment", "64Mi", "memcached:1.6.44"]
    assert "memcached.cache.example.com/shop" in kubectl("get", "all")
    assert stored(kubectl)["status"] == status


def table(kubectl: Kubectl, *words: str) -> list[list[str]]:
    """Header and row of what `kubectl get` prints of the Memcached."""
    return [line.split() for line in kubectl("get", "mcd", *words).splitlines()]


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
    # A schema is published a moment after the CRD was taken.
    text = eventually(lambda: kubectl("explain", path, check=False), bool, what="a schema for people")
    assert [word for word in words if word not in text] == []
    assert "<no description>" not in text
