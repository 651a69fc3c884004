"""Which requests misbehaviour is for; what becomes of them is tested over a socket, in http/test_server_faults.py."""

from __future__ import annotations

import pytest

from kube_simulator.faults import Delay, Faults, Refuse, Stall, refusal

PODS = ("watch", "pods", "a", "memcached-operator/1")


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


def test_a_rule_is_used_as_often_as_it_says_and_then_the_next_one() -> None:
    faults = Faults()
    faults.add(Refuse(429), times=2)
    other = faults.add(Refuse(500), verb="watch")
    taken = [faults.take(*PODS) for _ in range(4)]
    assert [rule.fault for rule in taken if rule is not None] == [Refuse(429)] * 2 + [Refuse(500)] * 2
    assert other.used == 2
    with pytest.raises(ValueError, match="times must be at least 1"):
        faults.add(Refuse(429), times=0)


def test_a_rule_that_is_removed_lets_go_of_what_it_stalls_even_when_it_is_used_up() -> None:
    faults = Faults()
    spent = faults.add(Stall(), times=1)
    faults.take(*PODS)
    lasting = faults.add(Stall())
    faults.clear()
    assert spent.removed.is_set()
    assert lasting.removed.is_set()
    assert faults.take(*PODS) is None
    faults.remove(lasting)  # once more does no harm


@pytest.mark.parametrize(
    ("code", "reason"),
    [(410, "Expired"), (429, "TooManyRequests"), (500, "InternalError"), (503, "ServiceUnavailable")],
)
def test_a_refusal_has_kubernetes_reason(code: int, reason: str) -> None:
    assert (refusal(code).status()["reason"], refusal(code).headers) == (reason, {})
    hurried = refusal(code, retry_after_s=7)
    assert (hurried.headers, hurried.status()["details"]) == ({"Retry-After": "7"}, {"retryAfterSeconds": 7})
