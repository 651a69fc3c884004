from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from memcached_operator.api.complaints import InvalidSpec
from memcached_operator.api.reading import read_spec
from memcached_operator.api.v1alpha1 import Spec, Workload
from memcached_operator.core.objects.owned_kind import Known, auxiliary_objects
from memcached_operator.core.objects.pod_template import fingerprint
from memcached_operator.core.objects.workload import desired_workload
from memcached_operator.core.rollout.change_costs import Basis, Cost, CostedChange, Means, changes
from memcached_operator.owned_kinds import AUXILIARY
from tests.unit.memcached_operator.support import IMAGE, OWNER

DEPLOYMENT, STATEFUL_SET = {"size": 6}, {"size": 6, "workload": "StatefulSet"}


DISK: dict[str, Any] = {"size": "1Gi", "volume": {"emptyDir": {}}}
SIDECAR = {"name": "exporter", "image": "exporter"}
OTHER = SIDECAR | {"name": "other"}


def spec(fields: dict[str, Any]) -> Spec:
    return read_spec(json.dumps(fields).encode())


BASIS = Basis(IMAGE)


def found(old: dict[str, Any], new: dict[str, Any], basis: Basis = BASIS) -> tuple[CostedChange, ...]:
    return changes(spec(old), spec(new), basis)


def costs(old: dict[str, Any], new: dict[str, Any]) -> dict[str, str]:
    return {field.path: change.cost.value for change in found(old, new) for field in change.fields}


@pytest.mark.parametrize("workload", ["Deployment", "StatefulSet"])
@pytest.mark.parametrize(
    ("fields", "path", "cost"),
    [
        ({"size": 7}, "spec.size", "scaling"),
        ({"image": "memcached:other"}, "spec.image", "rolling"),
        ({"image": IMAGE}, "spec.image", "auxiliary"),
        ({"memory": "128Mi"}, "spec.memory", "memory"),
        ({"maxConnections": 2048}, "spec.maxConnections", "rolling"),
        ({"maxItemSize": "2Mi"}, "spec.maxItemSize", "rolling"),
        ({"maxItemSize": "1024Ki"}, None, ""),
        ({"extraArgs": ["-o", "idle_timeout=60"]}, "spec.extraArgs", "rolling"),
        ({"resources": {"requests": {"memory": "1Gi"}}}, "spec.resources.requests.memory", "memory"),
        ({"resources": {"limits": {"memory": "1Gi"}}}, "spec.resources.limits.memory", "memory"),
        ({"resources": {"requests": {"cpu": "0.05"}}}, "spec.resources.requests.cpu", "auxiliary"),
        ({"resources": {"limits": {"cpu": 1}}}, "spec.resources.limits.cpu", "rolling"),
        (
            {"resources": {"limits": {"ephemeral-storage": "1Gi"}}},
            "spec.resources.limits[ephemeral-storage]",
            "rolling",
        ),
        ({"resources": {}}, None, ""),
        ({"rollout": {"minReadySeconds": 5}}, "spec.rollout.minReadySeconds", "auxiliary"),
        ({"rollout": {"paused": True}}, "spec.rollout.paused", "auxiliary"),
        ({"service": {"type": "Disabled"}}, "spec.service.type", "auxiliary"),
        ({"disruptionBudget": {"maxUnavailable": 2}}, "spec.disruptionBudget", "auxiliary"),
        ({"networkPolicy": {"ingress": []}}, "spec.networkPolicy", "auxiliary"),
        ({"discovery": {"configMap": {}}}, "spec.discovery", "auxiliary"),
        ({"tls": {"secretName": "a"}}, "spec.tls", "rolling"),
        ({"extstore": DISK}, "spec.extstore", "rolling"),
        ({"drainPeriodSeconds": 0}, "spec.drainPeriodSeconds", "auxiliary"),
        ({"podTemplate": {"metadata": {"labels": {"a": "b"}}}}, "spec.podTemplate.metadata.labels[a]", "rolling"),
        ({"podTemplate": {"spec": {"dnsPolicy": "Default"}}}, "spec.podTemplate.spec.dnsPolicy", "rolling"),
        ({"podTemplate": {"spec": {"containers": [SIDECAR]}}}, "spec.podTemplate.spec.containers[exporter]", "rolling"),
        ({"podTemplate": {"spec": {"tolerations": []}}}, "spec.podTemplate.spec.tolerations", "auxiliary"),
        ({"memory": "64Mi", "threads": 4, "service": {"type": "Headless"}}, None, ""),
    ],
)
def test_each_field_costs_both_ways(workload: Workload, fields: dict[str, Any], path: str | None, cost: str) -> None:
    base = {"size": 6, "workload": workload}
    if cost == "memory":
        cost = "live" if workload == "StatefulSet" else "rolling"
    for old, new in ((base, base | fields), (base | fields, base)):
        assert costs(old, new) == ({path: cost} if path else {})


