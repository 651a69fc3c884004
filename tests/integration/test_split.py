"""Several operators beside each other, each with namespaces and a Lease of its own: docs/split.md."""

from __future__ import annotations

from tests.integration.accounts import LOCK, let_account_elect
from tests.integration.conftest import Operators, memcached
from tests.integration.oracle import catch_up, condition
from tests.integration.replicas import LEADS, LONG_LEASE, STANDS_BY
from tests.integration.requests import READS, requests_of
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess


def installed_in(
    home: Kubectl, operators: Operators, *watched: Kubectl, flags: tuple[str, ...] = ()
) -> OperatorProcess:
    """An operator with its Lease in `home`, ready; the audit log has it by the name of the first that it watches."""
    let_account_elect(home)
    return operators.start(
        *("--leader-elect", f"--leader-elect-id={LOCK}", f"--leader-elect-namespace={home.namespace}"),
        *flags,
        WATCH_NAMESPACE=",".join(each.namespace for each in watched),
        OPERATOR_NAME=watched[0].namespace,
    ).ready()


def test_two_operators_of_different_namespaces_both_lead_and_leave_each_other_s_memcacheds_alone(
    kubectl: Kubectl, neighbour: Kubectl, operators: Operators
) -> None:
    mark = kubectl.cluster.audit_mark()
    both = {each: installed_in(each, operators, each) for each in (kubectl, neighbour)}
    for each, operator in both.items():
        operator.wait_for_log(f"{LEADS} {each.namespace}/{LOCK}")
        each.apply(memcached("twin", 1))
        each.wait_field("mcd/twin", ".status.replicas", 1)
    for each in both:
        requests = requests_of(kubectl.cluster, each.namespace, since=mark)
        assert {event.namespace for event in requests} == {each.namespace}
        assert [event for event in requests if event.code == 403] == []

    assert both[neighbour].stop() == 0
    mark = kubectl.cluster.audit_mark()
    for each in both:
        each("patch", "mcd/twin", "--type=merge", "-p", '{"spec":{"size":2}}')
    kubectl.wait_field("mcd/twin", ".status.replicas", 2)
    catch_up(kubectl)
    assert neighbour.get("deployment/twin")["spec"]["replicas"] == 1, "nobody looks after the other one's now"
    requests = requests_of(kubectl.cluster, kubectl.namespace, since=mark)
    assert {event.namespace for event in requests} == {kubectl.namespace}


def test_of_two_operators_with_one_lease_the_second_looks_after_nothing_and_says_for_whom_it_waits(
    kubectl: Kubectl, neighbour: Kubectl, operators: Operators
) -> None:
    first = installed_in(kubectl, operators, kubectl, flags=LONG_LEASE)
    first.wait_for_log(LEADS)
    mark = kubectl.cluster.audit_mark()
    second = installed_in(kubectl, operators, neighbour, flags=LONG_LEASE)
    second.wait_for_log(f"{STANDS_BY} {kubectl.namespace}/{LOCK}")
    neighbour.apply(memcached("unseen", 1))
    kubectl.apply(memcached("seen", 1))
    kubectl.wait_field("mcd/seen", ".status.replicas", 1)
    assert condition(neighbour, "unseen", "Ready")["reason"] == "Pending"
    assert {event.verb for event in requests_of(kubectl.cluster, neighbour.namespace, since=mark)} <= READS

    assert first.stop() == 0
    neighbour.wait_field("mcd/unseen", ".status.replicas", 1)


def test_operators_whose_namespaces_overlap_and_who_disagree_ask_whether_a_second_one_runs(
    kubectl: Kubectl, neighbour: Kubectl, operators: Operators
) -> None:
    started = [
        installed_in(home, operators, kubectl, flags=(f"--memcached-image={image}",))
        for home, image in ((kubectl, "docker.io/library/memcached:1.6.45"), (neighbour, "quay.io/other/memcached:1"))
    ]
    for each in started:
        each.wait_for_log(LEADS)
    kubectl.apply(memcached("shared", 1))
    for each in started:
        each.wait_for_log("contested: ", "(does a second operator run?)", "[memcached].image of the Deployment")
