"""Why servers of a StatefulSet are missing is told, with what to do about it, and over once that is done."""

from __future__ import annotations

import re

import pytest

from tests.integration.conftest import memcached
from tests.integration.oracle import complete, condition, wait, wait_condition
from tests.kubectl_in_namespace import Kubectl

pytestmark = [
    pytest.mark.cluster("kubernetes"),  # its own StatefulSet controller decides
    pytest.mark.usefixtures("operator"),
]


def test_a_pod_that_was_relabelled_is_named_and_its_labels_bring_it_back(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 2, workload="StatefulSet")
    uid = kubectl.get("pod", "shop-1")["metadata"]["uid"]
    kubectl("label", "pod/shop-1", "memcached_cr-")
    reported = wait_condition(kubectl, "shop", "Degraded", "NotControlled")["message"]
    assert "Pod shop-1 blocks the server of that name: it lacks the labels app=memcached," in reported
    assert reported in condition(kubectl, "shop", "Available")["message"]
    found = re.search("`kubectl (label [^`]+)`", reported)
    assert found is not None
    kubectl(*found[1].split())
    wait(kubectl, "mcd/shop", ".status.readyReplicas", 2)
    wait_condition(kubectl, "shop", "Degraded", "AsExpected")
    assert kubectl.get("pod", "shop-1")["metadata"]["uid"] == uid


def quota(kubectl: Kubectl, **hard: str) -> None:
    document = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": hard}}
    kubectl.apply(document)
    wait(kubectl, "resourcequota/few", ".status.used.pods", 0)


def test_a_quota_that_a_stateful_set_meets_is_told_in_its_events_words_until_there_is_room(kubectl: Kubectl) -> None:
    quota(kubectl, pods="1")
    kubectl.apply(memcached("shop", 2, workload="StatefulSet"), create=True)
    reported = wait_condition(kubectl, "shop", "Degraded", "QuotaExceeded")
    assert re.match("[Cc]reate Pod shop-[01] in StatefulSet shop failed error: ", reported["message"])
    assert "is forbidden: exceeded quota: few, requested: pods=1" in reported["message"]
    assert condition(kubectl, "shop", "Ready")["reason"] == "QuotaExceeded"
    assert reported["message"] in condition(kubectl, "shop", "Available")["message"]
    kubectl("delete", "resourcequota", "few")
    wait(kubectl, "mcd/shop", ".status.replicas", 2)
    wait_condition(kubectl, "shop", "Degraded", "AsExpected")


TLS = {"workload": "StatefulSet", "tls": {"secretName": "shop-tls"}}


def test_a_quota_that_asks_for_a_limit_is_met_by_the_field_that_the_message_names(kubectl: Kubectl) -> None:
    quota(kubectl, pods="9", **{"limits.cpu": "9"})
    kubectl.apply(memcached("shop", 1, **TLS), create=True)
    reported = wait_condition(kubectl, "shop", "Degraded", "QuotaExceeded")["message"]
    assert re.search(
        r"must specify limits\.cpu for: memcached,reloader\. Set spec\.resources\.limits\.cpu\.$", reported
    ), reported
    kubectl.apply(memcached("shop", 1, **TLS, resources={"limits": {"cpu": "1"}}))
    wait(kubectl, "mcd/shop", ".status.replicas", 1)
    wait_condition(kubectl, "shop", "Degraded", "AsExpected")


def test_a_limit_range_that_the_sidecar_meets_is_told_by_its_field(kubectl: Kubectl) -> None:
    limit = {"type": "Container", "min": {"cpu": "20m"}}
    kubectl.apply(
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "least"}, "spec": {"limits": [limit]}}
    )
    kubectl.apply(memcached("shop", 1, **TLS), create=True)
    reported = wait_condition(kubectl, "shop", "Degraded", "DeniedByPolicy")["message"]
    assert "spec.podTemplate.spec.initContainers[reloader].resources.requests.cpu." in reported, reported
    sidecar = {"name": "reloader", "resources": {"requests": {"cpu": "20m"}}}
    kubectl.apply(memcached("shop", 1, **TLS, podTemplate={"spec": {"initContainers": [sidecar]}}))
    wait(kubectl, "mcd/shop", ".status.replicas", 1)
    wait_condition(kubectl, "shop", "Degraded", "AsExpected")
