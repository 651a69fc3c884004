"""Specifications that break a rule over several fields, for the operator's decoder, CEL and the API server alike."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

NAMED: Final[dict[str, Any]] = {"workload": "StatefulSet"}
DISK: Final[dict[str, Any]] = {"size": "1Gi", "volume": {"emptyDir": {}}}
_MODES: Final = {"ephemeral": {"accessModes": ["ReadWriteMany", "ReadWriteOncePod"]}}
_ONE_MODE: Final = {"ephemeral": {"accessModes": ["ReadWriteOncePod", "ReadWriteOncePod"]}}


# What holds where a field is left out.
FILLED_IN: Final[dict[str, Any]] = {
    "size": 1,
    "memory": "64Mi",
    "maxConnections": 1024,
    "threads": 4,
    "maxItemSize": "1Mi",
    "rollout": {"minReadySeconds": 60, "paused": False},
    "warmRestart": False,
    "workload": "Deployment",
    "service": {"type": "Headless", "portName": "memcached", "ipFamilyPolicy": "SingleStack"},
    "drainPeriodSeconds": 30,
}


class Broken(NamedTuple):
    """Example of a rule.

    Attributes:
        spec: breaks this rule alone.
        field: that the complaint names.
        message: the beginning of what it must be.
        mended: keeps to the rule, as little else as possible.
    """

    spec: dict[str, Any]
    field: str
    message: str
    mended: dict[str, Any]


BROKEN: Final = (
    Broken(
        NAMED | {"handover": {}, "discovery": {"autoDiscovery": {"inServers": True}}},
        "spec.discovery.autoDiscovery.inServers",
        "must be false or omitted when spec.handover is set",
        NAMED | {"handover": {}, "discovery": {"autoDiscovery": {"inServers": False}}},
    ),
    Broken(
        NAMED | {"service": {"type": "ClusterIP"}},
        "spec.service.type",
        "must be Headless when spec.workload is StatefulSet",
        NAMED | {"service": {"type": "Disabled"}},
    ),
    Broken(
        NAMED | {"rollout": {"maxUnavailable": 1}},
        "spec.rollout.maxUnavailable",
        "must be omitted when spec.workload is StatefulSet",
        {"rollout": {"maxUnavailable": 1}},
    ),
    Broken(
        NAMED | {"rollout": {"maxSurge": "0%"}},
        "spec.rollout.maxSurge",
        "must be omitted when spec.workload is StatefulSet",
        {"rollout": {"maxSurge": "0%"}},
    ),
    Broken(
        {"rollout": {"maxUnavailable": "0%", "maxSurge": 0}},
        "spec.rollout.maxUnavailable",
        "must be 1 or more when spec.rollout.maxSurge is 0 or omitted",
        {"rollout": {"maxUnavailable": 0, "maxSurge": "25%"}},
    ),
    Broken(
        {"warmRestart": True},
        "spec.warmRestart",
        "must be false or omitted unless spec.workload is StatefulSet",
        NAMED | {"warmRestart": True},
    ),
    Broken(
        {"maxItemSize": "511.9Ki"},
        "spec.maxItemSize",
        "must be at least 512Ki, or N KiB with -o slab_chunk_max=N in spec.extraArgs",
        {"maxItemSize": "511.9Ki", "extraArgs": ["-o", "slab_chunk_max=1"]},
    ),
    Broken(
        {"maxItemSize": "33Mi"},
        "spec.maxItemSize",
        "must be at most half of spec.memory; lower it or raise the memory",
        {"maxItemSize": "32Mi"},
    ),
    Broken(
        {"maxItemSize": "1024Mi", "memory": "1Gi"},
        "spec.maxItemSize",
        "must be at most half of spec.memory",
        {"maxItemSize": "1024Mi", "memory": "2Gi"},
    ),
    Broken(
        {"memoryScaling": {"max": "1Gi"}},
        "spec.memoryScaling",
        "must be omitted unless spec.workload is StatefulSet",
        NAMED | {"memoryScaling": {"max": "1Gi"}},
    ),
    Broken(
        NAMED | {"memoryScaling": {"max": "1Gi"}, "warmRestart": True},
        "spec.memoryScaling",
        "must be omitted when spec.warmRestart is true, as a memory file keeps its size",
        NAMED | {"warmRestart": True},
    ),
    Broken(
        NAMED | {"memoryScaling": {"max": "1Gi"}, "memory": "1025Mi"},
        "spec.memoryScaling.max",
        "must be at least spec.memory",
        NAMED | {"memoryScaling": {"max": "1Gi"}, "memory": "1024Mi"},
    ),
    Broken(
        {"extstore": DISK | {"volume": {}}},
        "spec.extstore.volume",
        "must contain either ephemeral or emptyDir",
        {"extstore": DISK | {"volume": {"ephemeral": {}}}},
    ),
    Broken(
        {"extstore": DISK | {"volume": {"ephemeral": {}, "emptyDir": {}}}},
        "spec.extstore.volume",
        "must contain either ephemeral or emptyDir",
        {"extstore": DISK | {"volume": {"ephemeral": None, "emptyDir": {}}}},
    ),
    Broken(
        {"extstore": DISK | {"volume": _MODES}},
        "spec.extstore.volume.ephemeral.accessModes",
        "must be ReadWriteOncePod alone",
        {"extstore": DISK | {"volume": _ONE_MODE}},
    ),
    Broken(
        NAMED | {"extstore": DISK, "warmRestart": True},
        "spec.extstore",
        "must be omitted when spec.warmRestart is true, as a memcached with a disk",
        NAMED | {"extstore": DISK, "warmRestart": False},
    ),
    Broken(
        {"extstore": DISK | {"itemSizeMin": "1Gi"}},
        "spec.extstore.itemSizeMin",
        "must be less than spec.maxItemSize",
        {"extstore": DISK | {"itemSizeMin": "1.5Ki"}},
    ),
    Broken(
        {"maxItemSize": "33000000", "memory": 65_000_000},
        "spec.maxItemSize",
        "must be at most half of spec.memory",
        {"maxItemSize": "32e6", "memory": "65M"},
    ),
    Broken(
        {"extstore": DISK | {"itemSizeMin": 2**20}},
        "spec.extstore.itemSizeMin",
        "must be less than spec.maxItemSize, as no item",
        {"extstore": DISK | {"itemSizeMin": 2**20 - 1}},
    ),
    Broken(
        {"handover": {"moves": {}}},
        "spec.handover",
        "must be omitted unless spec.workload is StatefulSet",
        NAMED | {"handover": {"moves": {}}},
    ),
    Broken(
        NAMED | {"handover": {}, "tls": {"secretName": "tls"}},
        "spec.handover",
        "must be omitted when spec.tls is set",
        NAMED | {"tls": {"secretName": "tls"}},
    ),
    Broken(
        NAMED | {"handover": {}, "auth": {"secretName": "passwords"}},
        "spec.handover",
        "must be omitted when spec.auth is set",
        NAMED | {"auth": {"secretName": "passwords"}},
    ),
    Broken(
        NAMED | {"handover": {}, "warmRestart": True},
        "spec.handover",
        "must be omitted when spec.warmRestart is true",
        NAMED | {"handover": None, "warmRestart": True},
    ),
    Broken(
        NAMED | {"handover": {}, "extstore": DISK},
        "spec.handover",
        "must be omitted when spec.extstore is set",
        NAMED | {"extstore": DISK},
    ),
    Broken(
        {"maxConnections": 29},
        "spec.maxConnections",
        "must be more than 9 + 5 * spec.threads, which memcached keeps for itself",
        {"maxConnections": 30},
    ),
    Broken(
        {"maxConnections": 30, "extstore": DISK},
        "spec.maxConnections",
        "must be more than",
        {"maxConnections": 31, "extstore": DISK},
    ),
    Broken(
        NAMED | {"maxConnections": 30, "warmRestart": True},
        "spec.maxConnections",
        "must be more than",
        NAMED | {"maxConnections": 31, "warmRestart": True},
    ),
    Broken(
        NAMED | {"handover": {}, "threads": 1, "size": 0, "maxConnections": 23},
        "spec.maxConnections",
        "must be more than",
        NAMED | {"handover": {}, "threads": 1, "size": 0, "maxConnections": 24},
    ),
    Broken(
        NAMED | {"handover": {}, "threads": 64, "size": 6},
        "spec.maxConnections",
        "must be more than",
        NAMED | {"handover": {}, "threads": 64, "size": 5},
    ),
)
"""At least one of each rule that the API server keeps to, too."""
