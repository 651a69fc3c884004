"""The metrics of a running operator: what Prometheus sees, and who else."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from operator_runtime.testing.waiting import until
from tests.integration.accounts import await_allowed, bind, rules_of
from tests.integration.conftest import ACCOUNT, ACCOUNT_NAMESPACE, MANIFESTS, Operators, memcached
from tests.integration.monitoring import (
    METRICS,
    Scrape,
    fetch,
    prometheus,
    url_of,
)
from tests.integration.oracle import wait, wait_condition
from tests.integration.requests import WATCHED
from tests.kubectl_in_namespace import Kubectl


def start(operators: Operators, kubectl: Kubectl, *flags: str) -> str:
    """An operator for the namespace; where its metrics are."""
    operator = operators.start("-n", kubectl.namespace, METRICS, *flags, OPERATOR_NAME=kubectl.namespace).ready()
    return url_of(operator, "metrics")


def token(kubectl: Kubectl, account: str) -> str:
    """A token of a new service account in the namespace."""
    return (kubectl.cluster.service_account_dir(kubectl.namespace, account) / "token").read_text()


def grant(kubectl: Kubectl, account: str, namespace: str, *rules: Mapping[str, Sequence[str]]) -> None:
    """Give an account permissions on the whole cluster, under names of this test's own."""
    bind(kubectl, "ClusterRole", f"{kubectl.namespace}-{account}", (namespace, account), rules)
    for rule in rules:
        verb = rule["verbs"][0]
        if "nonResourceURLs" in rule:
            attributes = {"nonResourceAttributes": {"path": rule["nonResourceURLs"][0], "verb": verb}}
        else:
            group, resource = rule["apiGroups"][0], rule["resources"][0]
            attributes = {"resourceAttributes": {"group": group, "resource": resource, "verb": verb}}
        # A refusal would be remembered for half a minute.
        await_allowed(kubectl, f"system:serviceaccount:{namespace}:{account}", attributes)


SECURE = MANIFESTS / "components" / "secure-metrics"
SCRAPING: dict[str, Sequence[str]] = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}


@pytest.fixture
def may_review(kubectl: Kubectl) -> Iterator[None]:
    """For the test, the operator's account may ask who a token belongs to, and what they may."""
    grant(kubectl, ACCOUNT, ACCOUNT_NAMESPACE, *rules_of(SECURE / "metrics_auth_cluster_role.yaml"))
    yield
    kubectl("delete", "clusterrolebinding", f"{kubectl.namespace}-{ACCOUNT}")


def job(name: str, url: str, **more: Any) -> dict[str, Any]:
    parts = urlsplit(url)
    return {"job_name": name, "scheme": parts.scheme, "static_configs": [{"targets": [parts.netloc]}], **more}


@pytest.mark.cluster("simulator")
@pytest.mark.usefixtures("may_review")
def test_a_real_prometheus_sees_the_operator_plainly_and_by_tls_with_its_token(
    kubectl: Kubectl, operators: Operators, tmp_path: Path
) -> None:
    prometheus_token = token(kubectl, "prometheus")
    grant(kubectl, "prometheus", kubectl.namespace, *rules_of(SECURE / "metrics_reader_cluster_role.yaml"))
    kubectl.apply(memcached("cache", 2))
    plain, secure = start(operators, kubectl), start(operators, kubectl, "--metrics-secure")
    (tmp_path / "token").write_text(prometheus_token)
    jobs = (
        job("plain", plain),
        job(
            "secure",
            secure,
            tls_config={"insecure_skip_verify": True},
            authorization={"credentials_file": str(tmp_path / "token")},
        ),
        job("stranger", secure, tls_config={"insecure_skip_verify": True}),
    )
    wait(kubectl, "mcd/cache", ".status.replicas", 2)
    with prometheus(tmp_path, *jobs) as query:
        until("Prometheus does not scrape", lambda: query("up") == {"plain": 1, "secure": 1, "stranger": 0})
        both = {"plain": 1.0, "secure": 1.0}
        for expression in (
            'sum by (job) (controller_runtime_reconcile_total{controller="memcached"}) > bool 0',
            'controller_runtime_max_concurrent_reconciles{controller="memcached"} == bool 16',
            'workqueue_depth{name="memcached",controller="memcached",priority="0"} >= bool 0',
            "histogram_quantile(0.99, sum by (job, le) (workqueue_queue_duration_seconds_bucket)) > bool 0",
            'sum by (job) (watch_stream_relists_total{resource="pods"}) >= bool 1',
            'sum by (job) (watch_stream_cached_objects{resource="memcacheds.cache.example.com"}) == bool 1',
            'sum by (job) (rest_client_requests_total{code="200",method="GET"}) >= bool 3',
            "sum by (job) (event_loop_lag_seconds_count) > bool 0",
            "sum by (job) (memcached_operator_build_info)",
            "process_resident_memory_bytes > bool 1e6",
        ):
            until(f"{expression} is {query(expression)}", lambda expression=expression: query(expression) == both)  # type: ignore[misc]


