"""Pure: how a Deployment and a StatefulSet are kept: what differs of them, and what of that cannot be changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from memcached_operator.memcached.labels import MEMORY_ANNOTATION, TEMPLATE_ANNOTATION
from memcached_operator.memcached.wanted.shape import Shape
from memcached_operator.memcached.wanted.workload import names_of_any
from memcached_operator.memcached.wanted.workload_types import WorkloadManifest
from memcached_operator.memcached.workloads.records import WorkloadRecord
from operator_runtime import Difference, Rules, no_longer

REPLICAS: Final = "spec.replicas"
NOTED: Final = {
    f"spec.template.metadata.annotations[{annotation}]": annotation
    for annotation in (TEMPLATE_ANNOTATION, MEMORY_ANNOTATION)
}
"""Paths of what a template says of itself, to the annotations."""


def _excess(wanted: WorkloadManifest, live: WorkloadManifest) -> Iterator[Difference]:
    """What any workload of the kind has, and this one is to be without: user ids, a pause before servers end."""
    return no_longer(names_of_any(wanted.kind), wanted.body(), live.body())


SHAPE: Final = Shape(WorkloadManifest, excess=_excess)
DEPLOYMENT_RULES: Final[Rules[WorkloadManifest, WorkloadRecord]] = SHAPE.rules(fixed=("spec.selector",))
STATEFUL_SET_RULES: Final[Rules[WorkloadManifest, WorkloadRecord]] = SHAPE.rules(
    # Made otherwise by another release: its pods stay, and are taken over by the new one.
    fixed=("spec.selector", "spec.serviceName", "spec.podManagementPolicy"),
    replace="Orphan",
)
