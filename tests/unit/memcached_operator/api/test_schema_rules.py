"""The rules in CEL of the schema, evaluated as the simulator does, beside the operator's own."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from kube_simulator.schema import custom, structural
from kube_simulator.schema.rules import rule_problems
from memcached_operator.api.crd import memcached_crd
from memcached_operator.api.names import InvalidSpec
from memcached_operator.memcached.spec import read_spec

[RESOURCE] = custom.resources_of(custom.defaulted(memcached_crd()))
COUNTS = st.sampled_from([0, 1, "0%", "1%", "100%"])
VOLUMES: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("ephemeral", "emptyDir"), st.sampled_from([None, {}]))
)
# Fields whose contradictions CEL can say.
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "workload": st.sampled_from(["Deployment", "StatefulSet"]),
        "service": st.fixed_dictionaries({}, optional={"type": st.sampled_from(["Headless", "ClusterIP", "Disabled"])}),
        "rollout": st.fixed_dictionaries({}, optional={"maxUnavailable": COUNTS, "maxSurge": COUNTS}),
        "maxConnections": st.sampled_from([1, 13, 14, 28, 29, 48, 49, 1024]),
        "threads": st.sampled_from([1, 4, 8, 64]),
        "warmRestart": st.booleans(),
        "memory": st.sampled_from(["64Mi", "1024Mi", "1Gi", "2Gi"]),
        "memoryScaling": st.none() | st.fixed_dictionaries({"max": st.sampled_from(["8Mi", "64Mi", "1Gi", "9Gi"])}),
        "handover": st.none() | st.just({}),
        "tls": st.none() | st.just({"secretName": "tls"}),
        "auth": st.none() | st.just({"secretName": "auth"}),
        "extstore": st.none() | st.fixed_dictionaries({"size": st.just("1Gi"), "volume": VOLUMES}),
    },
)


def refused_by_the_operator(spec: dict[str, object]) -> set[str]:
    """The fields that its own check names."""
    try:
        read_spec(json.dumps(spec).encode())
    except InvalidSpec as error:
        return {each.partition(":")[0] for each in str(error).split("; ")}
    return set()


@given(SPECS)
def test_the_api_server_refuses_what_the_operator_refuses_and_names_the_same_fields(spec: dict[str, object]) -> None:
    new = structural.default(RESOURCE.schema, {"spec": spec})
    assert {each.field for each in rule_problems(RESOURCE.schema, new, None)} == refused_by_the_operator(spec)