def test_work_writes_and_repairs_are_counted_as_they_happen(kubectl: Kubectl, operators: Operators) -> None:
    metrics = start(operators, kubectl)
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


def test_a_restart_of_the_api_server_shows_in_each_stream(kubectl: Kubectl, operators: Operators) -> None:
    metrics = start(operators, kubectl)
    assert sum(Scrape(metrics).values("watch_stream_restarts_total", cause="unreachable")) == 0
    kubectl.cluster.kill_apiserver()
    try:
        until(
            "the lost streams are not counted",
            lambda: all(Scrape(metrics).values("watch_stream_restarts_total", cause="unreachable")),
        )
        assert len(Scrape(metrics).values("watch_stream_restarts_total", cause="unreachable")) == len(WATCHED)
    finally:
        # A stream may be heard before the API server says that it is ready, and then be quiet for a minute.
        down_at = time.monotonic()
        kubectl.cluster.start_apiserver()
    until(
        "the streams are not heard again",
        lambda: max(Scrape(metrics).values("watch_stream_last_byte_age_seconds")) < time.monotonic() - down_at,
    )


@pytest.mark.usefixtures("may_review")
def test_secure_metrics_are_shown_to_those_alone_who_have_the_permission(
    kubectl: Kubectl, operators: Operators
) -> None:
    metrics = start(operators, kubectl, "--metrics-secure")
    unauthorized, scraper = token(kubectl, "stranger"), token(kubectl, "scraper")
    grant(kubectl, "scraper", kubectl.namespace, SCRAPING)
    assert fetch(metrics) == (401, "Unauthorized\n")
    assert fetch(metrics, "nonsense") == (401, "Unauthorized\n")
    assert fetch(metrics, unauthorized) == (403, "Forbidden\n")
    assert fetch(metrics.replace("/metrics", "/"), unauthorized) == (403, "Forbidden\n")
    status, text = fetch(metrics, scraper)
    assert (status, "workqueue_depth{" in text) == (200, True)
    assert fetch(f"{metrics}/servers", scraper) == (403, "Forbidden\n")
    servers_alone = token(kubectl, "servers-alone")
    grant(kubectl, "servers-alone", kubectl.namespace, {"nonResourceURLs": ["/metrics/servers"], "verbs": ["get"]})
    assert fetch(f"{metrics}/servers", servers_alone)[0] == 200
    assert fetch(metrics, servers_alone) == (403, "Forbidden\n")
    assert fetch(metrics, scraper)[0] == 200  # asked for anew, if what was known of it has become old
    mark = kubectl.cluster.audit_mark()
    assert fetch(metrics, scraper)[0] == 200
    events = kubectl.cluster.audit_events(since=mark, user_agent=f"{kubectl.namespace}/")
    assert not [each for each in events if each.resource.endswith("reviews")], "the answers are remembered"


def test_without_the_permission_to_ask_nobody_sees_them_and_the_log_says_what_to_grant(
    kubectl: Kubectl, operators: Operators
) -> None:
    operator = operators.start("-n", kubectl.namespace, METRICS, "--metrics-secure").ready()
    assert fetch(url_of(operator, "metrics"), token(kubectl, "scraper")) == (503, "Service Unavailable\n")
    operator.wait_for_log("WARN", "Grant the operator's account create on tokenreviews.authentication.k8s.io")
