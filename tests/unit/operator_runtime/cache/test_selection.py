"""What a cache can hold, by its scope and selectors, against what the simulated API server selects."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from kube_simulator.store.label_selectors import parse_labels
from operator_runtime.cache.store import Selection

NAMES, VALUES = st.sampled_from(["a", "b", "example.com/c"]), st.sampled_from(["", "x", "y-1"])
SETS = st.lists(VALUES, min_size=1, max_size=3).map(lambda values: f"({', '.join(values)})")
REQUIREMENTS = st.one_of(
    st.builds("{}{}{}".format, NAMES, st.sampled_from(["=", "==", "!=", " = ", " != "]), VALUES),
    st.builds("{} {} {}".format, NAMES, st.sampled_from(["in", "notin"]), SETS),
    st.builds("{}{}".format, st.sampled_from(["", "!", "! "]), NAMES),
)


@given(selector=st.lists(REQUIREMENTS, max_size=3).map(",".join), labels=st.dictionaries(NAMES, VALUES, max_size=3))
def test_what_the_api_server_selects_may_be_held(selector: str, labels: dict[str, str]) -> None:
    assert Selection(labels=selector).may_hold("shop", labels) or not parse_labels(selector).matches(labels)


@pytest.mark.parametrize(
    ("selection", "holds"),
    [
        (Selection(), True),
        (Selection(("shop", "bank")), True),
        (Selection(("bank",)), False),
        (Selection(labels="size>3"), True),
        (Selection(labels="size in (2, 3)"), True),
        (Selection(labels="size=1"), True),
        (Selection(labels=" size == 2 ,other"), False),
        (Selection(labels="app=shop"), False),
    ],
)
def test_only_what_is_certain_to_be_elsewhere_is_left_out(selection: Selection, holds: bool) -> None:
    assert selection.may_hold("shop", {"size": "1"}) is holds


def test_labels_that_are_not_known_may_be_any() -> None:
    assert Selection(labels="app=a").may_hold("shop")
