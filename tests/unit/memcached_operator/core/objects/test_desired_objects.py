"""What a Memcached that asks for everything wants, of each kind, as files that a person can read."""

from __future__ import annotations

import json

import pytest

from memcached_operator.core.objects.owned_object import as_json
from memcached_operator.core.objects.service import SERVICES, service
from tests.unit.memcached_operator.live import desired, full_spec, spec_of
from tests.unit.memcached_operator.support import HERE, OWNER

FILES = {
    "StatefulSet": "desired_objects/desired_stateful_set.json",
    "Service": "desired_objects/desired_service.json",
    "PodDisruptionBudget": "desired_objects/desired_budget.json",
    "NetworkPolicy": "desired_objects/desired_network_policy.json",
    "ConfigMap": "desired_objects/desired_config_map.json",
}
SERVERS = ("sessions-0.sessions.shop.svc:11211", "sessions-1.sessions.shop.svc:11211")


@pytest.mark.parametrize(("kind", "file"), FILES.items())
def test_the_desired_object_is_the_one_that_a_person_can_read_beside_this_test(kind: str, file: str) -> None:
    made = desired(kind, servers=SERVERS, operator_namespace="operators")
    assert made.body() == json.loads((HERE / file).read_text())


def part(kind: str, **changes: object) -> dict[str, object]:
    """The specification of an object where the Memcached's is otherwise."""
    found: dict[str, object] = as_json(desired(kind, spec_of(full_spec() | changes)))["spec"]
    return found


def test_a_policy_that_names_nobody_admits_nobody_where_the_operator_runs_in_no_pod() -> None:
    assert part("NetworkPolicy", networkPolicy={"ingress": []})["ingress"] == []


def test_a_rule_that_names_nobody_admits_all_as_in_kubernetes_and_rules_stand_beside_each_other() -> None:
    ports = [{"port": 11211, "protocol": "TCP"}]
    shop = {"from": [{"podSelector": {"matchLabels": {"app": "shop"}}}]}
    everybodies: tuple[dict[str, list[object]], ...] = ({}, {"from": []})
    for everybody in everybodies:
        made = part("NetworkPolicy", networkPolicy={"ingress": [shop, everybody]})
        assert made["ingress"] == [shop | {"ports": ports}, {"ports": ports}]


def test_a_deployment_s_service_names_servers_while_they_are_ready() -> None:
    spec = part("Service", workload="Deployment")
    assert (spec["publishNotReadyAddresses"], spec["clusterIP"]) == (False, "None")
    assert "clusterIP" not in part("Service", workload="Deployment", service={"type": "ClusterIP"})


def test_a_service_has_the_port_name_and_the_families_that_are_specified() -> None:
    spec = part("Service", service={"portName": "memcached-client", "ipFamilyPolicy": "PreferDualStack"})
    port = {"name": "memcached-client", "port": 11211, "protocol": "TCP", "targetPort": "memcached"}
    assert (spec["ports"], spec["ipFamilyPolicy"]) == ([port], "PreferDualStack")


@pytest.mark.parametrize(
    ("former", "policy", "written"),
    [
        ("PreferDualStack", "SingleStack", ["SingleStack"]),
        ("SingleStack", "SingleStack", []),  # a policy of the cluster made it so
        ("SingleStack", "RequireDualStack", ["RequireDualStack"]),
    ],
)
def test_a_service_is_dual_stack_as_long_as_that_is_specified_or_another_client_makes_it_so(
    former: str, policy: str, written: list[str]
) -> None:
    before, after = (service(OWNER, spec_of({"service": {"ipFamilyPolicy": each}})) for each in (former, policy))
    assert before is not None
    assert after is not None
    live = before.body()
    live["spec"]["ipFamilyPolicy"] = "PreferDualStack"
    record = SERVICES.codec.record(json.dumps(live).encode())
    found = [each.desired for each in SERVICES.codec.differ(after, record) if each.path == "spec.ipFamilyPolicy"]
    assert found == written
