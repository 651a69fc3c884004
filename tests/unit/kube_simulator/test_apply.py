"""Server-side apply of a kind with every sort of list and map: who owns which field afterwards."""

from __future__ import annotations

from itertools import count
from typing import Any

from hypothesis import given, settings, strategies as st

from kube_simulator.errors import ApiError
from kube_simulator.patches.apply import server_side_apply
from kube_simulator.patches.fields import read
from kube_simulator.schema import custom
from tests.unit.kube_simulator.schema_parts import INTEGER, TEXT, Json, a_list, an_object, by_keys, crd

PORT = an_object({"port": INTEGER, "proto": {**TEXT, "default": "TCP"}, "name": TEXT}, required=["port"])
SPEC = {
    "size": {**INTEGER, "default": 1},
    "list": a_list(TEXT),
    "set": a_list(TEXT, **{"x-kubernetes-list-type": "set"}),
    "map": an_object(additionalProperties=TEXT),
    "mapmap": an_object(additionalProperties=an_object({"a": TEXT, "b": TEXT})),
    "ports": a_list(PORT, **by_keys("port", "proto")),
}
STATUS = an_object(**{"x-kubernetes-preserve-unknown-fields": True})
[THINGS] = custom.resources_of(
    custom.defaulted(crd("things", an_object({"spec": an_object(SPEC), "status": STATUS}), subresources={"status": {}}))
)
EXAMPLES = settings(max_examples=40)
TIMES = count()


def thing(spec: Json, **metadata: Any) -> Json:
    return {"apiVersion": THINGS.api_version, "kind": "Thing", "metadata": {"name": "t", **metadata}, "spec": spec}


def applied(live: Json | None, body: Json, manager: str = "me", *, force: bool = False, **more: Any) -> Json:
    """The object after an apply, each of which is later than the one before."""
    now = f"2026-01-01T00:00:00.{next(TIMES):09}Z"
    return server_side_apply(live, body, resource=THINGS, manager=manager, force=force, now=now, **more)


def owned(found: Json, manager: str) -> Json:
    """The fields that a manager has applied."""
    entries = found["metadata"].get("managedFields", [])
    mine = [entry["fieldsV1"] for entry in entries if (entry["manager"], entry["operation"]) == (manager, "Apply")]
    return dict(mine[0]) if mine else {}


def test_an_endpoint_s_writer_owns_only_what_the_endpoint_changes() -> None:
    both = thing({"size": 1}, labels={"a": "b"}) | {"status": {"ready": 1}}
    live = applied(None, both)
    assert owned(live, "me").keys() == {"f:metadata", "f:spec"}
    assert "status" not in live
    ready = applied(live, both | {"spec": {"size": 9}}, subresource="status")
    assert (ready["spec"], ready["status"]) == ({"size": 1}, {"ready": 1})
    entry = next(entry for entry in ready["metadata"]["managedFields"] if entry.get("subresource") == "status")
    assert entry["fieldsV1"] == {"f:status": {"f:ready": {}}}
    assert applied(ready, both, subresource="status") is ready


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
    assert applied(live, thing(mine)) is live


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
    assert len(read(owned(after, "other"))) == len(read(owned(live, "other"))) - lost