@pytest.mark.parametrize("of", ["containers", "initContainers"])
def test_another_order_of_entries_is_a_difference_of_its_own(of: str) -> None:
    old, new = ({"podTemplate": {"spec": {of: each}}} for each in ([SIDECAR, OTHER], [OTHER, SIDECAR]))
    assert costs(old, new) == {f"spec.podTemplate.spec.{of}": "rolling"}
    assert costs(new, old | {"podTemplate": {"spec": {of: [SIDECAR]}}}) == {
        f"spec.podTemplate.spec.{of}[other]": "rolling"
    }


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"image": "other"}, {"spec.image": "in-place"}),
        ({"memory": "128Mi"}, {"spec.memory": "rolling"}),
        ({"resources": {"limits": {"memory": "1Gi"}}}, {"spec.resources.limits.memory": "rolling"}),
        ({"image": "other", "threads": 8}, {"spec.image": "rolling", "spec.threads": "rolling"}),
        ({"image": "other", "discovery": {"configMap": {}}}, {"spec.image": "in-place", "spec.discovery": "auxiliary"}),
        ({"warmRestart": False}, {"spec.warmRestart": "rolling"}),
        ({"image": "other", "warmRestart": False}, {"spec.image": "rolling", "spec.warmRestart": "rolling"}),
    ],
)
def test_where_items_outlast_a_restart_an_image_alone_costs_none(fields: dict[str, Any], found: dict[str, str]) -> None:
    warm = STATEFUL_SET | {"warmRestart": True}
    assert costs(warm, warm | fields) == costs(warm | fields, warm) == found


@pytest.mark.parametrize("workload", ["Deployment", "StatefulSet"])
def test_which_items_are_moved_to_a_disk_is_changed_as_memory_is(workload: Workload) -> None:
    base = {"size": 3, "workload": workload, "extstore": DISK}
    (change,) = found(base, base | {"extstore": DISK | {"itemSizeMin": 1024}})
    if workload == "StatefulSet":
        assert change.cost is Cost.LIVE
        assert change.words == (
            "3 servers are set to 64 MiB, with items of 1024 bytes or more moved to the disk, while they run, and no "
            "key is lost; if they cannot be, servers are replaced one at a time, and lose their keys, as on Kubernetes "
            "before 1.33, or where a webhook gives their pods the resizePolicy RestartContainer for memory"
        )
    else:
        assert change.cost is Cost.ROLLING
    assert costs(base, base | {"extstore": DISK | {"size": "2Gi"}}) == {"spec.extstore.size": "rolling"}


SCALING = STATEFUL_SET | {"memoryScaling": {"max": "1Gi"}}


def test_servers_are_replaced_to_hand_over_and_not_for_how_long_they_do() -> None:
    handover = STATEFUL_SET | {"handover": {}}
    assert costs(STATEFUL_SET, handover) == costs(handover, STATEFUL_SET) == {"spec.handover": "rolling"}
    assert costs(handover, STATEFUL_SET | {"handover": {"periodSeconds": 60}}) == {
        "spec.handover.periodSeconds": "auxiliary"
    }


