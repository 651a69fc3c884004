"""The metrics of a running operator: what Prometheus sees."""

from __future__ import annotations

from operator_runtime.testing.waiting import until
from tests.integration.conftest import Operators, memcached
from tests.integration.monitoring import METRICS, Scrape, url_of
from tests.integration.oracle import wait_condition
from tests.kubectl_in_namespace import Kubectl


def test_work_writes_and_repairs_are_counted_as_they_happen(kubectl: Kubectl, operators: Operators) -> None:
    operator = operators.start("-n", kubectl.namespace, METRICS, OPERATOR_NAME=kubectl.namespace).ready()
    metrics = url_of(operator, "metrics")
    before = Scrape(metrics)
    for result in ("success", "error", "requeue", "requeue_after"):
        assert before.value("controller_runtime_reconcile_total", result=result) == 0
    assert set(before.values("api_writes_total")) == {0}
    assert before.value("rest_client_requests_total", code="403", method="PATCH") == 0
    kubectl.apply(memcached("cache", 1))
    wait_condition(kubectl, "cache", "Progressing", "Deploying")
    kubectl("scale", "deployment/cache", "--replicas=3")
    kubectl("set", "image", "deployment/cache", "memcached=memcached:0")
    until("the drift is not put right", lambda: len(_repaired(metrics)) == 2)
    assert set(_repaired(metrics)) == {
        ("Deployment", "spec.replicas"),
        ("Deployment", "spec.template.spec.containers.image"),
    }
    after = Scrape(metrics)
    assert after.value("api_writes_total", resource="deployments.apps", verb="create") == 1
    assert after.value("api_writes_total", resource="deployments.apps", verb="patch") >= 1
    assert after.value("api_writes_total", resource="memcacheds.cache.example.com/status", verb="patch") >= 1
    assert after.value("controller_runtime_reconcile_time_seconds_count") > 0
    assert after.value("workqueue_adds_total") >= after.value("workqueue_work_duration_seconds_count") > 0
    assert after.value("rest_client_requests_total", code="201", method="POST") >= 1
    versions = [each.value("watch_stream_resource_version", resource="deployments.apps") for each in (before, after)]
    assert versions[0] < versions[1]


def _repaired(metrics: str) -> dict[tuple[str, str], float]:
    return {
        (dict(labels)["kind"], dict(labels)["field"]): value
        for (name, labels), value in Scrape(metrics).series.items()
        if name == "memcached_operator_repairs_total" and value
    }
