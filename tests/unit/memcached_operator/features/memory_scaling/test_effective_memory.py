"""Memory that servers have grown to is read by the same rule as memory that is specified."""

from __future__ import annotations

import pytest

from memcached_operator.core.objects.pod_template import fingerprint
from memcached_operator.core.objects.workload import desired_workload
from memcached_operator.features.memory_scaling.effective_memory import with_effective_memory
from memcached_operator.features.memory_scaling.retaining_condition import without_step
from tests.unit.memcached_operator.live import spec_of
from tests.unit.memcached_operator.support import IMAGE, OWNER

GROWING = {"workload": "StatefulSet", "memory": "8Gi", "memoryScaling": {"max": "10Ti"}}


@pytest.mark.parametrize("memory", ["9Gi", "9217Mi", "1Ti", "1048577Mi", "2Ti", "10239Gi"])
def test_servers_are_made_with_any_memory_that_is_in_force(memory: str) -> None:
    spec = with_effective_memory(spec_of(GROWING), memory)
    annotation = fingerprint(desired_workload("StatefulSet", OWNER, 1, IMAGE, spec=spec).template).memory
    assert spec.memory == memory
    assert annotation.startswith(f"{memory},")
    largest = with_effective_memory(spec_of(GROWING), "10Ti")
    assert without_step(largest, "8Gi", annotation).memory == memory


@pytest.mark.parametrize("reported", [None, "", "much", "-1Gi", "9" * 250_000])
def test_what_servers_are_made_with_counts_where_the_status_has_no_quantity(reported: str | None) -> None:
    assert with_effective_memory(spec_of(GROWING), reported, "9217Mi,1Mi,1Mi").memory == "9217Mi"
    assert with_effective_memory(spec_of(GROWING), reported, f"{'9' * 250_000}Mi,1Mi,1Mi").memory == "8Gi"
