"""Deployments and ReplicaSets."""

from __future__ import annotations

from typing import Any

import pytest

from kube_simulator.resources import Resource
from kube_simulator.values import Json
from tests.unit.kube_simulator.kinds.kinds_support import LABEL_VALUE, an, created, problems, resource, updated

DEPLOYMENTS, REPLICA_SETS = resource("deployments.apps"), resource("replicasets.apps")
BOTH = pytest.mark.parametrize("kind", [DEPLOYMENTS, REPLICA_SETS], ids=["deployment", "replicaset"])
ROLLING = "spec.strategy.rollingUpdate"
NOT_NEGATIVE = "must be greater than or equal to 0"
PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)


def workload(kind: Resource = DEPLOYMENTS, **spec: Any) -> Json:
    """One that is good but for these fields."""
    containers = [{"name": "a", "image": "b"}]
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}}
    return created(kind, an(kind, spec={"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec}))


def wrong(kind: Resource = DEPLOYMENTS, **spec: Any) -> set[str]:
    return problems(kind, workload(kind, **spec))


def test_a_deployment_gets_its_defaults() -> None:
    stored = workload(paused=False, minReadySeconds=0)
    spec = {key: value for key, value in stored["spec"].items() if key not in ("selector", "template")}
    assert spec == {
        "replicas": 1,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    }
    assert stored["spec"]["template"]["spec"]["containers"][0]["terminationMessagePolicy"] == "File"
    assert stored["status"] == {}
    assert stored["metadata"]["generation"] == 1


def test_a_replica_set_has_fewer() -> None:
    stored = workload(REPLICA_SETS)
    assert set(stored["spec"]) == {"replicas", "selector", "template"}
    assert (stored["spec"]["replicas"], stored["status"]) == (1, {"replicas": 0})


def test_what_is_said_is_kept() -> None:
    rolling = {"maxSurge": 0, "maxUnavailable": 1}
    spec = workload(replicas=0, strategy={"rollingUpdate": rolling}, revisionHistoryLimit=0)["spec"]
    assert (spec["replicas"], spec["revisionHistoryLimit"], spec["strategy"]["rollingUpdate"]) == (0, 0, rolling)
    assert workload(strategy={"type": "Recreate"})["spec"]["strategy"] == {"type": "Recreate"}


@BOTH
def test_a_good_one_has_nothing_wrong_with_it(kind: Resource) -> None:
    assert wrong(kind) == set()
    assert wrong(kind, replicas=0, minReadySeconds=5) == set()


@BOTH
def test_the_selector_selects_the_template_s_pods(kind: Resource) -> None:
    field = "spec.template.metadata.labels"
    stray = "`selector` does not match template `labels`"
    labels = '{"a":"b"}'
    assert wrong(kind, selector={"matchLabels": {"a": "c"}}) == {f"{field}: Invalid value: {labels}: {stray}"}
    assert wrong(kind, selector=None) == {
        "spec.selector: Required value",
        f"{field}: Invalid value: {labels}: {stray}",
    }
    assert wrong(kind, selector={}) == {"spec.selector: Invalid value: {}: empty selector is invalid for deployment"}
    assert wrong(kind, template=None) == {
        f"{field}: Invalid value: null: {stray}",
        "spec.template.spec.containers: Required value",
    }
    assert wrong(kind, selector={"matchLabels": {"a": "x y"}}) == {
        f'spec.selector.matchLabels: Invalid value: "x y": {LABEL_VALUE}',
        'spec.selector: Invalid value: {"matchLabels":{"a":"x y"}}: invalid label selector',
    }


@BOTH
def test_the_selector_stays(kind: Resource) -> None:
    old = workload(kind)
    spec = {**old["spec"], "selector": {"matchLabels": {"a": "b", "c": "d"}}}
    spec["template"] = {**spec["template"], "metadata": {"labels": {"a": "b", "c": "d"}}}
    assert problems(kind, updated(kind, old, {"spec": spec}), old) == {
        'spec.selector: Invalid value: {"matchLabels":{"a":"b","c":"d"}}: field is immutable'
    }


@BOTH
def test_numbers_are_not_negative(kind: Resource) -> None:
    assert wrong(kind, replicas=-1, minReadySeconds=-1) == {
        f"spec.replicas: Invalid value: -1: {NOT_NEGATIVE}",
        f"spec.minReadySeconds: Invalid value: -1: {NOT_NEGATIVE}",
    }
    assert wrong(revisionHistoryLimit=-1) == {f"spec.revisionHistoryLimit: Invalid value: -1: {NOT_NEGATIVE}"}


def test_a_deployment_has_longer_than_its_pods_to_get_ready() -> None:
    longer = "must be greater than minReadySeconds"
    assert wrong(progressDeadlineSeconds=0) == {f"spec.progressDeadlineSeconds: Invalid value: 0: {longer}"}
    assert wrong(minReadySeconds=600) == {f"spec.progressDeadlineSeconds: Invalid value: 600: {longer}"}
    assert wrong(minReadySeconds=599) == set()


@pytest.mark.parametrize(
    ("strategy", "messages"),
    [
        (
            {"type": "Foo"},
            {
                'spec.strategy: Unsupported value: {"Type":"Foo","RollingUpdate":null}: supported '
                'values: "Recreate", "RollingUpdate"'
            },
        ),
        (
            {"type": "Recreate", "rollingUpdate": {}},
            {f"{ROLLING}: Forbidden: may not be specified when strategy `type` is 'Recreate'"},
        ),
        (
            {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}},
            {f"{ROLLING}.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"},
        ),
        (
            {"rollingUpdate": {"maxSurge": "0%", "maxUnavailable": "0%"}},
            {f'{ROLLING}.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0'},
        ),
        (
            {"rollingUpdate": {"maxSurge": "x", "maxUnavailable": -1}},
            {
                f'{ROLLING}.maxSurge: Invalid value: "x": {PERCENT}',
                f"{ROLLING}.maxUnavailable: Invalid value: -1: {NOT_NEGATIVE}",
            },
        ),
        ({"rollingUpdate": {"maxSurge": "200%", "maxUnavailable": 3}}, set()),
    ],
)
def test_a_rollout_can_go_on(strategy: Json, messages: set[str]) -> None:
    assert wrong(strategy=strategy) == messages


def test_the_template_is_held_to_the_rules_of_pods() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a"}], "restartPolicy": "Never"}}
    assert wrong(template=template) == {
        "spec.template.spec.containers[0].image: Required value",
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
    }


@BOTH
def test_the_generation_counts_changes_of_the_spec_alone(kind: Resource) -> None:
    old = workload(kind)
    assert updated(kind, old, {"metadata": {**old["metadata"], "labels": {"a": "b"}}})["metadata"]["generation"] == 1
    assert updated(kind, old, {"status": {"replicas": 5}})["metadata"]["generation"] == 1
    undefaulted = {key: old["spec"][key] for key in ("selector", "template")}
    assert updated(kind, old, {"spec": undefaulted})["metadata"]["generation"] == 1, "the defaults are the same"
    scaled = updated(kind, old, {"spec": {**old["spec"], "replicas": 2}})
    assert scaled["metadata"]["generation"] == 2
    assert updated(kind, scaled, {"spec": {**old["spec"], "replicas": 3}})["metadata"]["generation"] == 3


@BOTH
def test_the_status_is_written_by_its_subresource_alone(kind: Resource) -> None:
    old = workload(kind)
    assert updated(kind, old, {"status": {"replicas": 5}})["status"] == old["status"]
    new = updated(kind, old, {"status": {"replicas": 5, "readyReplicas": 0}, "spec": {"replicas": 9}}, "status")
    assert (new["status"], new["spec"], new["metadata"]) == ({"replicas": 5}, old["spec"], old["metadata"])


def test_none_are_left_out_of_a_deployment_s_status_and_not_of_a_replica_set_s() -> None:
    status = {"replicas": 0, "readyReplicas": 0, "observedGeneration": 0, "terminatingReplicas": 0, "conditions": []}
    assert updated(DEPLOYMENTS, workload(), {"status": status}, "status")["status"] == {"terminatingReplicas": 0}
    stored = updated(REPLICA_SETS, workload(REPLICA_SETS), {"status": status}, "status")["status"]
    assert stored == {"replicas": 0, "terminatingReplicas": 0}


def test_a_deployment_s_status_may_be_written_with_annotations_and_without_labels() -> None:
    old = workload()
    metadata = {**old["metadata"], "annotations": {"a": "b"}, "labels": {"a": "b"}}
    assert updated(DEPLOYMENTS, old, {"metadata": metadata}, "status")["metadata"] == {
        **old["metadata"],
        "annotations": {"a": "b"},
    }


@pytest.mark.parametrize("kind", [DEPLOYMENTS, REPLICA_SETS], ids=["deployment", "replicaset"])
def test_a_spec_is_judged_when_it_changes(kind: Resource) -> None:
    bad = created(kind, an(kind, spec={"replicas": -1, "selector": {}, "template": {}}))
    said = problems(kind, bad)
    assert any(each.startswith("spec.replicas: ") for each in said)
    assert problems(kind, {**bad, "status": {"readyReplicas": 1}}, bad) == set()
    changed = {**bad, "spec": {**bad["spec"], "minReadySeconds": 1}}
    assert said <= problems(kind, changed, bad)
