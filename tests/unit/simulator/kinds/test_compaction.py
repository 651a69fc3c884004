"""What is left out of Kubernetes' own kinds because it is empty."""

from __future__ import annotations

from typing import Any

import pytest

from memcached_operator.simulator.kinds.compaction import compact


@pytest.mark.parametrize(
    "field",
    [
        {"volumes": []},
        {"volumes": None},
        {"nodeName": ""},
        {"hostNetwork": False},
        {"minReadySeconds": 0},
        {"periodSeconds": 0},
        {"nodeSelector": {}},
    ],
)
def test_what_says_nothing_is_left_out(field: dict[str, Any]) -> None:
    assert compact({"kept": "x", **field}) == {"kept": "x"}
    assert compact([{"inside": {**field, "kept": 1}}]) == [{"inside": {"kept": 1}}]


@pytest.mark.parametrize(
    "field",
    [
        {"replicas": 0},
        {"securityContext": {}},
        {"automountServiceAccountToken": False},
        {"holderIdentity": ""},
        {"annotations": {"a": ""}},
        {"terminationGracePeriodSeconds": 0},
    ],
)
def test_what_says_that_there_is_none_stays(field: dict[str, Any]) -> None:
    assert compact(field) == field


def test_amounts_get_their_one_form() -> None:
    given = {"limits": {"cpu": "1000m"}, "requests": {"memory": "1024Ki"}, "sizeLimit": "1000", "name": "1000m"}
    assert compact(given) == {
        "limits": {"cpu": "1"},
        "requests": {"memory": "1Mi"},
        "sizeLimit": "1k",
        "name": "1000m",
    }
