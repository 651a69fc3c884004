"""What the API server says of a group in which a kind was not found."""

import msgspec
import pytest

from operator_runtime.client.resources import has_subresource, misnamed
from tests.unit.things import THINGS


def misnamed_of(*names: str, kind: str) -> tuple[str, bool]:
    resources = [{"name": name, "kind": kind, "namespaced": True} for name in names]
    return misnamed(THINGS, msgspec.json.encode({"resources": resources}))


@pytest.mark.parametrize(("subresource", "served"), [("status", True), ("resize", False), ("", False)])
def test_a_subresource_is_served_where_discovery_has_it(subresource: str, *, served: bool) -> None:
    resources = [
        {"name": each, "kind": "Thing", "namespaced": True} for each in ("things", "things/status", "a/resize")
    ]
    assert has_subresource(THINGS, subresource, msgspec.json.encode({"resources": resources})) is served


def test_a_kind_that_came_in_the_meantime_is_no_mistake_and_of_many_names_the_first_are_shown() -> None:
    assert misnamed_of("things", kind="Thing") == ("", False)
    names = [f"k{number:02}" for number in range(23)]
    message = f"example.com/v1 has {', '.join(names[:20])} and 3 more."
    assert misnamed_of(*reversed(names), kind="K") == (message, False)
