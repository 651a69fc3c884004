"""Memcacheds that cannot be acted on: each is told what is wrong with it, and none stops the others.

The CRD lets no bad specification in. But objects may be older than their schema, so it is loosened for the last tests
here; and what the CRD lets in, the API server may still refuse in a Deployment.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from operator_runtime.testing.waiting import until
from tests.cluster import Cluster
from tests.integration.any_schema import any_schema
from tests.integration.conftest import memcached
from tests.integration.oracle import (
    catch_up,
    complete,
    condition,
    deployment_writes,
    make_ready,
    pods_of,
    wait,
    wait_condition,
    writes,
)
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess

pytestmark = pytest.mark.core

OUR_REGISTRY = "object.spec.template.spec.containers.all(c, !c.image.startsWith('forbidden.example.com'))"
POLICY = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["apps"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["deployments"],
                }
            ]
        },
        "validations": [
            {"expression": OUR_REGISTRY, "message": "that registry is not for us"},
        ],
    },
}


@pytest.fixture
def picky(kubectl: Kubectl, operator: OperatorProcess) -> Iterator[Kubectl]:
    """kubectl in a namespace where the API server refuses Deployments with images of one registry."""
    assert operator.pid
    meta = {"name": kubectl.namespace}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": kubectl.namespace}}
    binding = {
        "apiVersion": POLICY["apiVersion"],
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": meta,
        "spec": {
            "policyName": kubectl.namespace,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": selector},
        },
    }
    kubectl.apply(POLICY | {"metadata": meta}, binding)
    probe = ("create", "deployment", "probe", "--image=forbidden.example.com/x", "--dry-run=server")
    until("the policy never came into force", lambda: kubectl.run(*probe, check=False).returncode != 0)
    yield kubectl
    for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
        kubectl("delete", kind, kubectl.namespace)


@pytest.mark.cluster("kubernetes")  # the simulator has no policies
def test_an_image_that_the_api_server_refuses_is_told_and_mended(picky: Kubectl) -> None:
    picky.apply(memcached("shop", 1, image="forbidden.example.com/memcached"), memcached("good", 1), create=True)
    assert "that registry is not for us" in message(picky, "shop", "DeniedByPolicy")
    assert condition(picky, "shop", "Available")["status"] == "False"
    wait(picky, "mc/good", ".status.replicas", 1)

    picky("patch", "mc/shop", "--type=merge", "-p", '{"spec":{"image":"memcached:1.6.45"}}')
    wait(picky, "mc/shop", ".status.replicas", 1)
    make_ready(picky, pods_of(picky, "shop"))
    wait_condition(picky, "shop", "Progressing", "Complete")
    assert condition(picky, "shop", "Degraded")["status"] == "False"


@pytest.mark.cluster("kubernetes")  # the simulator has no policies
def test_servers_go_on_while_the_api_server_refuses_a_new_image(picky: Kubectl) -> None:
    complete(picky, "shop", 1)
    mark = picky.cluster.audit_mark()
    picky("patch", "mc/shop", "--type=merge", "-p", '{"spec":{"image":"forbidden.example.com/memcached"}}')
    assert "that registry is not for us" in message(picky, "shop", "DeniedByPolicy")
    assert "deployments 422" in deployment_writes(picky, "shop", mark)
    mark = picky.cluster.audit_mark()
    found = picky.get("mc", "shop")["status"]
    assert (found["nodes"], found["readyReplicas"]) == (pods_of(picky, "shop"), 1)
    assert condition(picky, "shop", "Available")["status"] == "True"
    picky("delete", "pods", *pods_of(picky, "shop"))
    catch_up(picky, pods=True)
    # Asked once: the next time is with a change, or much later, and not with each event of a pod.
    assert set(deployment_writes(picky, "shop", mark)) == set()


# Right field by field, and too much for the rules of the schema, so that the API server lets them in.
CONTRADICTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "item": ({"maxItemSize": "64Mi"}, "spec.maxItemSize: must be at most 32Mi, half of spec.memory 64Mi; lower it or"),
    "chunk": ({"maxItemSize": "700Ki"}, "spec.maxItemSize: must be a multiple of 512Ki, or of N KiB with"),
    "memory": (
        {"extraArgs": ["-v", "-m128"]},
        "spec.extraArgs[1]: must not contain -m: it would undo spec.memory; set",
    ),
    "tls": (
        {"extraArgs": ["-o", "ssl_key=/k"]},
        "spec.extraArgs[1]: must not contain ssl_key: spec.tls says how servers spe",
    ),
    "typo": (
        {"extraArgs": ["--thread-count=4"]},
        "spec.extraArgs[0]: must be a flag of memcached, as listed by",
    ),
    "limit": (
        {"memory": "1Gi", "resources": {"limits": {"memory": "1Gi"}}},
        "needs with spec.memory 1Gi, spec.maxConnections 1024 and spec.threads 4; raise the limit or lower",
    ),
    "more": (
        {"resources": {"requests": {"cpu": 2}, "limits": {"cpu": "1"}}},
        "spec.resources.requests[cpu]: must be at",
    ),
}


def test_fields_that_contradict_each_other_are_told_and_the_servers_stay_as_they_are(
    kubectl: Kubectl, operator: OperatorProcess
) -> None:
    assert operator.pid
    complete(kubectl, "shop", 1)
    before = kubectl.get("deployment", "shop")["metadata"]["generation"]
    kubectl("patch", "mc/shop", "--type=merge", "-p", '{"spec":{"memory":"32Mi","maxItemSize":"17Mi"}}')
    kubectl.apply(*(memcached(name) | {"spec": spec} for name, (spec, _) in CONTRADICTIONS.items()), create=True)
    for name, (_, words) in CONTRADICTIONS.items():
        assert words in message(kubectl, name), name
    assert message(kubectl, "shop").startswith("spec.maxItemSize: must be at most 16Mi, half of spec.memory 32Mi;")
    assert kubectl("get", "deployments,statefulsets", "-o=name").split() == ["deployment.apps/shop"]
    assert kubectl.get("deployment", "shop")["metadata"]["generation"] == before
    assert kubectl.get("mc", "shop")["status"]["readyReplicas"] == 1


@pytest.fixture(scope="module")
def loosened(installed: Cluster) -> Iterator[Cluster]:
    """The CRD lets everything in; put back when the module's tests are done and their objects gone."""
    with any_schema(installed):
        yield installed
        installed.kubectl("delete", "mc", "--all", "--all-namespaces", "--timeout=60s")


