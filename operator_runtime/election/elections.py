"""Choice of an election: of the settings and the place where the operator runs, one that can be held."""

from __future__ import annotations

import logging
import socket
import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from prometheus_client import Metric

from operator_runtime.cache.store import ObjectKey
from operator_runtime.client.access.auth import ClusterAccess
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import KubeError
from operator_runtime.settings.runtime_settings import RuntimeSettings
from operator_runtime.telemetry.metrics import counter, gauge

if TYPE_CHECKING:
    # Loaded where they are needed: together they take most of a MiB.
    from operator_runtime.election.leader_for_life import LifeElection
    from operator_runtime.election.lease_election import LeaseElection

    Election = LeaseElection | LifeElection

logger = logging.getLogger(__name__)

NAMESPACE_FLAG = "--leader-elect-namespace"


class ElectionError(KubeError):
    """An election was requested that cannot be held here. The message has what is missing, and the remedy."""


def election_of(
    settings: RuntimeSettings, access: ClusterAccess, environ: Mapping[str, str], *, user_agent: str, field_manager: str
) -> Election | None:
    """The election to stand for; None where this process leads without one. Raises as `lock_of`."""
    if not settings.leader_elect:
        return None
    lock = lock_of(settings, own=access.namespace, in_pod=access.in_pod)
    if lock is None:
        logger.info("leader election for life is skipped: this is not a pod, so that there is nothing to own a lock")
        return None
    # An election by a Lease bounds each request itself, and more closely.
    client = ApiClient(access, user_agent=user_agent, timeout_s=settings.timing.renew_deadline_s)
    pod_name = environ.get("POD_NAME") or socket.gethostname()
    if settings.leader_elect_mode == "lease":
        from operator_runtime.election.lease_election import LeaseElection

        identity = f"{pod_name}_{uuid.uuid4()}"  # no other process has or had it, and it leads people to this one
        return LeaseElection(client, lock, identity, settings.timing, field_manager=field_manager)
    from operator_runtime.election.leader_for_life import LifeElection

    return LifeElection(client, lock, pod_name, field_manager=field_manager)


def lock_of(settings: RuntimeSettings, *, own: str | None, in_pod: bool) -> ObjectKey | None:
    """Namespace and name of the Lease or the ConfigMap of an election; None where none is held in that place.

    Raises ElectionError where an election was requested that cannot be held here.
    """
    if settings.leader_elect_mode == "life" and not in_pod:
        return None
    own = own if in_pod else None
    namespace = settings.leader_elect_namespace or own
    if namespace is None:
        where = "the pod's service account names none" if in_pod else "this is not a pod"
        raise ElectionError(f"leader election needs a namespace, and {where}: give {NAMESPACE_FLAG}")
    if settings.leader_elect_mode == "life" and own is not None and namespace != own:
        raise ElectionError(
            f"{NAMESPACE_FLAG} {namespace}: a leader for life is elected in the namespace of its pod, {own}, as a"
            " Pod owns nothing elsewhere; leave the flag out"
        )
    return ObjectKey(namespace, settings.leader_elect_id or f"{settings.operator_name}-lock")


def election_families(election: Election) -> Iterator[Metric]:
    """client-go's metrics of an election."""
    name = str(election.lock.name)
    yield gauge(
        "leader_election_master_status", "Whether this process leads: 1 or 0.", ("name",), [((name,), election.leading)]
    )
    yield counter(
        "leader_election_slowpath_total",
        "Renewals that read the Lease first, because another client had changed it.",
        ("name",),
        [((name,), election.slow_paths)],
    )
