"""What the condition Retaining says of a retention."""

from __future__ import annotations

import pytest

from memcached_operator.api.status import Reason, Status
from memcached_operator.api.v1alpha1 import MemoryScaling
from memcached_operator.features.memory_scaling.retaining_condition import Scaling, retaining
from memcached_operator.features.memory_scaling.scaling_decision import Retained
from operator_runtime import Condition

SERVING = Condition("Serving", "True", Reason.ANSWERING, "")


@pytest.mark.parametrize(("seconds", "words"), [(3600, "1h"), (5400, "90m"), (5401, "5401s")])
def test_a_retention_is_told_in_the_largest_unit_of_which_it_is_a_whole_number(seconds: int, words: str) -> None:
    scaling = Scaling(MemoryScaling(max="1Gi", retentionSeconds=seconds), Retained(), "64Mi")
    told = retaining(scaling, SERVING, Status(), 1, is_queried=True)
    assert told.message == f"What clients request is evicted no earlier than {words} after the last request for it."
