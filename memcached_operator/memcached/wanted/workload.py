"""Pure: a Memcached -> the Deployment or the StatefulSet that it wants."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec

from memcached_operator.api.names import Workload
from memcached_operator.memcached.labels import APPLIED_OPTIONS_ANNOTATION, metadata, selector_labels
from memcached_operator.memcached.spec import Spec
from memcached_operator.memcached.wanted.applied_options import taken
from memcached_operator.memcached.wanted.pod_template import DEFAULTS, USER_ID, template
from memcached_operator.memcached.wanted.workload_types import (
    LabelSelector,
    RollingUpdate,
    Strategy,
    WorkloadManifest,
    WorkloadSpec,
)
from operator_runtime import names_of

# How long a Deployment waits for a server beyond its pause, before it says that it gave up, in seconds: Kubernetes' own
# default.
DEADLINE_S: Final = 600


def workload(
    kind: Workload,
    name: str,
    namespace: str,
    uid: str,
    size: int,
    image: str,
    user_id: int | None = USER_ID,
    spec: Spec = DEFAULTS,
    *,
    paused: bool = False,
) -> WorkloadManifest:
    """What runs the servers of a Memcached of that name, namespace and uid.

    Args:
        kind: a StatefulSet's servers keep their names; it is governed by the Service of the Memcached's name.
        size: pods to run, 0 or more.
        image: container image.
        user_id: user and group of the pods; None leaves both to the image, or to what admits the pods.
        spec: how the servers are set, what is passed through to the pods, and how they are replaced.
        paused: a Deployment is to replace no pods for now. One that has made none yet would make none at all.
    """
    pods, passed, options = template(name, image, user_id, spec)
    mark = taken(passed, options) if passed or options else None  # most have neither
    common = WorkloadSpec(
        replicas=size,
        selector=LabelSelector(selector_labels(name)),
        template=pods,
    )
    return WorkloadManifest(
        apiVersion="apps/v1",
        kind=kind,
        metadata=metadata(name, namespace, uid, annotations={APPLIED_OPTIONS_ANNOTATION: mark} if mark else None),
        spec=_of_stateful_set(common, name) if kind == "StatefulSet" else _of_deployment(common, spec, paused),
        passed=passed,
    )


@cache
def names_of_any(kind: str | None) -> Any:
    """The names of the fields that a workload of that kind has by default."""
    made = workload("StatefulSet" if kind == "StatefulSet" else "Deployment", "", "", "", 1, "")
    return names_of({"spec": msgspec.to_builtins(made.spec)})


def _of_stateful_set(common: WorkloadSpec, name: str) -> WorkloadSpec:
    return msgspec.structs.replace(
        common,
        serviceName=name,
        # All at once: servers know nothing of each other, and one that does not start keeps no other from it.
        podManagementPolicy="Parallel",
        # Its controller knows no pause between two servers, and would put back memory that a server was told.
        updateStrategy=Strategy("OnDelete"),
    )


def _of_deployment(common: WorkloadSpec, spec: Spec, paused: bool) -> WorkloadSpec:
    rollout = spec.rollout
    unavailable = 1 if rollout.maxUnavailable is None else rollout.maxUnavailable
    return msgspec.structs.replace(
        common,
        # A second cache beside the first is no help: it is empty, and on no list.
        strategy=Strategy(
            "RollingUpdate", RollingUpdate(unavailable, 0 if rollout.maxSurge is None else rollout.maxSurge)
        ),
        minReadySeconds=rollout.pauseSeconds,
        progressDeadlineSeconds=rollout.pauseSeconds + DEADLINE_S,
        paused=paused,
    )
