"""Which namespaces are watched, how that is said, and that every request stays inside them."""

from __future__ import annotations

from tests.integration.accounts import account_with_role, operator_rules
from tests.integration.conftest import Operators, memcached
from tests.integration.requests import WATCHED, requests_of
from tests.kubectl_in_namespace import Kubectl


def test_in_one_namespace_however_it_is_named_a_role_is_enough_and_no_request_leaves_it(
    kubectl: Kubectl, operators: Operators
) -> None:
    one = kubectl.namespace
    ways: dict[str, tuple[list[str], dict[str, str]]] = {
        "flag": (["--watch-namespace", one], {}),
        "short-flag-over-variable": (["-n", one], {"WATCH_NAMESPACE": "elsewhere"}),
        "alias": ([f"--namespace={one}"], {}),
        "variable": ([], {"WATCH_NAMESPACE": one}),
        "unset-in-a-pod": ([], {}),
    }
    account = account_with_role(kubectl, operator_rules())
    mark = kubectl.cluster.audit_mark()
    # Operators beside each other, which no user has, but which all write the same.
    started = {
        way: operators.start(*flags, account_dir=account, OPERATOR_NAME=f"{one}-{way}", **variables)
        for way, (flags, variables) in ways.items()
    }
    for each in started.values():
        each.ready()
    kubectl.apply(memcached("mine", 2))
    kubectl.wait_field("mcd/mine", ".status.replicas", 2)
    for way, operator in started.items():
        assert f"watching {one}\n" in operator.lines[0], way
        requests = requests_of(kubectl.cluster, f"{one}-{way}", since=mark)
        assert {event.namespace for event in requests} == {one}, way
        assert {event.resource for event in requests if event.verb == "watch"} == set(WATCHED)
        assert [event for event in requests if event.code == 403] == [], way


def test_all_namespaces_however_it_is_said_take_one_watch_for_each_kind(
    kubectl: Kubectl, neighbour: Kubectl, operators: Operators
) -> None:
    ways: dict[str, tuple[list[str], dict[str, str]]] = {
        "flag-over-variable": (["-A"], {"WATCH_NAMESPACE": "elsewhere"}),
        "empty-variable": ([], {"WATCH_NAMESPACE": ""}),
        "empty-flag": (["--watch-namespace="], {}),
    }
    account = operators.account_dir()
    mark = kubectl.cluster.audit_mark()
    started = {
        way: operators.start(*flags, account_dir=account, OPERATOR_NAME=f"{kubectl.namespace}-{way}", **variables)
        for way, (flags, variables) in ways.items()
    }
    for way, operator in started.items():
        operator.ready()
        assert "watching all namespaces\n" in operator.lines[0], way
        requests = requests_of(kubectl.cluster, f"{kubectl.namespace}-{way}", since=mark)
        watches = sorted((event.resource, event.namespace) for event in requests if event.verb == "watch")
        assert watches == [(resource, "") for resource in WATCHED], way
    for each in (kubectl, neighbour):
        each.apply(memcached("anywhere", 1))
        each.wait_field("mcd/anywhere", ".status.replicas", 1)