def test_a_change_of_servers_that_move_says_that_they_keep_their_keys() -> None:
    moving = STATEFUL_SET | {"handover": {"moves": {}}, "rollout": {"minReadySeconds": 0}}
    assert costs(STATEFUL_SET | {"handover": {}}, moving)["spec.handover.moves"] == "rolling"
    (change,) = found(moving, moving | {"threads": 8})
    assert change.words == (
        "6 servers are replaced, one at a time, from the highest ordinal; the keys of each move with it, but for those "
        "that nobody used since the last change of the list; about 2 min"
    )
    (change,) = found(moving, moving | {"threads": 8, "size": 6, "handover": {"moves": {}}, "memory": "64Mi"})
    assert "the keys of each move with it" in change.words
    (first,) = found(STATEFUL_SET | {"rollout": {"minReadySeconds": 0}}, moving)
    assert "each loses its keys" in first.words


def test_every_field_of_the_specification_is_told_of() -> None:
    full: dict[str, Any] = {
        "size": 2, "image": "other", "memory": "1Gi", "maxConnections": 100, "threads": 1, "maxItemSize": "2Mi",
        "extraArgs": ["-v"], "resources": {"requests": {"cpu": 1}}, "rollout": {"minReadySeconds": 1},
        "warmRestart": True, "workload": "StatefulSet", "service": {"type": "Disabled"},
        "disruptionBudget": {"maxUnavailable": 2},
        "podTemplate": {"metadata": {"labels": {"a": "b"}}}, "networkPolicy": {"ingress": []},
        "tls": {"secretName": "a"}, "auth": {"secretName": "a"}, "discovery": {"configMap": {}},
        "drainPeriodSeconds": 1,
    }  # fmt: skip
    others: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {"extstore": DISK}),
        ({}, {"handover": {}, "workload": "StatefulSet"}),
        (STATEFUL_SET, SCALING),
    ]
    reported = {path.split(".")[1] for old, new in (({}, full), *others) for path in costs(old, new)}
    assert reported == set(Spec.model_fields)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (STATEFUL_SET, {"memory": "128Mi", "threads": 8}, {"spec.memory": "rolling", "spec.threads": "rolling"}),
        (STATEFUL_SET, {"memory": "128Mi", "size": 7}, {"spec.size": "scaling", "spec.memory": "live"}),
        (
            DEPLOYMENT,
            {"workload": "StatefulSet", "memory": "128Mi", "size": 7, "drainPeriodSeconds": 1},
            dict.fromkeys(("spec.workload", "spec.memory"), "moving")
            | {"spec.size": "scaling", "spec.drainPeriodSeconds": "auxiliary"},
        ),
    ],
    ids=["a replaced server comes with its memory", "each for itself", "a move makes all servers as they are to be"],
)
def test_of_several_differences_each_costs_what_it_does_beside_the_others(
    old: dict[str, Any], new: dict[str, Any], expected: dict[str, str]
) -> None:
    assert costs(old, old | new) == expected


