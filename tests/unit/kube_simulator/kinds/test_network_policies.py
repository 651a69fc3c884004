"""NetworkPolicies: what the tests of conformance do not say."""

from typing import Any

import pytest

from tests.unit.kube_simulator.kinds.kinds_support import an, created, problems, resource

KIND = resource("networkpolicies.networking.k8s.io")
SUBSET = "must be a strict subset of `cidr`"


def wrong(**spec: Any) -> set[str]:
    return problems(KIND, created(KIND, an(KIND, spec={"podSelector": {}, **spec})))


@pytest.mark.parametrize(
    ("cidr", "part", "good"),
    [
        ("10.0.0.0/8", "10.1.0.0/16", True),
        ("10.0.0.7/8", "10.1.0.7/16", True),
        ("fd00::/8", "fd00:1::/32", True),
        ("10.0.0.0/8", "11.0.0.0/16", False),
        ("10.0.0.0/16", "10.0.0.0/8", False),
        ("10.0.0.0/8", "fd00::/16", False),
    ],
)
def test_an_exception_is_a_part_of_its_block(cidr: str, part: str, good: bool) -> None:
    field = "spec.egress[0].to[0].ipBlock.except[0]"
    said = set() if good else {f'{field}: Invalid value: "{part}": {SUBSET}'}
    assert wrong(egress=[{"to": [{"ipBlock": {"cidr": cidr, "except": [part]}}]}]) == said


def test_each_address_is_looked_at() -> None:
    block = {"cidr": "10.0.0.0/8", "except": ["x", "10.1.0.0/99"]}
    why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
    assert wrong(ingress=[{"from": [{"ipBlock": block}]}]) == {
        f'spec.ingress[0].from[0].ipBlock.except[{index}]: Invalid value: "{each}": {why}'
        for index, each in enumerate(block["except"])
    }
    nowhere = {"cidr": "10.0.0.0/8/8", "except": ["10.1.0.0/16"]}
    assert wrong(ingress=[{"from": [{"ipBlock": nowhere}]}]) == {
        f'spec.ingress[0].from[0].ipBlock.cidr: Invalid value: "10.0.0.0/8/8": {why}'
    }


def test_a_range_of_ports_ends_after_it_begins() -> None:
    field = "spec.ingress[0].ports[0].endPort: Invalid value:"
    ports = {"port": 80, "endPort": 70000}
    assert wrong(ingress=[{"ports": [ports]}]) == {f"{field} 70000: must be between 1 and 65535, inclusive"}
    assert wrong(ingress=[{"ports": [{"port": 80, "endPort": 80}]}]) == set()
