"""The reference of the runtime, as it is made from its sources."""

from __future__ import annotations

from pathlib import Path

import pytest

import operator_runtime
from docs.site import runtime_reference

REFERENCE = Path(__file__).parents[3] / "docs" / "runtime-reference.md"


def test_the_reference_is_what_the_sources_say() -> None:
    assert REFERENCE.read_text() == runtime_reference.page(), "./dev runtime-docs writes it anew"


def test_every_name_has_its_place_and_says_what_it_is() -> None:
    entries = REFERENCE.read_text().split("\n### ")[1:]
    assert sorted(entry.partition("\n")[0] for entry in entries) == list(operator_runtime.__all__)
    for entry in entries:
        assert len(entry.splitlines()) > 2, entry


def test_what_is_left_out_is_there_to_be_left_out() -> None:
    assert set(operator_runtime.__all__) >= runtime_reference.GIVEN
    for name in runtime_reference.INNER:
        owner, _, member = name.partition(".")
        assert hasattr(getattr(operator_runtime, owner), member), name


def test_a_name_without_a_place_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        runtime_reference, "CHAPTERS", {"All": [each for each in operator_runtime.__all__ if each != "run"]}
    )
    with pytest.raises(ValueError, match=r"differ in run$"):
        runtime_reference.page()


def test_a_docstring_s_sections_become_lists() -> None:
    told = runtime_reference._words(
        "Does it.\n\nArgs:\n    first: one,\n        and more.\n    second: two.\n\n"
        "Returns:\n    What: it\n    did.\n\nInvariants:\n    `_inner` is None.\n"
    )
    assert told == "Does it.\n\nArgs:\n\n- `first`: one, and more.\n- `second`: two.\n\nReturns:\n\n- What: it did.\n"