ONE_BY_ONE = "6 servers are replaced, one at a time"
LOSE = "each loses its keys and its address"
PAUSED = {"paused": True, "minReadySeconds": 0}
AT_ONCE, HALF = {"maxUnavailable": "100%"}, {"maxUnavailable": "50%", "minReadySeconds": 30}
BOTH = {"maxUnavailable": "20%", "maxSurge": "20%", "minReadySeconds": 0}
LIMITS = {"resources": {"limits": {"memory": "1Gi"}}}
WORDS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (
        STATEFUL_SET,
        {"image": "o"},
        f"rolling: spec.image: {ONE_BY_ONE}, from the highest ordinal; each loses its keys; ",
    ),
    (STATEFUL_SET, {"image": "o"}, "; about 6 min (60 s pause and a few seconds each)"),
    ({**STATEFUL_SET, "size": 1}, {"threads": 8}, "1 server is replaced; it loses its keys; about 10 s"),
    (
        STATEFUL_SET,
        {"threads": 8, "rollout": PAUSED},
        "from the highest ordinal, once spec.rollout.paused is false; each",
    ),
    (STATEFUL_SET, {"size": 0, "threads": 8}, "rolling: spec.threads: no server runs, so none is replaced"),
    ({**STATEFUL_SET, "size": 1000}, {"threads": 8}, "; about 19 h (60 s pause and a few seconds each)"),
    (DEPLOYMENT, {"image": "o"}, f"rolling: spec.image: {ONE_BY_ONE}; {LOSE}; about 6 min (60 s pause and a few"),
    (
        DEPLOYMENT,
        {"memory": "1Gi", "rollout": HALF},
        f"servers are replaced, 3 at a time; {LOSE}; about 50 s (30 s pause",
    ),
    (DEPLOYMENT, {"threads": 8, "rollout": BOTH}, f"servers are replaced, 3 at a time; {LOSE}; about 20 s"),
    (DEPLOYMENT, {"threads": 8, "rollout": AT_ONCE}, f"6 servers are replaced; {LOSE}; about 10 s"),
    (DEPLOYMENT, {"threads": 8, "rollout": {"maxUnavailable": "1%"}}, f"{ONE_BY_ONE}; {LOSE}; about 6 min (60 s pause"),
    (
        STATEFUL_SET,
        {"memory": "128Mi"},
        "live: spec.memory: 6 servers are set to 128 MiB while they run, and no key is",
    ),
    (STATEFUL_SET, {"memory": "32Mi"}, "are set to 32 MiB while they run, and evict items that no longer fit; a full"),
    (STATEFUL_SET, LIMITS, "live: spec.resources.limits.memory: 6 servers are given different memory resources while"),
    ({**STATEFUL_SET, "size": 0}, {"memory": "1Gi"}, "live: spec.memory: no server runs, so none is changed"),
    (
        DEPLOYMENT,
        {"size": 8},
        "scaling: spec.size: 2 servers are added, without keys; clients look there for some of the",
    ),
    (DEPLOYMENT, {"size": 5}, "scaling: spec.size: 1 server is deleted with its keys"),
    (
        STATEFUL_SET,
        {"size": 4},
        "scaling: spec.size: 2 servers are removed from the list, from the highest ordinal, and",
    ),
    (STATEFUL_SET, {"size": 4}, "deleted with their keys 30 s later"),
    (DEPLOYMENT, {"workload": "StatefulSet"}, "moving: spec.workload: 6 servers are created by a StatefulSet, without"),
    (DEPLOYMENT, {"workload": "StatefulSet"}, "and those of the Deployment are deleted 30 s later"),
    (DEPLOYMENT, {"discovery": {"configMap": {}}}, "auxiliary: spec.discovery: no server is affected"),
]


@pytest.mark.parametrize(("old", "new", "words"), WORDS)
def test_each_is_told_with_its_cost_and_its_time(old: dict[str, Any], new: dict[str, Any], words: str) -> None:
    assert [str(change) for change in found(old, old | new) if words in str(change)]


def test_the_dearest_is_told_first() -> None:
    new = {"drainPeriodSeconds": 1, "memory": "128Mi", "size": 7}
    assert [each.cost for each in found(STATEFUL_SET, STATEFUL_SET | new)] == [Cost.SCALING, Cost.LIVE, Cost.AUXILIARY]
    assert [each.cost for each in found(DEPLOYMENT, DEPLOYMENT | new)] == [Cost.ROLLING, Cost.SCALING, Cost.AUXILIARY]


QUANTITIES = st.fixed_dictionaries(
    {},
    optional={"cpu": st.sampled_from(["10m", "50m", "0.05", 1]), "memory": st.sampled_from(["2Gi", "2048Mi", "3Gi"])},
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 3),
        "image": st.sampled_from([IMAGE, "other"]),
        "memory": st.sampled_from(["64Mi", "1024Mi", "1Gi"]),
        "maxConnections": st.sampled_from([1024, 2048]),
        "threads": st.sampled_from([4, 8]),
        "maxItemSize": st.sampled_from(["1Mi", "1024Ki", "2Mi"]),
        "extraArgs": st.sampled_from([[], ["-o", "idle_timeout=60"], ["-o", "hashpower=20"]]),
        "resources": st.fixed_dictionaries({}, optional={"requests": QUANTITIES, "limits": QUANTITIES}),
        "rollout": st.fixed_dictionaries({}, optional={"minReadySeconds": st.integers(0, 60), "paused": st.booleans()}),
        "workload": st.sampled_from(["Deployment", "StatefulSet"]),
        "service": st.sampled_from([{}, {"type": "None"}, {"labels": {"a": "b"}}]),
        "disruptionBudget": st.sampled_from([{}, {"maxUnavailable": 2}]),
        "pod": st.fixed_dictionaries(
            {},
            optional={
                "labels": st.sampled_from([{}, {"a": "b"}]),
                "securityContext": st.sampled_from([{}, {"fsGroup": 5}]),
                "terminationGracePeriodSeconds": st.sampled_from([1, 5, 30]),
            },
        ),
        "networkPolicy": st.just({"ingress": []}),
        "discovery": st.just({"configMap": {}}),
        "drainPeriodSeconds": st.integers(0, 30),
    },
)


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    try:
        return spec(draw(SPECS))
    except InvalidSpec:
        return Spec(size=draw(st.integers(0, 3)))


