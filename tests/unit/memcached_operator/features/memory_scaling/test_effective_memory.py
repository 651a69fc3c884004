"""Memory that servers have grown to is read by the same rule as memory that is specified."""

from __future__ import annotations

import re

import pytest

from memcached_operator.api.v1alpha1 import MEMORY_PATTERN
from memcached_operator.core.objects.pod_template import fingerprint
from memcached_operator.core.objects.workload import desired_workload
from memcached_operator.features.memory_scaling.effective_memory import with_effective_memory
from memcached_operator.features.memory_scaling.memory_steps import without_step
from tests.unit.memcached_operator.live import spec_of
from tests.unit.memcached_operator.support import IMAGE, OWNER

GROWING = {"workload": "StatefulSet", "memory": "8Gi", "memoryScaling": {"max": "9999Gi"}}


@pytest.mark.parametrize("memory", ["9Gi", "9217Mi", "1024Gi", "1048577Mi", "2048Gi", "9999Gi"])
def test_servers_are_made_with_any_memory_that_is_in_force(memory: str) -> None:
    spec = with_effective_memory(spec_of(GROWING), memory)
    annotation = fingerprint(desired_workload("StatefulSet", OWNER, 1, IMAGE, spec=spec).template).memory
    assert spec.memory == memory
    assert annotation.startswith(f"{memory},")
    largest = with_effective_memory(spec_of(GROWING), "9999Gi")
    assert without_step(largest, "8Gi", annotation).memory == memory


def test_what_has_too_many_digits_for_mi_is_rounded_down() -> None:
    assert with_effective_memory(spec_of(GROWING), None, "10000001Mi,1Mi,1Mi").memory == "9765Gi"
    assert re.fullmatch(MEMORY_PATTERN, "9765Gi")
