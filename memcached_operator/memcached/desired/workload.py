"""Pure: a Memcached -> the Deployment or the StatefulSet that it desires."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import msgspec

from memcached_operator.api.v1alpha1 import Spec, Workload
from memcached_operator.memcached.desired.applied_options import applied_options_text
from memcached_operator.memcached.desired.drift import Codec
from memcached_operator.memcached.desired.object_types import metadata
from memcached_operator.memcached.desired.pod_template import DEFAULTS, USER_ID, template
from memcached_operator.memcached.desired.workload_types import (
    LabelSelector,
    RollingUpdate,
    Strategy,
    WorkloadManifest,
    WorkloadSpec,
)
from memcached_operator.memcached.labels import (
    APPLIED_OPTIONS_ANNOTATION,
    MEMORY_ANNOTATION,
    POD_ANNOTATIONS,
    TEMPLATE_ANNOTATION,
    Owner,
    selector_labels,
)
from operator_runtime import Difference, names_of, no_longer

# How long a Deployment waits for a server beyond its pause, before it gives up, in seconds: Kubernetes' own
# default.
DEADLINE_S: Final = 600
REPLICAS: Final = "spec.replicas"
FINGERPRINT_PATHS: Final = {
    f"spec.template.metadata.annotations[{annotation}]": annotation
    for annotation in (TEMPLATE_ANNOTATION, MEMORY_ANNOTATION)
}
"""Paths of a template's own annotations."""


def desired_workload(
    kind: Workload,
    owner: Owner,
    size: int,
    image: str,
    user_id: int | None = USER_ID,
    spec: Spec = DEFAULTS,
    *,
    paused: bool = False,
    restart: str = "",
) -> WorkloadManifest:
    """Build the workload that runs the servers of a Memcached.

    Args:
        kind: a StatefulSet's servers keep their names; it is governed by the Service of the Memcached's name.
        user_id: user and group of the pods; None leaves both to the image, or to what admits the pods.
        restart: each server is to start again when this text changes.
        paused: a Deployment is to replace no pods for now. One that has made none yet would make none at all.
    """
    pods, passed, options = template(owner.name, image, user_id, spec, restart)
    text = applied_options_text(passed, options) if passed or options else None  # most have neither
    common = WorkloadSpec(replicas=size, selector=LabelSelector(selector_labels(owner.name)), template=pods)
    return WorkloadManifest(
        apiVersion="apps/v1",
        kind=kind,
        metadata=metadata(owner, annotations={APPLIED_OPTIONS_ANNOTATION: text} if text else None),
        spec=_of_stateful_set(common, owner.name) if kind == "StatefulSet" else _of_deployment(common, spec, paused),
        passed=passed,
    )


def _of_stateful_set(common: WorkloadSpec, name: str) -> WorkloadSpec:
    return msgspec.structs.replace(
        common,
        serviceName=name,
        # All at once: servers know nothing of each other, and one that does not start keeps no other from it.
        podManagementPolicy="Parallel",
        # Its controller knows no pause between two servers, and would put back memory that a server was given.
        updateStrategy=Strategy("OnDelete"),
    )


def _of_deployment(common: WorkloadSpec, spec: Spec, paused: bool) -> WorkloadSpec:
    rollout = spec.rollout
    unavailable = 1 if rollout.maxUnavailable is None else rollout.maxUnavailable
    return msgspec.structs.replace(
        common,
        # A second cache next to the first is no help: it is empty, and on no list.
        strategy=Strategy(
            "RollingUpdate", RollingUpdate(unavailable, 0 if rollout.maxSurge is None else rollout.maxSurge)
        ),
        minReadySeconds=rollout.minReadySeconds,
        progressDeadlineSeconds=rollout.minReadySeconds + DEADLINE_S,
        paused=paused,
    )


@cache
def _names_of_any(kind: str | None) -> Any:
    """The names of the fields that a workload of that kind has by default."""
    made = desired_workload("StatefulSet" if kind == "StatefulSet" else "Deployment", Owner("", "", ""), 1, "")
    spec = msgspec.to_builtins(made.spec)
    spec["template"]["metadata"]["annotations"] |= dict.fromkeys(POD_ANNOTATIONS, "")
    return names_of({"spec": spec})


def _excess(desired: WorkloadManifest, live: WorkloadManifest) -> Iterator[Difference]:
    """Yield fields that others of its kind have and this workload is to be without: user ids, a pause at the end."""
    names = _names_of_any(desired.kind)
    if desired.spec.template == live.spec.template and desired.passed == live.passed:
        desired, live = _without_pods(desired), _without_pods(live)  # as where the size alone has changed
    return no_longer(names, desired.body(), live.body())


def _without_pods(manifest: WorkloadManifest) -> WorkloadManifest:
    return msgspec.structs.replace(manifest, spec=msgspec.structs.replace(manifest.spec, template=None), passed=())


DEPLOYMENT: Final = Codec(WorkloadManifest, excess=_excess, fixed=("spec.selector",))
STATEFUL_SET: Final = Codec(
    WorkloadManifest,
    excess=_excess,
    # Made otherwise by another release: its pods stay, and are taken over by the new one.
    fixed=("spec.selector", "spec.serviceName", "spec.podManagementPolicy"),
    replace="Orphan",
)
CODEC: Final = DEPLOYMENT  # by which either is held and compared