def desired(of: Spec) -> tuple[object, ...]:
    workload = desired_workload(of.workload, OWNER, of.size, of.image or IMAGE, spec=of)
    return (workload, *auxiliary_objects(AUXILIARY, OWNER, of, Known()))


RESTARTING = {
    "name": "memcached", "resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"}],
}  # fmt: skip
CLOSED = {"tls": {"secretName": "a", "clientAuth": "Require"}}


@pytest.mark.parametrize(
    ("fields", "means", "cost", "words"),
    [
        ({}, Means(credentials=False), "live", "and lose their keys, as on Kubernetes before 1.33"),
        ({}, Means(credentials=False, resizes=True), "live", "and lose their keys"),
        ({}, Means(resizes=False), "rolling", "as this cluster cannot resize pods in place (Kubernetes 1.33 and"),
        ({"auth": {"secretName": "a"}}, Means(credentials=True, resizes=True), "live", "no key is lost"),
        (
            {"auth": {"secretName": "a"}},
            Means(credentials=False),
            "rolling",
            "; their memory cannot be changed while they run, as the servers require a password, and "
            "--server-credentials is off",
        ),
        (CLOSED, Means(credentials=False), "rolling", "as the servers require a client certificate, and --server-cred"),
        ({"tls": {"secretName": "a"}}, Means(credentials=False, resizes=True), "live", "no key is lost"),
        (
            {"podTemplate": {"spec": {"containers": [RESTARTING]}}},
            Means(credentials=True, resizes=True),
            "rolling",
            "as the resizePolicy of the container memcached is RestartContainer for memory",
        ),
        ({}, Means(credentials=True), "live", ", or where a webhook gives their pods the resizePolicy"),
        ({"podTemplate": {"spec": {"containers": [{"name": "memcached", "resizePolicy": 5}]}}}, Means(), "live", ""),
    ],
)
def test_memory_costs_a_rollout_where_what_it_takes_to_change_it_live_is_missing(
    fields: dict[str, Any], means: Means, cost: str, words: str
) -> None:
    (change,) = found(STATEFUL_SET | fields, STATEFUL_SET | fields | {"memory": "128Mi"}, Basis(IMAGE, means=means))
    assert change.cost.value == cost
    assert words in change.words
    (other,) = found(STATEFUL_SET | fields, STATEFUL_SET | fields | {"threads": 8}, Basis(IMAGE, means=means))
    assert "memory" not in other.words, "what rolls anyway says nothing of it"


@given(specs(), specs())
def test_what_is_said_is_what_the_desired_objects_say(old: Spec, new: Spec) -> None:
    reported = {change.cost for change in changes(old, new, BASIS)}
    (rolls, memory), (rolled, new_memory) = (
        fingerprint(desired_workload(each.workload, OWNER, 1, each.image or IMAGE, spec=each).spec.template)
        for each in (old, new)
    )
    moves = old.workload != new.workload
    anew = rolls != rolled or (memory != new_memory and new.workload == "Deployment")
    assert (Cost.MOVING in reported) == moves
    assert (Cost.ROLLING in reported) == (anew and not moves)
    assert (Cost.LIVE in reported) == (memory != new_memory and not anew and not moves)
    assert (Cost.SCALING in reported) == (old.size != new.size)
    assert reported or desired(old) == desired(new)
    assert bool(reported) == (old != new)
