"""Objects that choke a strict parser: one bad object never stops the others, and something says what is wrong with it.

Here is what is too large or too deep, and what was stored before the schema was tightened.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from operator_runtime.testing.waiting import until
from tests.cluster import Cluster
from tests.conformance.api import Api, Json
from tests.integration.conftest import CRD, Operators, memcached
from tests.integration.monitoring import METRICS, Scrape, url_of
from tests.integration.oracle import (
    catch_up,
    complete,
    make_ready,
    pods_of,
    wait,
    wait_condition,
)
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess

pytestmark = pytest.mark.cluster("kubernetes")  # the simulator's own decoder does not go that far

MEMCACHEDS = "/apis/cache.example.com/v1alpha1/namespaces/{}/memcacheds"
PODS = "/api/v1/namespaces/{}/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{}/deployments"
# All annotations of an object may have 256 KiB together.
LARGE = "x" * 250 * 1024
# Quotes, a control character, both directions of writing, and what is two units in UTF-16.
UNICODE = 'Größe "7"\t\u0001 \u202e 缓存 🗄️'
# Three times what a decoder on Python's stack takes.
LEVELS_STORED = 3000
CRD_NAME = "memcacheds.cache.example.com"
LOOSE = [
    {
        "op": "replace",
        "path": "/spec/versions/0/schema/openAPIV3Schema",
        "value": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
    # It wants a number for the size, whatever the schema says.
    {"op": "remove", "path": "/spec/versions/0/subresources/scale"},
]


@pytest.fixture
def api(kubectl: Kubectl) -> Iterator[Api]:
    client = Api(kubectl.cluster, kubectl.cluster.kubeconfig_path)
    yield client
    client.close()


def start(operators: Operators, kubectl: Kubectl) -> tuple[OperatorProcess, str]:
    """An operator for the namespace, and where its metrics are."""
    operator = operators.start("-n", kubectl.namespace, METRICS, OPERATOR_NAME="memcached-operator")
    return operator, url_of(operator, "metrics")


def deep(name: str, spec: Json) -> bytes:
    """A Memcached in whose specification a deep object takes the place of None. No encoder here goes that far."""
    value = '{"a":' * LEVELS_STORED + "1" + "}" * LEVELS_STORED
    return json.dumps(memcached(name) | {"spec": spec}).replace("null", value).encode()


@contextmanager
def any_schema(cluster: Cluster) -> Iterator[None]:
    """Until the end of the block everything passes for a Memcached, as before a schema was tightened."""
    probe = json.dumps(memcached("probe", "three"))

    def lets_in() -> bool:
        return cluster.kubectl("create", "--dry-run=server", "-f", "-", input=probe, check=False).returncode == 0

    cluster.kubectl("patch", "crd", CRD_NAME, "--type=json", "-p", json.dumps(LOOSE))
    try:
        until("the loosened schema never came into force", lets_in)
        yield
    finally:
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRD))
        until("the schema never came into force again", lambda: not lets_in())


def test_specifications_that_are_nested_deeper_than_a_stack(kubectl: Kubectl, operators: Operators, api: Api) -> None:
    path = MEMCACHEDS.format(kubectl.namespace)
    with any_schema(kubectl.cluster):
        operator, metrics = start(operators, kubectl)
        operator.ready()
        assert api.post(path, deep("bad", {"size": None})).status == 201
        assert api.post(path, deep("unknown", {"size": 1, "field": None})).status == 201
        complete(kubectl, "good", 1)
        wait(kubectl, "mcd/unknown", ".status.replicas", 1)
        degraded = '.status.conditions[?(@.type=="Degraded")]'
        wait(kubectl, "mcd/bad", f"{degraded}.reason", "InvalidSpec")
        found = kubectl("get", "mcd/bad", f"-o=jsonpath={{{degraded}.message}}")
        assert found.startswith('spec.size: must be a whole number from 0 to 2147483647, got {"a": {"a": ')
        # In a list, too, and as the answer to a write of the status.
        kubectl.cluster.restart_apiserver()
        api.close()
        kubectl("scale", "deployment/unknown", "--replicas=3")
        assert api.merge(f"{path}/unknown", {"spec": {"size": 2}}).status == 200
        wait(kubectl, "mcd/unknown", ".status.replicas", 2)
        wait(kubectl, "deployment/unknown", ".spec.replicas", 2)
        api.merge(f"{path}/bad", {"spec": {"size": 1}}).expect(200)
        wait(kubectl, "mcd/bad", ".status.replicas", 1)
        kubectl("delete", "mcd", "--all", "--timeout=45s")
    figures = Scrape(metrics)
    assert sum(figures.values("watch_stream_relists_total", resource=CRD_NAME)) >= 1
    assert sum(figures.values("watch_stream_unreadable_objects_total")) == 0
    assert sum(figures.values("watch_stream_restarts_total", cause="malformed")) == 0
    assert figures.value("controller_runtime_reconcile_panics_total") == 0


def test_objects_with_as_much_metadata_as_may_be(kubectl: Kubectl, operators: Operators, api: Api) -> None:
    namespace = kubectl.namespace
    many = {f"example.com/label-{number}": f"value-{number}" for number in range(5000)}
    crowded = memcached("crowded", 2)
    crowded["metadata"] |= {"labels": many, "annotations": {"example.com/note": LARGE, "unicode": UNICODE}}
    api.post(MEMCACHEDS.format(namespace), crowded).expect(201)
    operator, metrics = start(operators, kubectl)
    operator.ready()
    wait(kubectl, "mcd/crowded", ".status.replicas", 2)

    def crowd(path: str) -> None:
        annotations = {"example.com/note": LARGE, "unicode": UNICODE}
        api.merge(path.format(namespace), {"metadata": {"annotations": annotations}}).expect(200)

    crowd(f"{DEPLOYMENTS}/crowded")
    api.merge(f"{DEPLOYMENTS}/crowded".format(namespace), {"metadata": {"labels": many}}).expect(200)
    pods = pods_of(kubectl, "crowded")
    for pod in pods:
        crowd(f"{PODS}/{pod}")
        api.merge(f"{PODS}/{pod}".format(namespace), {"metadata": {"labels": many}}).expect(200)
    make_ready(kubectl, pods)
    wait_condition(kubectl, "crowded", "Progressing", "Complete")
    before = kubectl.get("deployment/crowded")["metadata"]["generation"]
    kubectl("scale", "deployment/crowded", "--replicas=7")
    catch_up(kubectl, pods=True)
    wait(kubectl, "deployment/crowded", ".spec.replicas", 2)
    live = kubectl.get("deployment/crowded")["metadata"]
    assert live["generation"] == before + 2, "scaled, and put right"
    assert live["annotations"]["unicode"] == UNICODE
    assert live["annotations"]["example.com/note"] == LARGE
    assert live["labels"].items() > many.items()
    assert sum(Scrape(metrics).values("watch_stream_unreadable_objects_total")) == 0
