from hypothesis import given, strategies as st

from kube_simulator.errors import ApiError
from kube_simulator.patches.fields import read
from tests.unit.kube_simulator.patches.support import (
    EXAMPLES,
    LATER,
    Json,
    applied,
    owners,
    thing,
)


def test_an_endpoint_s_writer_owns_only_what_the_endpoint_changes() -> None:
    both = thing({"size": 1}, labels={"a": "b"}) | {"status": {"ready": 1}}
    live = applied(None, both)
    assert owners(live)["me", "Apply"].keys() == {"f:metadata", "f:spec"}
    assert "status" not in live
    ready = applied(live, both | {"spec": {"size": 9}}, subresource="status")
    assert (ready["spec"], ready["status"]) == ({"size": 1}, {"ready": 1})
    entry = next(entry for entry in ready["metadata"]["managedFields"] if entry.get("subresource") == "status")
    assert entry["fieldsV1"] == {"f:status": {"f:ready": {}}}
    assert applied(ready, both, subresource="status", now=LATER) is ready


NAMES = st.sampled_from(["a", "b", "c"])
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(1, 3),
        "list": st.lists(NAMES, max_size=2),
        "set": st.lists(NAMES, unique=True, min_size=1, max_size=3),
        "map": st.dictionaries(NAMES, NAMES, max_size=2),
        "mapmap": st.dictionaries(NAMES, st.fixed_dictionaries({}, optional={"a": NAMES, "b": NAMES}), max_size=2),
        "ports": st.lists(
            st.fixed_dictionaries({"port": st.integers(1, 4)}, optional={"name": NAMES}),
            unique_by=lambda each: each["port"],
            min_size=1,
            max_size=3,
        ),
    },
)


@given(SPECS, SPECS)
@EXAMPLES
def test_an_apply_twice_changes_nothing_the_second_time(others: Json, mine: Json) -> None:
    live = applied(applied(None, thing(others), "other"), thing(mine), force=True)
    assert applied(live, thing(mine), now=LATER) is live


@given(SPECS, SPECS)
@EXAMPLES
def test_after_a_forced_apply_nobody_else_owns_a_field_that_it_changed(others: Json, mine: Json) -> None:
    live = applied(None, thing(others), "other")
    try:
        applied(live, thing(mine))
    except ApiError as refused:
        lost = len(refused.details["causes"])
    else:
        lost = 0
    after = applied(live, thing(mine), force=True)
    before_count = len(read(owners(live).get(("other", "Apply"), {})))
    assert len(read(owners(after).get(("other", "Apply"), {}))) == before_count - lost