@pytest.fixture
def loose(loosened: Cluster, namespace: str, operator: OperatorProcess) -> Kubectl:
    """kubectl in a fresh namespace, where anything passes for a Memcached."""
    assert operator.pid
    return Kubectl(loosened, namespace)


def message(kubectl: Kubectl, name: str, reason: str = "InvalidSpec") -> str:
    """What the condition Degraded says once it has that reason."""
    return str(wait_condition(kubectl, name, "Degraded", reason)["message"])


BAD: dict[str, tuple[object, str]] = {
    "text": ({"size": "3"}, 'spec.size: must be a whole number from 0 to 2147483647, got "3" (a string)'),
    "truth": ({"size": True}, "spec.size: must be a whole number from 0 to 2147483647, got true (a boolean)"),
    "fraction": ({"size": 1.5}, "spec.size: must be a whole number from 0 to 2147483647, got 1.5"),
    "negative": ({"size": -1}, "spec.size: must be a whole number from 0 to 2147483647, got -1"),
    "huge": ({"size": 2**31}, "spec.size: must be a whole number from 0 to 2147483647, got 2147483648"),
    "list": ([3], 'spec: must be an object such as {"size": 3}, got [3] (a list)'),
    "image": ({"image": "memcached: 1"}, "spec.image: must be an image reference"),
    "workload": ({"workload": "DaemonSet"}, "spec.workload: must be Deployment or StatefulSet"),
    "budget": (
        {"disruptionBudget": {"maxUnavailable": "120%"}},
        'spec.disruptionBudget.maxUnavailable: must be a whole number from 0 to 2147483647, or a share from "0%" to '
        '"100%" in whole percent, got "120%" (a string)',
    ),
    "drain": ({"drainSeconds": -1}, "spec.drainSeconds: must be a whole number of seconds from 0 to 86400, got -1"),
    "pods": (
        {"podTemplate": {"spec": {"containers": [{"name": "memcached", "args": ["-v"]}]}}},
        "spec.podTemplate.spec.containers[memcached].args: use spec.extraArgs",
    ),
    "labels": ({"service": {"labels": {"tier": 1}}}, "spec.service.labels[tier]: must be a string"),
    "size": ({"memory": 64}, 'spec.memory: must be a string of whole Mi or Gi from 8Mi on, such as "64Mi" or "4Gi"'),
    "threads": ({"threads": 0}, "spec.threads: must be a whole number from 1 to 64, got 0"),
    "words": ({"extraArgs": ["-R", 20]}, "spec.extraArgs[1]: must be a string of 1 to 1024 characters; put numbers in"),
    "amount": (
        {"resources": {"limits": {"memory": "1 GB"}}},
        'spec.resources.limits[memory]: must be a quantity such as "500m", "1.5Gi" or 2',
    ),
    "pace": ({"rollout": {"pauseSeconds": -1}}, "spec.rollout.pauseSeconds: must be a whole number of seconds from 0"),
    "peers": ({"networkPolicy": {}}, "spec.networkPolicy.allowFrom: must be a list of peers such as"),
    "stateful": (
        {"workload": "StatefulSet", "service": {"type": "ClusterIP"}},
        "spec.service.type: must be Headless when spec.workload is",
    ),
    "surge": (
        {"workload": "StatefulSet", "rollout": {"maxSurge": 1}},
        "spec.rollout.maxSurge: must be omitted when spec.workload is StatefulSet, whose servers are replaced one",
    ),
    "none": (
        {"rollout": {"maxUnavailable": "0%"}},
        "spec.rollout.maxUnavailable: must be 1 or more when spec.rollout",
    ),
    "both": ({"size": "x", "image": 7}, "spec.image: must be an image reference"),
}


