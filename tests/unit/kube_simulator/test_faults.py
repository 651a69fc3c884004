"""Misbehaviour on request: which requests it is for, and what becomes of them."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import IncompleteRead

import pytest

from kube_simulator.faults import Break, Delay, End, Faults, Refuse, SendError, Stall
from operator_runtime.testing.cluster import SimulatedCluster
from operator_runtime.testing.waiting import DEADLINE_S, until
from tests.conformance.api import Api, Json
from tests.conformance.sample_objects import lease, path

LEASES = path("leases", "default")
PODS = ("watch", "pods", "a", "memcached-operator/1")
# Far above what an answer takes.
MOMENT_S = 0.05


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        ({}, True),
        ({"verb": "watch"}, True),
        ({"verb": "list"}, False),
        ({"resource": "pods"}, True),
        ({"resource": "pods/status"}, False),
        ({"namespace": "a"}, True),
        ({"namespace": "b"}, False),
        ({"agent": "memcached-operator/"}, True),
        ({"agent": "kubectl/"}, False),
        ({"verb": "watch", "namespace": "b"}, False),
    ],
)
def test_a_rule_is_for_the_requests_that_it_names(rule: dict[str, str], fits: bool) -> None:
    faults = Faults()
    faults.add(Delay(1), **rule)  # type: ignore[arg-type]
    assert (faults.take(*PODS) is not None) is fits


def test_a_rule_is_used_as_often_as_it_says_and_then_the_next_one_until_all_are_removed() -> None:
    faults = Faults()
    faults.add(Refuse(429), times=2)
    other = faults.add(Refuse(500), verb="watch")
    taken = [faults.take(*PODS) for _ in range(4)]
    assert [rule.fault for rule in taken if rule is not None] == [Refuse(429)] * 2 + [Refuse(500)] * 2
    assert other.used == 2
    faults.clear()
    with faults.added(Stall()) as during:
        assert faults.take(*PODS) is during
    assert faults.take(*PODS) is None
    with pytest.raises(ValueError, match="times must be at least 1"):
        faults.add(Refuse(429), times=0)


@pytest.mark.parametrize(
    ("code", "reason"),
    [(410, "Expired"), (429, "TooManyRequests"), (500, "InternalError"), (503, "ServiceUnavailable")],
)
def test_a_refusal_has_kubernetes_reason(simulator: SimulatedCluster, api: Api, code: int, reason: str) -> None:
    with simulator.fault(Refuse(code, retry_after_s=7), verb="list", times=1):
        refused = api.get(LEASES)
        assert refused.expect(code, reason)["details"] == {"retryAfterSeconds": 7}
        assert refused.headers["Retry-After"] == "7"
        api.get(LEASES).expect(200)
    with simulator.fault(Refuse(code), verb="watch"):
        assert "Retry-After" not in api.get(LEASES, watch="1").headers


def test_a_delayed_answer_comes_late(simulator: SimulatedCluster, api: Api) -> None:
    with simulator.fault(Delay(MOMENT_S)):
        began = time.monotonic()
        api.get(LEASES).expect(200)
        assert time.monotonic() - began >= MOMENT_S


def test_a_stalled_request_is_answered_when_the_rule_is_removed_though_it_is_used_up(
    simulator: SimulatedCluster, api: Api
) -> None:
    other = Api(simulator, simulator.kubeconfig_path)
    with ThreadPoolExecutor(1) as pool:
        with simulator.fault(Stall(), namespace="default", times=1) as rule:
            hanging = pool.submit(api.get, LEASES)
            until("nothing is stalled", lambda: rule.used == 1)
            other.get(LEASES).expect(200)
            assert not hanging.done()
        hanging.result(DEADLINE_S).expect(200)
    other.close()


@pytest.fixture
def two_leases(api: Api) -> None:
    """What a watch begins with: `a` and `b`."""
    for name in "ab":
        api.post(LEASES, lease(name)).expect(201)


def names(lines: list[bytes]) -> list[str]:
    """What the events of a watch are about."""
    return [json.loads(line)["object"]["metadata"]["name"] for line in lines]


def watched(api: Api) -> list[bytes]:
    """The lines of a watch that ends."""
    answer = api.get(LEASES, watch="1")
    assert answer.status == 200
    return answer.body.splitlines()


def test_a_connection_is_cut_in_the_middle_of_an_answer(simulator: SimulatedCluster, api: Api) -> None:
    whole = api.get(LEASES).body
    with simulator.fault(Break(), verb="list"), pytest.raises(IncompleteRead) as cut:
        api.get(LEASES)
    assert 0 < len(cut.value.partial) < len(whole) * 2 / 3


@pytest.mark.usefixtures("two_leases")
def test_a_connection_is_cut_in_the_middle_of_an_event(simulator: SimulatedCluster, api: Api) -> None:
    with simulator.fault(Break(after_events=1), verb="watch"), pytest.raises(IncompleteRead) as cut:
        watched(api)
    whole, half = cut.value.partial.splitlines()
    assert names([whole]) == ["a"]
    assert 0 < len(half) < len(whole) * 2 / 3


@pytest.mark.usefixtures("two_leases")
@pytest.mark.parametrize("after_events", [0, 1])
def test_a_watch_ends_cleanly_or_with_an_error_after_so_many_events(
    simulator: SimulatedCluster, api: Api, after_events: int
) -> None:
    with simulator.fault(End(after_events=after_events), verb="watch"):
        assert names(watched(api)) == ["a", "b"][:after_events]
    with simulator.fault(SendError(code=410, after_events=after_events), verb="watch"):
        *told, last = watched(api)
    error: Json = json.loads(last)
    assert names(told) == ["a", "b"][:after_events]
    assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 410, "Expired")


@pytest.mark.parametrize("fault", [End(), SendError()])
def test_faults_of_watches_leave_other_requests_alone(
    simulator: SimulatedCluster, api: Api, fault: End | SendError
) -> None:
    with simulator.fault(fault):
        api.get(LEASES).expect(200)
