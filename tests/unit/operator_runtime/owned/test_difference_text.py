"""The text of a difference: of lists the elements that differ, and no others."""

from __future__ import annotations

import pytest

from operator_runtime import Difference, Fields
from operator_runtime.owned.difference_text import CHARACTERS, ELEMENTS, difference_text


class Container(Fields, frozen=True, omit_defaults=True):
    name: str
    image: str = ""


COMMAND = ["memcached", "-m", "64", "-c", "1024"]
SIDECAR = {"name": "exporter", "image": "exporter:1"}
ADDED = {"name": "log", "image": "log:1"}
LONG = "x" * 500
TEXTS: dict[str, tuple[object, object, str]] = {
    "a value": (3, 4, "f: 3 → 4"),
    "a value that is not there": (None, {"a": 1}, 'f: absent → {"a":1}'),
    "a value that is to go": ("a", None, 'f: "a" → absent'),
    "a list that was empty": ([], ["-vv"], 'f: [] → ["-vv"]'),
    "a list that was not there": (None, ["-vv"], 'f: absent → ["-vv"]'),
    "a list that is to be empty": (("-vv",), (), 'f: ["-vv"] → []'),
    "a list in place of no list": ("a", ["a"], 'f: "a" → ["a"]'),
    "lists of other types": (("a",), ["a"], 'f: ["a"] → ["a"]'),
    "one element": (COMMAND, ["memcached", "-m", "128", "-c", "1024"], 'f[2]: "64" → "128"'),
    "two elements": (COMMAND, ["memcached", "-m", "128", "-c", "2"], 'f[2]: "64" → "128"; f[4]: "1024" → "2"'),
    "elements at the end": (["-v"], ["-v", "-o", "modern"], 'f[1]: absent → "-o"; f[2]: absent → "modern"'),
    "an element in front": (["-o", "modern"], ["-v", "-o", "modern"], 'f[0]: absent → "-v"'),
    "an element in the midst": (["a", "b", "c"], ["a", "c"], 'f[1]: "b" → absent'),
    "one of equal elements": (["a", "a", "a"], ["a", "a"], 'f[2]: "a" → absent'),
    "as many as are named": ([1, 2, 3], [4, 5, 6], "f[0]: 1 → 4; f[1]: 2 → 5; f[2]: 3 → 6"),
    "more than are named": ([1, 2, 3, 4, 5], [6, 7, 8], "f[0]: 1 → 6; f[1]: 2 → 7; f[2]: 3 → 8; 2 more of f"),
    "a named element": (
        [SIDECAR, ADDED],
        [SIDECAR | {"image": "exporter:2"}, ADDED],
        'f[exporter]: {"name":"exporter","image":"exporter:1"} → {"name":"exporter","image":"exporter:2"}',
    ),
    "named elements that come and go": (
        [SIDECAR],
        [ADDED],
        'f[exporter]: {"name":"exporter","image":"exporter:1"} → absent; '
        'f[log]: absent → {"name":"log","image":"log:1"}',
    ),
    "the order of named elements": (
        [{"name": "a"}, {"name": "b"}],
        [{"name": "b"}, {"name": "a"}],
        'f[0]: {"name":"a"} → {"name":"b"}; f[1]: {"name":"b"} → {"name":"a"}',
    ),
    "elements of which two have one name": (
        [{"name": "a", "port": 1}, {"name": "a", "port": 2}],
        [{"name": "a", "port": 1}, {"name": "a", "port": 3}],
        'f[1]: {"name":"a","port":2} → {"name":"a","port":3}',
    ),
    "elements of which one has no name": ([{"name": "a"}, {}], [{"name": "a"}, {"b": 1}], 'f[1]: {} → {"b":1}'),
    "structs with names": (
        (Container("a", "x"), Container("b")),
        (Container("a", "y"), Container("b")),
        'f[a]: {"name":"a","image":"x"} → {"name":"a","image":"y"}',
    ),
    "a long element": ([LONG], ["a"], f'f[0]: "{LONG[: CHARACTERS - 2]}… → "a"'),
}


@pytest.mark.parametrize(("live", "desired", "text"), TEXTS.values(), ids=TEXTS)
def test_the_text_names_what_differs_with_its_former_and_its_new_value(
    live: object, desired: object, text: str
) -> None:
    assert difference_text("f", live, desired) == text
    assert str(Difference(("f",), desired, live)) == text


def test_the_text_of_lists_is_bounded() -> None:
    long = difference_text("f", [LONG, *range(1000)], [LONG + "y", *range(1, 2000)])
    assert len(long) < (ELEMENTS + 1) * (2 * CHARACTERS + 30)
