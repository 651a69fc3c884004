"""Pure: a Memcached -> the Deployment or the StatefulSet that it desires."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from memcached_operator.api.names import USER_ID
from memcached_operator.api.reserved_pod_fields import keyed
from memcached_operator.api.v1alpha1 import Spec, Workload
from memcached_operator.core.objects import labels, workload_types as types
from memcached_operator.core.objects.applied_spec import applied_spec
from memcached_operator.core.objects.owned_object import Codec, metadata
from memcached_operator.core.objects.passed_options import drift, misplaced
from memcached_operator.core.objects.pod_template import DEFAULTS, template
from operator_runtime import Difference, differences, names_of, no_longer

# How long a Deployment waits for a server beyond its pause, before it gives up, in seconds: Kubernetes' own
# default.
DEADLINE_S: Final = 600
REPLICAS: Final = "spec.replicas"
DERIVED_PATHS: Final = (
    f"metadata.annotations[{labels.APPLIED_ANNOTATION}]",
    *(f"spec.template.metadata.annotations[{each}]" for each in (labels.TEMPLATE_ANNOTATION, labels.MEMORY_ANNOTATION)),
)
"""Paths of annotations that follow from other fields."""


def desired_workload(
    kind: Workload,
    owner: labels.MemcachedOwner,
    size: int,
    image: str,
    user_id: int | None = USER_ID,
    spec: Spec = DEFAULTS,
    *,
    paused: bool = False,
    restart: str = "",
) -> types.WorkloadManifest:
    """Build the workload that runs the servers of a Memcached.

    Args:
        kind: a StatefulSet's servers keep their names; it is governed by the Service of the Memcached's name.
        user_id, restart: see `template`.
        paused: a Deployment is to replace no pods for now. One that has made none yet would make none at all.
    """
    pods, passed, applied = template(owner.name, image, user_id, spec, restart)
    common = types.WorkloadSpec(
        replicas=size, selector=types.LabelSelector(labels.selector_labels(owner.name)), template=pods
    )
    return types.WorkloadManifest(
        apiVersion="apps/v1",
        kind=kind,
        metadata=metadata(owner, annotations={labels.APPLIED_ANNOTATION: applied}),
        spec=_of_stateful_set(common, owner.name) if kind == "StatefulSet" else _of_deployment(common, spec, paused),
        passed=passed,
    )


def _of_stateful_set(common: types.WorkloadSpec, name: str) -> types.WorkloadSpec:
    return msgspec.structs.replace(
        common,
        serviceName=name,
        # All at once: servers know nothing of each other, and one that does not start keeps no other from it.
        podManagementPolicy="Parallel",
        # Its controller knows no pause between two servers, and would put back memory that a server was given.
        updateStrategy=types.Strategy("OnDelete"),
    )


def _of_deployment(common: types.WorkloadSpec, spec: Spec, paused: bool) -> types.WorkloadSpec:
    rollout = spec.rollout
    unavailable = 1 if rollout.maxUnavailable is None else rollout.maxUnavailable
    return msgspec.structs.replace(
        common,
        # A second cache next to the first is no help: it is empty, and on no list.
        strategy=types.Strategy(
            "RollingUpdate", types.RollingUpdate(unavailable, 0 if rollout.maxSurge is None else rollout.maxSurge)
        ),
        minReadySeconds=rollout.minReadySeconds,
        progressDeadlineSeconds=rollout.minReadySeconds + DEADLINE_S,
        paused=paused,
    )


class _Applied(NamedTuple):
    """Workload of the specification in an annotation, or of the defaults where that is unknown.

    Attributes:
        body: of the workload, `keyed`.
        names: of the fields in it, with those that pods alone may have.
    """

    body: Any
    names: Any


@lru_cache(maxsize=64)  # most specifications are alike
def _applied(kind: Workload, text: str) -> _Applied:
    spec = applied_spec({labels.APPLIED_ANNOTATION: text}) or DEFAULTS
    body = desired_workload(kind, labels.MemcachedOwner("", "", ""), 1, "", spec=spec).body()
    body["spec"]["template"]["metadata"]["annotations"] |= dict.fromkeys(labels.POD_ANNOTATIONS, "")
    return _Applied(keyed(body), names_of({"spec": body["spec"]}))


def _compare(desired: types.WorkloadManifest, live: types.WorkloadManifest) -> Iterable[Difference]:
    """The differences of a workload, with what was applied before, or is by default, and is to be there no more."""
    kind: Workload = "Deployment" if desired.spec.serviceName is None else "StatefulSet"
    former = _applied(kind, (live.metadata.annotations or {}).get(labels.APPLIED_ANNOTATION, ""))
    if desired.spec.template == live.spec.template and desired.passed == live.passed:
        desired, live = _without_pods(desired), _without_pods(live)  # as where the size alone has changed
    wanted, held = desired.body(), live.body()
    found = list(differences(desired, live))
    if desired.passed or live.passed:
        found = [each for each in found if each.desired is None]
        found += drift(keyed(wanted), keyed(held), former.body)
        found += misplaced(keyed(wanted), keyed(held))
    for names in (_applied(kind, "").names, former.names):
        found += no_longer(names, wanted, held)
    return {each.steps: each for each in found}.values()


def _without_pods(manifest: types.WorkloadManifest) -> types.WorkloadManifest:
    return msgspec.structs.replace(manifest, spec=msgspec.structs.replace(manifest.spec, template=None), passed=())


DEPLOYMENT: Final = Codec(types.WorkloadManifest, compare=_compare, fixed=("spec.selector",))
STATEFUL_SET: Final = Codec(
    types.WorkloadManifest,
    compare=_compare,
    # Made otherwise by another release: its pods stay, and are taken over by the new one.
    fixed=("spec.selector", "spec.serviceName", "spec.podManagementPolicy"),
    replace="Orphan",
)
CODEC: Final = DEPLOYMENT  # by which either is held and compared
