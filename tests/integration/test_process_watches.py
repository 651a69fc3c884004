"""What the watches bring, and how they are asked for."""

from __future__ import annotations

from contextlib import ExitStack
from urllib.parse import parse_qs, urlsplit

from lab.audit import AuditEvent
from operator_runtime.client.frames import PAGE_SIZE
from tests.cluster import Cluster
from tests.integration.conftest import Operators
from tests.integration.oracle import create_memcached, deployment, wait
from tests.integration.requests import requests_of
from tests.kubectl_in_namespace import Kubectl


def query(event: AuditEvent) -> dict[str, str]:
    """The query of a request."""
    return {name: values[0] for name, values in parse_qs(urlsplit(event.uri).query).items()}


def test_snapshots_come_as_streaming_lists_and_what_others_have_many_of_by_its_labels(
    kubectl: Kubectl, operators: Operators
) -> None:
    mark = kubectl.cluster.audit_mark()
    operators.start("-n", kubectl.namespace, OPERATOR_NAME=kubectl.namespace).ready()
    requests = requests_of(kubectl.cluster, kubectl.namespace, since=mark)
    assert {each.verb for each in requests} == {"watch"}
    for each in requests:
        assert query(each)["sendInitialEvents"] == "true"
        assert query(each)["allowWatchBookmarks"] == "true"
        assert 300 <= int(query(each)["timeoutSeconds"]) <= 600
        by_label = each.resource in ("pods", "networkpolicies", "configmaps")
        assert query(each).get("labelSelector") == ("app=memcached,memcached_cr" if by_label else None)


def test_without_streaming_lists_pages_are_listed_and_then_watched(older: Cluster) -> None:
    kubectl = Kubectl(older, "default")
    many = deployment("many", replicas=PAGE_SIZE + 1)
    labels = {"app": "memcached", "memcached_cr": "many"}
    many["spec"] |= {"selector": {"matchLabels": labels}}
    many["spec"]["template"]["metadata"]["labels"] = labels
    kubectl.apply(many)
    wait(kubectl, "deployment/many", ".status.replicas", PAGE_SIZE + 1)
    with ExitStack() as ends:
        operator = Operators(older, ends).start_with_kubeconfig(older.kubeconfig_path, OPERATOR_NAME="paged").ready()
        create_memcached(kubectl, "later", 1)
        assert "cannot watch" not in operator.log, "this server's answer is no fault"
        assert operator.stop() == 0
    first, second = lists(older, "paged", "pods")
    assert first == {"limit": str(PAGE_SIZE), "labelSelector": "app=memcached,memcached_cr"}
    assert second.keys() == {*first, "continue"}
    verbs = [(each.verb, each.code) for each in requests_of(older, "paged") if each.resource == "pods"]
    assert verbs == [("watch", 422), *[("list", 200)] * 2, ("watch", 200)]


def lists(cluster: Cluster, operator_name: str, resource: str) -> list[dict[str, str]]:
    return [
        query(each)
        for each in sorted(requests_of(cluster, operator_name), key=lambda each: each.received_at)
        if (each.verb, each.resource) == ("list", resource)
    ]
