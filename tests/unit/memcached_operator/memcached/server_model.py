"""The workloads and pods of one Memcached, as far as `plan.plan` sees them."""

from __future__ import annotations

from datetime import UTC, datetime

from memcached_operator.api.names import Workload
from memcached_operator.memcached.labels import server
from memcached_operator.memcached.state import Status
from memcached_operator.memcached.workloads.pods import PodRecord
from memcached_operator.memcached.workloads.records import WorkloadRecord
from operator_runtime import ObjectKey
from tests.unit.memcached_operator.memcached.support import NAME, NAMESPACE, UID, pod_of

KEY = ObjectKey(NAMESPACE, NAME)
START = datetime(2026, 11, 21, 12, tzinfo=UTC)
NO_STATUS = Status()


def name_of(ordinal: int) -> str:
    """What a StatefulSet's server is listed as."""
    return server(NAME, NAMESPACE, ordinal)


def workload_of(kind: Workload, replicas: int, *, deleting: bool = False) -> WorkloadRecord:
    return WorkloadRecord(
        namespace=NAMESPACE,
        name=NAME,
        uid=f"uid-of-{kind}",
        resource_version="1",
        owner=f"Memcached {NAME}",
        owner_uid=UID,
        made_for_uid=UID,
        deleting=deleting,
        kind=kind,
        generation=1,
        settled=True,
        revised=False,
        rolled_out=True,
        replicas=replicas,
    )


def named_pod(ordinal: int, *, ready: bool = True) -> PodRecord:
    """A pod of the StatefulSet."""
    return PodRecord(NAMESPACE, f"{NAME}-{ordinal}", f"uid-{ordinal}", "1", NAME, "a", True, ready, "", ordinal=ordinal)


def addressed_pod(number: int, *, ready: bool = True) -> PodRecord:
    """A pod of the Deployment."""
    return pod_of(str(number), ready=ready, address=f"10.0.0.{number}")
