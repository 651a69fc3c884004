"""Pure: how a Deployment and a StatefulSet are kept: what differs, and by which write that is put right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from memcached_operator.memcached.labels import CONTAINER, MEMORY_ANNOTATION, TEMPLATE_ANNOTATION
from memcached_operator.memcached.owned import Shape
from memcached_operator.memcached.workloads.objects import WorkloadManifest
from memcached_operator.memcached.workloads.records import WorkloadRecord
from operator_runtime import Difference, Patch, Rules

REPLICAS: Final = "spec.replicas"
_PORTS: Final = f"spec.template.spec.containers[{CONTAINER}].ports"
_SECURITY: Final = "spec.template.spec.securityContext"
NOTED: Final = {
    f"spec.template.metadata.annotations[{annotation}]": annotation
    for annotation in (TEMPLATE_ANNOTATION, MEMORY_ANNOTATION)
}
"""Paths of what a template says of itself, to the annotations."""
# A user id that was wanted once, and is none any more.
_USER_IDS: Final = ("runAsUser", "runAsGroup")


def cheapest(wanted: WorkloadManifest, live: WorkloadRecord, found: Sequence[Difference]) -> Patch | None:
    """The patch that puts these differences right, or those of them that an apply would not; None for an apply.

    Replicas alone are patched, at half the API server's cost of an apply. Ports merge by their number, so an apply
    would leave an edited one beside ours, under the same name, and be refused. Of fields that must not be there, an
    apply takes away only what nobody else has set; what it leaves is alone then, and costs no other rollout before.
    """
    if [each.path for each in found] == [REPLICAS]:
        return Patch({"spec": {"replicas": wanted.spec.replicas}}, found)
    ports = [each for each in found if each.path == _PORTS]
    excess = [each for each in found if each.wanted is None and each.path.startswith(_SECURITY)]
    noted = [each for each in found if each.path in NOTED]
    rest = len(found) - len(ports) - len(excess) - len(noted)
    if not ports and (rest or not excess):
        return None
    pod: dict[str, object] = {}
    if ports:
        pod["containers"] = [{"name": CONTAINER, "ports": [{"$patch": "replace"}, *_ports(wanted)]}]
    if excess:
        pod["securityContext"] = {each.path.rpartition(".")[2]: None for each in excess}
    template: dict[str, object] = {"spec": pod}
    if rest:
        noted = []  # they speak of the rest as well
    elif noted:
        template["metadata"] = {"annotations": {NOTED[each.path]: each.wanted for each in noted}}
    return Patch({"spec": {"template": template}}, [*ports, *excess, *noted], strategic=True)


def _excess_user_ids(wanted: WorkloadManifest, live: WorkloadManifest) -> Sequence[Difference]:
    ours, theirs = _security(wanted), _security(live)
    return [
        Difference(f"{_SECURITY}.{each}", None, theirs[each])
        for each in _USER_IDS
        if each not in ours and theirs.get(each) is not None
    ]


def _security(workload: WorkloadManifest) -> dict[str, Any]:
    template = workload.spec.template
    return (template.spec.securityContext if template and template.spec else None) or {}


def _ports(wanted: WorkloadManifest) -> list[dict[str, object]]:
    template = wanted.spec.template
    (container,) = (template.spec.containers if template and template.spec else None) or ()
    ports: list[dict[str, object]] = msgspec.to_builtins(container.ports)
    return ports


SHAPE: Final = Shape(WorkloadManifest, excess=_excess_user_ids)
DEPLOYMENT_RULES: Final[Rules[WorkloadManifest, WorkloadRecord]] = SHAPE.rules(patch=cheapest, fixed=("spec.selector",))
STATEFUL_SET_RULES: Final[Rules[WorkloadManifest, WorkloadRecord]] = SHAPE.rules(
    patch=cheapest,
    # Made otherwise by another release: its pods stay, and are taken over by the new one.
    fixed=("spec.selector", "spec.serviceName", "spec.podManagementPolicy"),
    replace="Orphan",
)
