"""What is passed through, as the API server keeps it."""

from __future__ import annotations

from typing import Any

import pytest

from memcached_operator.memcached.spec import Pod
from memcached_operator.memcached.taken import as_kept, name, names_taken, present, taken

KEPT: dict[str, tuple[Any, Any]] = {
    "an empty text": ({"key": "a", "value": ""}, {"key": "a"}),
    "a null": ({"fsGroup": None, "runAsUser": 0}, {"runAsUser": 0}),
    "an empty list": ({"podAffinity": {"required": []}}, {"podAffinity": {}}),
    "a selector of everything": ({"podSelector": {}}, {"podSelector": {}}),
    "labels that a selector does not name": ({"podSelector": {"matchLabels": {}}}, {"podSelector": {}}),
    "an empty value of a label": ({"matchLabels": {"a": ""}}, {"matchLabels": {"a": ""}}),
    "an empty text in a list": ({"values": ["", "b"]}, {"values": ("", "b")}),
    "false": ({"runAsNonRoot": False}, {"runAsNonRoot": False}),
    "entries of a list": ([{"key": "a", "effect": ""}], ({"key": "a"},)),
}


@pytest.mark.parametrize(("passed", "kept"), KEPT.values(), ids=KEPT)
def test_what_the_api_server_leaves_out_is_not_asked_for(passed: object, kept: object) -> None:
    assert as_kept(passed) == kept


def test_a_field_that_is_set_to_nothing_is_as_good_as_none() -> None:
    nothing = Pod(
        labels={}, tolerations=(), affinity={}, priorityClassName="", nodeSelector={}, securityContext={"a": None}
    )
    assert present(nothing) == {}
    assert present(Pod(terminationGracePeriodSeconds=0)) == {"terminationGracePeriodSeconds": 0}
    assert present(Pod(nodeSelector={"a": ""})) == {"nodeSelector": {"a": ""}}


def test_the_text_has_the_names_and_tells_the_values_apart() -> None:
    names = {"spec": {"nodeSelector": {"disk": 0}}}
    one, other = ({"tolerations": ({"key": key},), "affinity": {"a": 1}} for key in "ab")
    texts = [taken(names, one), taken(names, dict(reversed(one.items()))), taken(names, other)]
    assert texts[0] == texts[1] != texts[2]
    assert [names_taken(each or "") for each in texts] == [names] * 3
    assert (taken(None, {}), names_taken("")) == (None, {})


@pytest.mark.parametrize("text", ["x", "{", "[1] 0123", "tolerations 0123"])
def test_a_text_that_somebody_has_spoilt_has_no_names(text: str) -> None:
    assert name(names_taken(text), "spec", "template") == {}
