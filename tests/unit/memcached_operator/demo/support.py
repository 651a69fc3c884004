"""A cluster without anything behind it, and states as the API would show them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memcached_operator.demo.cluster_state import ClusterState
from memcached_operator.demo.clusters import DemoCluster

Json = dict[str, Any]


async def nothing_to_do() -> None:
    """What a cluster needs after the CRD."""


def cluster(*, real_pods: bool = False, kubeconfig: Path = Path("/k/config")) -> DemoCluster:
    """A cluster whose server nobody asks."""
    return DemoCluster(
        server="https://127.0.0.1:6443",
        kubeconfig=kubeconfig,
        audit_log=Path("/k/audit"),
        what="an API server of a test",
        real_pods=real_pods,
        pods="made up",
        kind_installed=nothing_to_do,
    )


def named(name: str, **fields: Any) -> Json:
    """An object of that name."""
    return {"metadata": {"name": name, **fields.pop("metadata", {})}, **fields}


def pod(memcached: str, suffix: str, *, ready: bool = True, address: str = "127.0.0.1", **metadata: Any) -> Json:
    """A pod of a Memcached."""
    conditions = [{"type": "Ready", "status": str(ready)}]
    return named(
        f"{memcached}-{suffix}",
        metadata={"labels": {"app": "memcached", "memcached_cr": memcached}, **metadata},
        status={"phase": "Running", "podIP": address, "conditions": conditions},
    )


def running(name: str, size: int, *, address: str = "127.0.0.1") -> ClusterState:
    """A Memcached at rest, with all of its servers."""
    pods = [pod(name, str(number), address=address) for number in range(size)]
    conditions = [
        {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": "all are ready."},
        {"type": "Progressing", "status": "False", "reason": "Complete", "message": "done."},
        {"type": "Degraded", "status": "False", "reason": "AsExpected", "message": "fine."},
    ]
    status = {
        "nodes": [each["metadata"]["name"] for each in pods],
        "replicas": size,
        "readyReplicas": size,
        "conditions": conditions,
    }
    owner = {"kind": "Memcached", "name": name}
    return ClusterState(
        memcacheds={name: named(name, spec={"size": size}, status=status)},
        deployments={
            name: named(
                name,
                metadata={"ownerReferences": [owner], "uid": "1", "generation": 1},
                spec={"replicas": size},
                status={"readyReplicas": size},
            )
        },
        pods={each["metadata"]["name"]: each for each in pods},
        events=(
            {
                "reason": "Created",
                "type": "Normal",
                "note": f"Created Deployment {name}",
                "eventTime": "2026-01-01T10:11:12.000000Z",
            },
        ),
    )
