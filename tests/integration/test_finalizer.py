"""The finalizer on a Memcached: what each way to delete does under it, and what is said of a deletion that waits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memcached_operator.api.names import FINALIZER
from operator_runtime.testing.waiting import until
from tests.cluster import Cluster
from tests.integration.accounts import account_with_role, operator_rules
from tests.integration.conftest import Operators, memcached
from tests.integration.oracle import (
    complete,
    condition,
    create_memcached,
    pods_of,
    wait,
    wait_condition,
)
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess

ON = "--finalizer"
HOLD = "example.com/hold"

pytestmark = pytest.mark.core


def let_all_go(cluster: Cluster) -> None:
    """Take the finalizer off whatever still carries it, when no operator is there to do so.

    Else its namespace never goes, nor does the kind, which later tests delete and make anew.
    """
    found = cluster.kubectl("get", "memcacheds", "--all-namespaces", "-o", "json").stdout
    for each in json.loads(found)["items"]:
        if FINALIZER in each["metadata"].get("finalizers", []):
            metadata = each["metadata"]
            Kubectl(cluster, metadata["namespace"]).run(
                "patch",
                f"mcd/{metadata['name']}",
                "--type=merge",
                "-p",
                '{"metadata":{"finalizers":null}}',
                check=False,
            )


def finalizers(kubectl: Kubectl, what: str) -> list[str]:
    found: list[str] = kubectl.get(what)["metadata"].get("finalizers", [])
    return found


def hold_pods(kubectl: Kubectl, pods: list[str]) -> None:
    """Do the part of kubelets that do not end them."""
    body = json.dumps({"metadata": {"finalizers": [HOLD]}})
    kubectl("patch", "pods", *pods, "--type=merge", "-p", body)


def let_go(kubectl: Kubectl, what: str, *names: str) -> None:
    kubectl("patch", what, *names, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')


def delete(kubectl: Kubectl, mode: str = "background") -> None:
    kubectl("delete", "mcd/shop", f"--cascade={mode}", "--wait=false")


def has_gone(kubectl: Kubectl, what: str) -> bool:
    return not kubectl("get", what, "--ignore-not-found", "-o", "name")


def events(kubectl: Kubectl) -> dict[str, str]:
    """The notes of the events about the Memcached, by their reasons."""
    found: dict[str, Any] = json.loads(kubectl("get", "events.events.k8s.io", "-o", "json"))
    return {each["reason"]: each["note"] for each in found["items"] if each["regarding"]["kind"] == "Memcached"}


def await_event(kubectl: Kubectl, reason: str, words: str) -> None:
    until(f"no event {reason} that says {words}", lambda: words in events(kubectl).get(reason, ""))


@pytest.fixture
def released(kubectl: Kubectl) -> Iterator[None]:
    """What a test leaves is let go when its operators have ended."""
    yield
    let_all_go(kubectl.cluster)


@pytest.fixture
def start(released: None, kubectl: Kubectl, operators: Operators) -> Callable[..., OperatorProcess]:
    """Starts operators in the test's namespace whose permissions the test chooses."""
    folder = account_with_role(kubectl, operator_rules())
    return lambda *flags: operators.start(*flags, "--log-level=debug", account_dir=folder).ready()


Starter = Callable[..., OperatorProcess]


def test_with_the_setting_a_deletion_waits_for_the_pods_and_names_them(kubectl: Kubectl, start: Starter) -> None:
    start(ON)
    complete(kubectl, "shop", 2)
    pods = pods_of(kubectl, "shop")
    hold_pods(kubectl, pods)
    delete(kubectl, "foreground")
    wait_condition(kubectl, "shop", "Progressing", "Terminating")
    wait(kubectl, "mcd/shop", ".status.replicas", 0)
    waiting = f"Waiting for 2 pods to end: {', '.join(pods)}."
    assert condition(kubectl, "shop", "Progressing")["message"] == waiting
    await_event(kubectl, "Terminating", waiting)
    assert not has_gone(kubectl, "deployment/shop"), "it goes last"

    let_go(kubectl, "pod", pods[0])
    wait(
        kubectl,
        "mcd/shop",
        '.status.conditions[?(@.type=="Progressing")].message',
        f"Waiting for 1 pod to end: {pods[1]}.",
    )
    assert FINALIZER in finalizers(kubectl, "mcd/shop")
    let_go(kubectl, "pod", pods[1])
    kubectl.wait("mcd/shop", "delete")
    assert pods_of(kubectl, "shop") == []
    assert has_gone(kubectl, "deployment/shop")
    await_event(kubectl, "Finalized", "its pods are gone")


def test_one_that_carries_it_from_another_operator_is_released_without_the_setting(
    kubectl: Kubectl, start: Starter
) -> None:
    start()
    carrying = memcached("shop", 1)
    carrying["metadata"]["finalizers"] = [FINALIZER]
    kubectl.apply(memcached("plain", 0), carrying, create=True)
    wait(kubectl, "mcd/shop", ".status.replicas", 1)
    wait(kubectl, "mcd/plain", ".status.replicas", 0)
    assert finalizers(kubectl, "mcd/plain") == []
    pods = pods_of(kubectl, "shop")
    hold_pods(kubectl, pods)
    delete(kubectl)
    assert wait_condition(kubectl, "shop", "Progressing", "Terminating")["message"].endswith(f"{pods[0]}.")
    let_go(kubectl, "pods", *pods)
    kubectl.wait("mcd/shop", "delete")
    assert pods_of(kubectl, "shop") == []


def test_where_the_operator_was_uninstalled_first_a_person_can_let_it_go(kubectl: Kubectl, start: Starter) -> None:
    operator = start(ON)
    create_memcached(kubectl, "shop", 1)
    operator.stop()
    delete(kubectl)
    assert finalizers(kubectl, "mcd/shop") == [FINALIZER]
    kubectl("patch", "mcd/shop", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    kubectl.wait("mcd/shop", "delete")
    kubectl.wait("deployment/shop", "delete")
    kubectl("wait", "pods", "--all", "--for=delete", "--timeout=60s")
