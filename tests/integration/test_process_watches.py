"""What the watches bring, and how they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from kube_simulator.access.pki import Authority
from lab.audit import AuditEvent
from operator_runtime.client.frames import PAGE_SIZE
from tests.cluster import Cluster, another, await_established
from tests.integration.accounts import account_with_role, operator_rules
from tests.integration.conftest import CRD, Operators, memcached
from tests.integration.oracle import create_memcached, deployment, pods_of, wait
from tests.integration.requests import requests_of, writes_of, written
from tests.kubectl_in_namespace import Kubectl
from tests.relays import TlsFront

FOREIGN_PODS = 2_000
# One pod takes some kilobytes; bookmarks and the headers of answers a few hundred bytes.
ROOM_FOR_ONE_POD_BYTES = 50_000


def query(event: AuditEvent) -> dict[str, str]:
    """The query of a request."""
    return {name: values[0] for name, values in parse_qs(urlsplit(event.uri).query).items()}


@pytest.fixture
def front(kubectl: Kubectl, tmp_path: Path) -> Iterator[TlsFront]:
    """Stands before the API server and hears what it answers; trusted by the folder `account`."""
    pair = Authority(tmp_path / "front").server("front", ["127.0.0.1"])
    port = int(kubectl.cluster.server.rpartition(":")[2])
    with TlsFront(port, kubectl.cluster.ca_path, pair.certificate, pair.key) as front:
        yield front


def test_two_thousand_foreign_pods_bring_no_byte(
    kubectl: Kubectl, operators: Operators, front: TlsFront, tmp_path: Path
) -> None:
    folder = account_with_role(kubectl, operator_rules())
    (folder / "ca.crt").write_bytes((tmp_path / "front" / "ca.crt").read_bytes())
    pods = f"/api/v1/namespaces/{kubectl.namespace}/pods"
    first = operators.start(account_dir=folder, KUBERNETES_SERVICE_PORT=str(front.port)).ready()
    kubectl.apply(deployment("foreign", replicas=FOREIGN_PODS))
    wait(kubectl, "deployment/foreign", ".status.replicas", FOREIGN_PODS)
    kubectl.apply(memcached("ours", 1))
    wait(kubectl, "mc/ours", ".status.replicas", 1)  # so the stream has come past the foreign pods
    (ours,) = pods_of(kubectl, "ours")
    second = operators.start(
        "--log-level=debug", account_dir=folder, KUBERNETES_SERVICE_PORT=str(front.port), OPERATOR_NAME="second"
    ).ready()
    second.wait_for_log(f"pods in namespace {kubectl.namespace}: 1 objects")
    answers = front.answers(pods)
    assert ours.encode() in answers, "the front hears the watch"
    assert b"foreign" not in answers
    assert len(answers) < ROOM_FOR_ONE_POD_BYTES
    for operator in (first, second):
        assert operator.stop() == 0


def test_a_pod_relabelled_out_of_the_selection_and_back_changes_the_nodes_and_nothing_else(
    kubectl: Kubectl, operators: Operators
) -> None:
    name = kubectl.namespace
    operators.start("-n", name, OPERATOR_NAME=name).ready()
    create_memcached(kubectl, "cache", 3)
    pod, *others = pods_of(kubectl, "cache")
    kubectl.cluster.stop_controller_manager()  # it would make another pod in the place of the one that left
    try:
        mark = kubectl.cluster.audit_mark()
        kubectl("label", "pod", pod, "memcached_cr-")
        wait(kubectl, "mc/cache", ".status.replicas", 2)
        assert kubectl.get("mc/cache")["status"]["nodes"] == others
        kubectl("label", "pod", pod, "memcached_cr=cache")
        wait(kubectl, "mc/cache", ".status.replicas", 3)
        assert kubectl.get("mc/cache")["status"]["nodes"] == sorted([pod, *others])
        kubectl("label", "pod", pod, "memcached_cr=another", "--overwrite")
        wait(kubectl, "mc/cache", ".status.replicas", 2)
    finally:
        kubectl.cluster.start_controller_manager()
    assert set(written(writes_of(kubectl.cluster, name, since=mark))) == {"patch memcacheds/status cache"}


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


@pytest.fixture
def older(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster of an older release, as it were: without streaming lists."""
    with another(cluster, streaming_lists=False) as older:
        older.kubectl("apply", "--server-side", "-f", str(CRD))
        await_established(older.kubectl, "crd/memcacheds.cache.example.com")
        yield older


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
