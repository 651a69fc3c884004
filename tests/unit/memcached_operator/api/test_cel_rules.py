"""The rules in CEL of the schema, evaluated as the simulator does, beside the operator's own."""

from __future__ import annotations

import json
import re

from hypothesis import given, strategies as st

from kube_simulator.schema import custom, structural
from kube_simulator.schema.validation_rules import rule_problems
from memcached_operator.api.crd import memcached_crd
from memcached_operator.api.names import InvalidSpec
from memcached_operator.memcached.spec_validation import read_spec

[RESOURCE] = custom.resources_of(custom.defaulted(memcached_crd()))
COUNTS = st.sampled_from([0, 1, "0%", "1%", "100%"])
VOLUMES: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(
    {},
    optional={
        "emptyDir": st.sampled_from([None, {}]),
        "ephemeral": st.sampled_from(
            [
                None,
                {},
                *({"accessModes": ["ReadWriteOncePod", *modes]} for modes in ([], ["ReadWriteMany"])),
                {"accessModes": ["ReadWriteOnce", "ReadWriteMany"]},
                {"accessModes": ["ReadWriteOncePod", "ReadWriteOncePod"]},
            ]
        ),
    },
)
# Fields whose contradictions CEL can say.
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "workload": st.sampled_from(["Deployment", "StatefulSet"]),
        "service": st.fixed_dictionaries({}, optional={"type": st.sampled_from(["Headless", "ClusterIP", "Disabled"])}),
        "rollout": st.fixed_dictionaries({}, optional={"maxUnavailable": COUNTS, "maxSurge": COUNTS}),
        "maxConnections": st.sampled_from([1, 14, 15, 16, 23, 24, 29, 30, 44, 45, 52, 53, 1024]),
        "threads": st.sampled_from([1, 4, 8, 64]),
        "size": st.sampled_from([0, 1, 2, 5, 6]),
        "warmRestart": st.booleans(),
        "memory": st.sampled_from(["64Mi", "1024Mi", "1Gi", "2Gi"]),
        "memoryScaling": st.none() | st.fixed_dictionaries({"max": st.sampled_from(["8Mi", "64Mi", "1Gi", "9Gi"])}),
        "handover": st.none() | st.just({}),
        "tls": st.none() | st.just({"secretName": "tls"}),
        "auth": st.none() | st.just({"secretName": "auth"}),
        "extstore": st.none() | st.fixed_dictionaries({"size": st.just("1Gi"), "volume": VOLUMES}),
    },
)


def refused_by_the_operator(spec: dict[str, object]) -> tuple[set[str], int]:
    """The fields that its own check names, and how many complaints more it has than its message shows."""
    try:
        read_spec(json.dumps(spec).encode())
    except InvalidSpec as error:
        named = [each.partition(":")[0] for each in str(error).split("; ")]
        more = re.fullmatch(r"and (\d+) more", named[-1])
        return (set(named[:-1]), int(more[1])) if more is not None else (set(named), 0)
    return set(), 0


@given(SPECS)
def test_the_api_server_refuses_what_the_operator_refuses_and_names_the_same_fields(spec: dict[str, object]) -> None:
    new = structural.default(RESOURCE.schema, {"spec": spec})
    fields = {each.field for each in rule_problems(RESOURCE.schema, new, None)}
    named, more = refused_by_the_operator(spec)
    assert named <= fields
    assert len(fields - named) <= more
