"""What the API server says of a group in which a kind was not found."""

import msgspec

from operator_runtime.client.discovery import misnamed
from tests.unit.things import THINGS


def test_a_kind_that_came_in_the_meantime_is_no_mistake() -> None:
    answer = {"resources": [{"name": "things", "kind": "Thing", "namespaced": True}]}
    assert misnamed(THINGS, msgspec.json.encode(answer)) == ("", False)


def test_of_many_names_the_first_are_shown() -> None:
    names = [f"k{number:02}" for number in range(23)]
    answer = {"resources": [{"name": name, "kind": "K", "namespaced": True} for name in reversed(names)]}
    assert misnamed(THINGS, msgspec.json.encode(answer)) == (
        f"example.com/v1 has {', '.join(names[:20])} and 3 more.",
        False,
    )
