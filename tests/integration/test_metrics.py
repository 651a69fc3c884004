"""The metrics of a running operator: what Prometheus sees, and who else."""

from __future__ import annotations

from operator_runtime.testing.waiting import eventually, until
from tests.integration.accounts import ACCOUNT, account_with_role, await_allowed, bind, operator_rules, rules_of
from tests.integration.conftest import MANIFESTS, Operators, memcached
from tests.integration.monitoring import METRICS, Scrape, fetch, url_of
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


REVIEWER = MANIFESTS / "components" / "secure-metrics" / "metrics_auth_cluster_role.yaml"


def scraper(kubectl: Kubectl, name: str, path: str) -> str:
    """The token of a new account of the namespace that may get this path alone."""
    folder, account = kubectl.cluster.service_account_dir(kubectl.namespace, name), (kubectl.namespace, name)
    rules = [{"nonResourceURLs": [path], "verbs": ["get"]}]
    bind(kubectl, "ClusterRole", f"{kubectl.namespace}-{name}", account, rules)
    # A refusal would be remembered for half a minute.
    attributes = {"nonResourceAttributes": {"path": path, "verb": "get"}}
    await_allowed(kubectl, f"system:serviceaccount:{kubectl.namespace}:{name}", attributes)
    return (folder / "token").read_text()


def test_secure_metrics_are_shown_by_tls_to_those_alone_who_have_the_permission_for_their_path(
    kubectl: Kubectl, operators: Operators
) -> None:
    folder, account = account_with_role(kubectl, operator_rules()), (kubectl.namespace, ACCOUNT)
    bind(kubectl, "ClusterRole", f"{kubectl.namespace}-{ACCOUNT}", account, rules_of(REVIEWER))
    operator = operators.start("-n", kubectl.namespace, METRICS, "--metrics-secure", account_dir=folder).ready()
    metrics = url_of(operator, "metrics")
    assert metrics.startswith("https://")
    # Until the operator may have tokens reviewed, it answers 503.
    eventually(lambda: fetch(metrics, "nonsense"), lambda answer: answer == (401, "Unauthorized\n"))
    assert fetch(metrics) == (401, "Unauthorized\n")
    tokens = [scraper(kubectl, "one", "/metrics"), scraper(kubectl, "other", "/metrics/servers")]
    answers = [[fetch(url, token)[0] for url in (metrics, f"{metrics}/servers")] for token in tokens]
    assert answers == [[200, 403], [403, 200]]
