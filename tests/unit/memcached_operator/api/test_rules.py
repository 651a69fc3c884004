"""The rules over several fields: in the operator's words, and in CEL as the simulator evaluates it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from kube_simulator.schema import custom, structural
from kube_simulator.schema.validation_rules import rule_problems
from memcached_operator.api.complaints import InvalidSpec
from memcached_operator.api.crd import memcached_crd
from memcached_operator.api.reading import read_spec
from memcached_operator.api.rules import RULES
from memcached_operator.api.sizing import memory_of_server_mib
from memcached_operator.api.v1alpha1 import Extstore, ExtstoreVolume, Spec, Tls
from tests.specifications import BROKEN, DISK, NAMED, Broken

[RESOURCE] = custom.resources_of(custom.defaulted(memcached_crd()))
NEEDED = memory_of_server_mib(Spec())
NEEDED_BY_TLS = memory_of_server_mib(Spec(tls=Tls(secretName="a")))
NEEDED_OF_1GI = memory_of_server_mib(Spec(memory="1Gi"))
NEEDED_WITH_DISK = memory_of_server_mib(
    Spec(extstore=Extstore(size="1Gi", volume=ExtstoreVolume.model_validate({"emptyDir": {}})))
)
RESTARTS = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
RESTARTING = {"spec": {"containers": [{"name": "memcached", "resizePolicy": RESTARTS}]}}
SCALING = NAMED | {"memoryScaling": {"max": "1Gi"}}
HANDOVER = NAMED | {"handover": {}}


def read(spec: dict[str, Any]) -> Spec:
    return read_spec(json.dumps(spec).encode())


def refused_by_cel(spec: dict[str, Any]) -> dict[str, str]:
    """Message of each rule of the schema that is broken, by its field."""
    new = structural.default(RESOURCE.schema, {"spec": spec})
    return {each.field: each.message for each in rule_problems(RESOURCE.schema, new, None)}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: f"{broken.field}: {broken.message}")
def test_what_breaks_one_rule_is_named_with_the_remedy_and_what_keeps_to_it_is_taken(broken: Broken) -> None:
    with pytest.raises(InvalidSpec) as caught:
        read(broken.spec)
    assert str(caught.value).startswith(f"{broken.field}: {broken.message}")
    assert ", got " in str(caught.value)
    assert "; spec." not in str(caught.value)
    read(broken.mended)
    [(field, message)] = refused_by_cel(broken.spec).items()
    assert field == broken.field
    assert broken.message in message
    assert refused_by_cel(broken.mended) == {}


def test_each_rule_has_its_example() -> None:
    shown = {(each.field, rule.message) for each in BROKEN for rule in RULES if rule.message.startswith(each.message)}
    assert {(f"spec.{rule.field}", rule.message) for rule in RULES} <= shown


SETTINGS = "spec.maxConnections 1024 and spec.threads 4; raise the limit or lower these fields"
TLS_SETTINGS = "spec.maxConnections 1024 by TLS and spec.threads 4; raise the limit or lower these fields"
# What CEL cannot say.
WRONG: list[tuple[dict[str, Any], list[str]]] = [
    (
        SCALING | {"extraArgs": ["--disable-evictions"]},
        [
            "spec.extraArgs: must not contain -M with spec.memoryScaling, which follows what is evicted; omit",
            'got ["--disable-evictions"]',
        ],
    ),
    (
        SCALING | {"podTemplate": RESTARTING},
        [
            "spec.podTemplate.spec.containers[memcached].resizePolicy: must not be RestartContainer for memory with "
            "spec.memoryScaling, whose steps would empty the servers; omit one of them"
        ],
    ),
    (
        SCALING | {"resources": {"limits": {"memory": f"{NEEDED}Mi"}}},
        [
            f"spec.resources.limits.memory: must be at least {NEEDED_OF_1GI}Mi, which a server needs with "
            "spec.memoryScaling.max 1Gi, spec.maxConnections 1024"
        ],
    ),
    (
        HANDOVER | {"extraArgs": ["-X", "-C", "-o", "no_lru_crawler"]},
        ["spec.extraArgs: must not contain -C and -X and no_lru_crawler with spec.handover, which needs CAS", "got ["],
    ),
    (
        HANDOVER | {"extraArgs": ["--disable-dumping", "-o", "no_modern"]},
        ["spec.extraArgs: must not contain -X and no_modern with spec.handover"],
    ),
    (
        HANDOVER | {"extraArgs": ["-M", "--disable-dumping"]},
        ["spec.extraArgs: must not contain -M and -X with spec.handover", "the list of keys and evictions"],
    ),
    (
        {"extstore": DISK | {"size": "67Mi"}},
        ["spec.extstore.size: must be at least 68Mi with spec.maxItemSize 1Mi; raise it or lower", 'got "67Mi"'],
    ),
    (
        {"memory": "1Gi", "maxItemSize": "16Mi", "extstore": DISK | {"size": "538Mi"}},
        ["spec.extstore.size: must be at least 539Mi with spec.maxItemSize 16Mi", 'got "538Mi"'],
    ),
    (
        {"extstore": DISK, "resources": {"limits": {"ephemeral-storage": "1023Mi"}}},
        ["spec.resources.limits.ephemeral-storage: must be at least spec.extstore.size 1Gi", 'got "1023Mi"'],
    ),
    (
        {"extstore": DISK, "resources": {"limits": {"memory": f"{NEEDED}Mi"}}},
        [
            f"spec.resources.limits.memory: must be at least {NEEDED_WITH_DISK}Mi",
            "spec.threads 4 and a disk; raise the limit",
        ],
    ),
    (
        HANDOVER | {"resources": {"limits": {"memory": f"{NEEDED}Mi"}}},
        [f"spec.resources.limits.memory: must be at least {NEEDED + 63}Mi", "spec.threads 4 and to hand over; raise"],
    ),
    (
        {"maxItemSize": "1023Ki", "extstore": DISK | {"itemSizeMin": "600Ki"}},
        [
            "spec.extstore.itemSizeMin: must be less than 512Ki, to which memcached rounds spec.maxItemSize 1023Ki",
            'lower it or raise that field, got "600Ki"',
        ],
    ),
    (
        {"maxItemSize": "63Ki", "extraArgs": ["-o", "slab_chunk_max=64"]},
        ['spec.maxItemSize: must be at least 64Ki with spec.extraArgs, got "63Ki"'],
    ),
    ({"threads": 2, "extraArgs": ["-N", "3"]}, ["spec.extraArgs[1]: must set -N to at most 2, the value of"]),
    (
        {"resources": {"limits": {"memory": f"{NEEDED - 1}Mi"}}},
        [f"spec.resources.limits.memory: must be at least {NEEDED}Mi, which", f'{SETTINGS}, got "{NEEDED - 1}Mi"'],
    ),
    (
        {"tls": {"secretName": "a"}, "resources": {"limits": {"memory": f"{NEEDED}Mi"}}},
        [f"spec.resources.limits.memory: must be at least {NEEDED_BY_TLS}Mi", f'{TLS_SETTINGS}, got "{NEEDED}Mi"'],
    ),
    ({"auth": {"secretName": "a"}, "extraArgs": ["-B", "auto"]}, ["spec.extraArgs: must not set -B to auto with"]),
    (
        {"resources": {"requests": {"cpu": 2, "example.com/x": "1"}, "limits": {"cpu": "1500m", "example.com/x": 1}}},
        ["spec.resources.requests[cpu]: must be at most spec.resources.limits[cpu], 1500m, got 2"],
    ),
    (
        {"resources": {"limits": {"memory": "9000T"}, "requests": {"x/y": "9007199254740991.1"}}},
        ['spec.resources.requests[x/y]: must be at most 9007199254740991, got "9007199254740991.1"'],
    ),
]


@pytest.mark.parametrize(("spec", "words"), WRONG)
def test_fields_that_contradict_each_other_are_named_with_the_remedy(spec: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InvalidSpec) as caught:
        read(spec)
    first, *others = words
    assert str(caught.value).startswith(first)
    assert all(each in str(caught.value) for each in others)


@pytest.mark.parametrize(
    "spec",
    [
        {"rollout": {"maxSurge": 0}},
        {"maxItemSize": "1536Ki"},
        {"memory": "1024.9Mi", "maxItemSize": "512.45Mi", "extraArgs": ["-o", "slab_chunk_max=1"]},
        {"maxItemSize": "1Ki", "extraArgs": ["-o", "slab_chunk_max=1"]},
        {"resources": {"limits": {"memory": f"{NEEDED}Mi", "cpu": "1m"}, "requests": {"memory": "1Mi"}}},
        {"resources": {"requests": {"cpu": "1000m"}, "limits": {"cpu": 1}}},
        HANDOVER | {"extraArgs": ["-o", "no_modern,lru_crawler", "-F"]},
        HANDOVER | {"extraArgs": ["-o", "lru_crawler,no_lru_crawler,lru_crawler"]},
    ],
)
def test_fields_that_agree_are_taken(spec: dict[str, Any]) -> None:
    read(spec)
    assert refused_by_cel(spec) == {}


def test_of_very_many_complaints_the_first_are_told_so_that_a_condition_can_hold_them() -> None:
    arguments = ["-o", ",".join("x" * 20 for _ in range(48))] * 32
    with pytest.raises(InvalidSpec) as caught:
        read({"memory": "8Mi", "maxItemSize": "5Mi", "extraArgs": arguments})
    assert str(caught.value).startswith("spec.maxItemSize: must be at most half of spec.memory;")
    assert str(caught.value).endswith(f'got "{"x" * 20}"; and {48 * 32 + 1 - 10} more')


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
# Fields whose contradictions CEL can say, or that are left out.
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "workload": st.sampled_from(["Deployment", "StatefulSet"]),
        "service": st.fixed_dictionaries({}, optional={"type": st.sampled_from(["Headless", "ClusterIP", "Disabled"])}),
        "rollout": st.none() | st.fixed_dictionaries({}, optional={"maxUnavailable": COUNTS, "maxSurge": COUNTS}),
        "maxConnections": st.sampled_from([1, 14, 15, 16, 23, 24, 29, 30, 44, 45, 52, 53, 1024, None]),
        "threads": st.sampled_from([1, 4, 8, 64]),
        "size": st.sampled_from([0, 1, 2, 5, 6]),
        "warmRestart": st.booleans(),
        "memory": st.sampled_from(["64Mi", 2**30, "1Gi", "2G", None]),
        "maxItemSize": st.sampled_from(["511Ki", "512Ki", "1023Ki", "4Mi", "32Mi", "5.12e8", "512.4Mi"]),
        "memoryScaling": st.none() | st.fixed_dictionaries({"max": st.sampled_from(["8Mi", "64Mi", 2**30, "9Gi"])}),
        "handover": st.none() | st.just({}),
        "tls": st.none() | st.just({"secretName": "tls"}),
        "auth": st.none() | st.just({"secretName": "auth"}),
        "extstore": st.none()
        | st.fixed_dictionaries(
            {"size": st.just("99Gi"), "volume": VOLUMES},
            # None between a size and what memcached rounds it to: the reader alone knows that.
            optional={"itemSizeMin": st.sampled_from([512, "1Mi", "24Mi"])},
        ),
    },
)


def refused_by_the_operator(spec: dict[str, Any]) -> tuple[set[str], int]:
    """The fields that its own check names, and how many complaints more it has than its message shows."""
    try:
        read(spec)
    except InvalidSpec as error:
        named = [each.partition(":")[0] for each in re.split(r"; (?=spec\.[\w.\[\]]*:|and \d+ more)", str(error))]
        more = re.fullmatch(r"and (\d+) more", named[-1])
        return (set(named[:-1]), int(more[1])) if more is not None else (set(named), 0)
    return set(), 0


@given(SPECS)
def test_the_api_server_refuses_what_the_operator_refuses_and_names_the_same_fields(spec: dict[str, Any]) -> None:
    fields = set(refused_by_cel(spec))
    named, more = refused_by_the_operator(spec)
    assert named <= fields
    assert len(fields - named) <= more
