"""The rules over several fields, in the words of a condition."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from memcached_operator.api.names import InvalidSpec
from memcached_operator.api.server_memory import memory_mib
from memcached_operator.api.v1alpha1 import validate_spec
from memcached_operator.memcached.spec import Spec, memory_of_server_mib
from memcached_operator.memcached.spec_validation import read_spec

NAMED = {"workload": "StatefulSet"}
NEEDED = memory_mib("64Mi", 1024, 4)
NEEDED_BY_TLS = memory_mib("64Mi", 1024, 4, tls=True)

RESTARTS = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
RESTARTING = {"spec": {"containers": [{"name": "memcached", "resizePolicy": RESTARTS}]}}
DISK = {"size": "1Gi", "volume": {"emptyDir": {}}}
NEEDED_WITH_DISK = memory_of_server_mib(read_spec(json.dumps({"extstore": DISK}).encode()))

UNLESS = "unless spec.workload is StatefulSet, as a Deployment replaces pods to change them"
HALF = "half of spec.memory 64Mi; lower it or raise the memory"
SETTINGS = "spec.maxConnections 1024 and spec.threads 4; raise the limit or lower these fields"
TLS_SETTINGS = "spec.maxConnections 1024 by TLS and spec.threads 4; raise the limit or lower these fields"
WRONG: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"workload": "StatefulSet", "service": {"type": "ClusterIP"}},
        [
            "spec.service.type: must be Headless when spec.workload is StatefulSet, as the DNS",
            "if you create that Service yourself",
        ],
    ),
    (
        {"workload": "StatefulSet", "rollout": {"maxUnavailable": 1, "maxSurge": "0%"}},
        [f"spec.rollout.{each}: must be omitted when spec.workload is" for each in ("maxUnavailable", "maxSurge")],
    ),
    ({"warmRestart": True}, [f"spec.warmRestart: must be false or omitted {UNLESS}, got true"]),
    (
        {"rollout": {"maxUnavailable": "0%", "maxSurge": 0}},
        ["spec.rollout.maxUnavailable: must be 1 or more when spec.rollout.maxSurge is 0 or omitted", 'got "0%"'],
    ),
    (
        {"extstore": DISK, "workload": "StatefulSet", "warmRestart": True},
        ["spec.extstore: must be omitted when spec.warmRestart is true, as a memcached with a disk", "got {"],
    ),
    (
        {"memoryScaling": {"max": "1Gi"}},
        ["spec.memoryScaling: must be omitted unless spec.workload is StatefulSet, as a Deployment replaces", "got {"],
    ),
    (
        {"memoryScaling": {"max": "1Gi"}, "workload": "StatefulSet", "warmRestart": True},
        ["spec.memoryScaling: must be omitted when spec.warmRestart is true, as a memory file keeps its size, got {"],
    ),
    (
        {"memoryScaling": {"max": "1Gi"}, "workload": "StatefulSet", "extraArgs": ["--disable-evictions"]},
        [
            "spec.extraArgs: must not contain -M with spec.memoryScaling, which follows what is evicted; omit",
            'got ["--disable-evictions"]',
        ],
    ),
    (
        {"memoryScaling": {"max": "1Gi"}, "workload": "StatefulSet", "podTemplate": RESTARTING},
        [
            "spec.podTemplate.spec.containers[memcached].resizePolicy: must not be RestartContainer for memory with "
            "spec.memoryScaling, whose steps would empty the servers; omit one of them",
        ],
    ),
    (
        {"memoryScaling": {"max": "1Gi"}, "workload": "StatefulSet", "memory": "2Gi"},
        ['spec.memoryScaling.max: must be at least spec.memory, 2Gi, which is the least, got "1Gi"'],
    ),
    (
        {
            "memoryScaling": {"max": "1Gi"},
            "workload": "StatefulSet",
            "resources": {"limits": {"memory": f"{NEEDED}Mi"}},
        },
        [
            f"spec.resources.limits.memory: must be at least {memory_mib('1Gi', 1024, 4)}Mi, which a server needs with "
            "spec.memoryScaling.max 1Gi, spec.maxConnections 1024"
        ],
    ),
    (
        {"handover": {}, "auth": {"secretName": "passwords"}},
        [
            "spec.handover: must be omitted unless spec.workload is StatefulSet, as the list of a Deployment",
            "spec.handover: must be omitted when spec.auth is set, as memcached has no passwords with its proxy, got {",
        ],
    ),
    (
        {"handover": {}, "workload": "StatefulSet", "extstore": DISK},
        ["spec.handover: must be omitted when spec.extstore is set, as memcached sets the time of last use", "got {"],
    ),
    (
        {"handover": {}, "workload": "StatefulSet", "extraArgs": ["-X", "-C", "-o", "no_lru_crawler"]},
        ["spec.extraArgs: must not contain -C and -X and no_lru_crawler with spec.handover, which needs CAS", "got ["],
    ),
    (
        {"handover": {}, "workload": "StatefulSet", "extraArgs": ["--disable-dumping", "-o", "no_modern"]},
        ["spec.extraArgs: must not contain -X and no_modern with spec.handover"],
    ),
    (
        {"handover": {}, "workload": "StatefulSet", "extraArgs": ["-M", "--disable-dumping"]},
        ["spec.extraArgs: must not contain -M and -X with spec.handover", "the list of keys and evictions"],
    ),
    (
        {"handover": {}, "workload": "StatefulSet", "tls": {"secretName": "tls"}, "warmRestart": True},
        [
            "spec.handover: must be omitted when spec.tls is set, as memcached's proxy does not verify",
            "spec.handover: must be omitted when spec.warmRestart is true, as a server that restarts with its items",
        ],
    ),
    (
        {"extstore": DISK | {"volume": {}}},
        ["spec.extstore.volume: must contain either ephemeral or emptyDir, got {"],
    ),
    (
        {"extstore": DISK | {"volume": {"ephemeral": {}, "emptyDir": {}}}},
        ["spec.extstore.volume: must contain either ephemeral or emptyDir, got {"],
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
        {"extstore": DISK | {"itemSizeMin": 2**20}},
        ["spec.extstore.itemSizeMin: must be less than the 1048576 bytes of spec.maxItemSize 1Mi", "got 1048576"],
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
        {"handover": {}, "workload": "StatefulSet", "resources": {"limits": {"memory": f"{NEEDED}Mi"}}},
        [f"spec.resources.limits.memory: must be at least {NEEDED + 63}Mi", "spec.threads 4 and to hand over; raise"],
    ),
    ({"maxItemSize": "33Mi"}, [f'spec.maxItemSize: must be at most 32Mi, {HALF}, got "33Mi"']),
    ({"maxItemSize": "600Ki"}, ["spec.maxItemSize: must be a multiple of 512Ki, or of N KiB with -o", 'got "600Ki"']),
    (
        {"maxItemSize": "96Ki", "extraArgs": ["-o", "slab_chunk_max=64"]},
        ['spec.maxItemSize: must be a multiple of 64Ki, by spec.extraArgs, got "96Ki"'],
    ),
    ({"maxConnections": 29}, ["spec.maxConnections: must be more than 29, which memcached keeps", "threads 4, got 29"]),
    (
        {
            "extstore": {
                "size": "1Gi",
                "volume": {"ephemeral": {"accessModes": ["ReadWriteMany", "ReadWriteOncePod"]}},
            }
        },
        [
            "spec.extstore.volume.ephemeral.accessModes: must be ReadWriteOncePod alone, which excludes other modes, "
            'or not contain it, got ["ReadWriteMany", "ReadWriteOncePod"]'
        ],
    ),
    ({"maxConnections": 30, "extstore": DISK}, ["spec.maxConnections: must be more than 30", "threads 4, got 30"]),
    ({"maxConnections": 30, **NAMED, "warmRestart": True}, ["spec.maxConnections: must be more than 30", "got 30"]),
    (
        {**NAMED, "handover": {}, "threads": 1, "maxConnections": 23},
        ["spec.maxConnections: must be more than 23, which memcached keeps for itself with spec.threads 1 and to "],
    ),
    (
        {**NAMED, "handover": {}, "threads": 64, "size": 6},
        [
            "spec.maxConnections: must be more than 1104, which memcached keeps for itself with spec.threads 64 and to "
            "hand over between spec.size 6 servers, got 1024"
        ],
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
    (
        {"auth": {"secretName": "a"}, "extraArgs": ["-B", "auto"]},
        ["spec.extraArgs: must not set -B to auto with"],
    ),
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
def test_fields_that_contradict_each_other_are_named_with_the_remedy_however_they_are_read(
    spec: dict[str, Any], words: list[str]
) -> None:
    raw = json.dumps(spec).encode()
    # With a null the quick reader leaves it to the models.
    for read in (read_spec, lambda raw: read_spec(b'{"drainSeconds": null, ' + raw[1:])):
        with pytest.raises(InvalidSpec) as caught:
            read(raw)
        first, *others = words
        assert str(caught.value).startswith(first)
        assert all(each in str(caught.value) for each in others)


@pytest.mark.parametrize(
    "spec",
    [
        {"workload": "StatefulSet", "service": {"type": "Disabled"}, "rollout": {"pauseSeconds": 0, "paused": True}},
        {"rollout": {"maxUnavailable": "0%", "maxSurge": "25%"}},
        {"rollout": {"maxSurge": 0}},
        {"maxConnections": 30},
        {"maxConnections": 31, **NAMED, "warmRestart": True},
        {**NAMED, "handover": {}, "threads": 1, "maxConnections": 24},
        {**NAMED, "handover": {}, "threads": 1, "size": 0, "maxConnections": 24},
        {**NAMED, "handover": {}, "threads": 64, "size": 5},
        {"memory": "2Gi", "maxItemSize": "1024Mi"},
        {"maxItemSize": "1536Ki"},
        {"maxItemSize": "1Ki", "extraArgs": ["-o", "slab_chunk_max=1"]},
        {"resources": {"limits": {"memory": f"{NEEDED}Mi", "cpu": "1m"}, "requests": {"memory": "1Mi"}}},
        {"resources": {"requests": {"cpu": "1000m"}, "limits": {"cpu": 1}}},
    ],
)
def test_fields_that_agree_are_taken(spec: dict[str, Any]) -> None:
    raw = json.dumps(spec).encode()
    assert msgspec.convert(validate_spec(raw).model_dump(by_alias=True, exclude_none=True), Spec) == read_spec(raw)


def test_of_very_many_complaints_the_first_are_told_so_that_a_condition_can_hold_them() -> None:
    arguments = ["-o", ",".join("x" * 20 for _ in range(48))] * 32
    with pytest.raises(InvalidSpec) as caught:
        read_spec(json.dumps({"memory": "8Mi", "maxItemSize": "5Mi", "extraArgs": arguments}).encode())
    assert str(caught.value).startswith("spec.maxItemSize: must be at most 4Mi, half of spec.memory 8Mi;")
    assert str(caught.value).endswith(f'got "{"x" * 20}"; and {48 * 32 + 1 - 10} more')
    labels = {str(number): number for number in range(5000)}
    with pytest.raises(InvalidSpec, match=r"; and 4990 more$"):
        read_spec(json.dumps({"service": {"labels": labels}}).encode())


def test_a_crawler_that_is_switched_on_again_is_no_obstacle_to_a_hand_over() -> None:
    fields = {"handover": {}, "workload": "StatefulSet", "extraArgs": ["-o", "no_modern,lru_crawler", "-F"]}
    assert read_spec(json.dumps(fields).encode()).handover is not None
