"""The annotation with the memory that running servers are given: what is written is read, and nothing else."""

from __future__ import annotations

import pytest

from memcached_operator.core.objects.memory_annotation import Memory, memory_of


@pytest.mark.parametrize(
    ("annotation", "memory"),
    [
        ("64Mi,146Mi,146Mi", Memory(64, "146Mi", "146Mi")),
        ("64Mi,146Mi,146Mi,512", Memory(64, "146Mi", "146Mi", 512)),
        ("64Mi,146Mi,146Mi,", None),
        ("64Mi,146Mi,146Mi,-1", None),
        ("64Mi,146Mi,146Mi," + "9" * 5000, None),
        ("64Mi,146Mi,146Mi,512,1", None),
        ("64Mi,146Mi", None),
    ],
)
def test_an_annotation_that_another_client_wrote_says_nothing(annotation: str, memory: Memory | None) -> None:
    assert memory_of(annotation) == memory


@pytest.mark.parametrize(
    "memory", [Memory(64, "146Mi", "146Mi"), Memory(1024, "", ""), Memory(64, "1Gi", "", 512)], ids=str
)
def test_what_is_written_is_read(memory: Memory) -> None:
    assert memory_of(memory.annotation) == memory


def test_memory_for_items_is_written_as_a_specification_has_it() -> None:
    assert (Memory(1024, "", "").items, Memory(100, "", "").items) == ("1Gi", "100Mi")