def test_each_bad_specification_is_named_in_its_condition_and_stops_no_other(loose: Kubectl) -> None:
    everyone = [memcached(name) | {"spec": spec} for name, (spec, _) in BAD.items()]
    loose.apply(*everyone[:4], memcached("good", 2), *everyone[4:], create=True)
    for name, (_, words) in BAD.items():
        assert words in message(loose, name)
    wait(loose, "mc/good", ".status.replicas", 2)
    assert loose("get", "deployments", "-o=name").split() == ["deployment.apps/good"]

    bad = loose.get("mc", "text")["status"]
    available = next(each for each in bad["conditions"] if each["type"] == "Available")
    assert (available["status"], bad["nodes"], bad["observedGeneration"]) == ("Unknown", [], 1)
    # Said, and not written again and again.
    mark = loose.cluster.audit_mark()
    catch_up(loose)
    assert [name for name in BAD if writes(loose, name, mark)] == []


def test_a_memcached_that_turns_bad_keeps_its_servers_until_it_is_mended(loose: Kubectl) -> None:
    complete(loose, "shop", 2)
    loose("patch", "mc/shop", "--type=merge", "-p", '{"spec":{"size":"many"}}')
    assert 'got "many"' in message(loose, "shop")
    found = loose.get("mc", "shop")["status"]
    assert (found["nodes"], found["readyReplicas"]) == (pods_of(loose, "shop"), 2)
    assert loose.get("deployment", "shop")["spec"]["replicas"] == 2

    loose("patch", "mc/shop", "--type=merge", "-p", '{"spec":{"size":1}}')
    wait(loose, "mc/shop", ".status.replicas", 1)
    assert condition(loose, "shop", "Degraded")["status"] == "False"


def test_a_specification_with_more_than_we_know_is_acted_on(loose: Kubectl) -> None:
    newer: dict[str, Any] = memcached("shop", 1, fromTheFuture={"enabled": True})
    loose.apply(newer, create=True)
    wait(loose, "mc/shop", ".status.replicas", 1)


def test_a_status_that_cannot_be_read_is_written_anew(loose: Kubectl) -> None:
    complete(loose, "shop", 1)
    for nonsense in ({"nodes": 5, "conditions": "none"}, {"conditions": [{"type": 1}]}, {"replicas": "all"}):
        body = json.dumps({"status": nonsense})
        loose("patch", "mc/shop", "--subresource=status", "--type=merge", "-p", body)
        wait(loose, "mc/shop", ".status.replicas", 1)
        wait_condition(loose, "shop", "Progressing", "Complete")
        assert loose.get("mc", "shop")["status"]["nodes"] == pods_of(loose, "shop")


def test_a_name_that_makes_no_deployment_is_told_what_the_api_server_said(loose: Kubectl) -> None:
    # Good for a Memcached, but too long for the value of a label.
    name = "x" * 70
    loose.apply(memcached(name, 1), memcached("good", 0), create=True)
    assert "must be no more than 63" in message(loose, name)
    wait_condition(loose, "good", "Progressing", "Complete")
