"""The metrics of a running operator: what Prometheus sees, and who else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest

from operator_runtime.testing.waiting import until
from tests.integration.accounts import await_allowed, bind, rules_of
from tests.integration.conftest import ACCOUNT, ACCOUNT_NAMESPACE, MANIFESTS, Operators, memcached
from tests.integration.monitoring import (
    METRICS,
    Scrape,
    fetch,
    url_of,
)
from tests.integration.oracle import wait_condition
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
