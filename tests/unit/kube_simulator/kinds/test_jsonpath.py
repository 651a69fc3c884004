"""The paths of printer columns."""

from __future__ import annotations

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.kinds.jsonpath import find

OBJECT = {
    "metadata": {"annotations": {"a.b/c": "x"}},
    "spec": {"size": 3, "list": ["x", "y", "z"], "null": None, "on": True, "off": False},
    "status": {
        "conditions": [
            {"type": "A", "status": "True", "number": 1, "ok": True},
            {"type": "B", "status": "False", "number": 2, "ok": False, "in": {"side": "s"}},
            {"type": "C", "status": "True"},
        ]
    },
}
CONDITIONS = ".status.conditions"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.size", [3]),
        ("spec.size", [3]),
        (".spec.null", [None]),
        (".spec.size.more", []),
        (".spec.list[1]", ["y"]),
        (".spec.list[-1]", ["z"]),
        (".spec.list[*]", ["x", "y", "z"]),
        (f"{CONDITIONS}[*].type", ["A", "B", "C"]),
        (r".metadata.annotations.a\.b/c", ["x"]),
        (f'{CONDITIONS}[?(@.type=="B")].status', ["False"]),
        (f'{CONDITIONS}[?(@.status=="True")].type', ["A", "C"]),
    ],
)
def test_a_path_leads_to_what_is_there(path: str, found: list[object]) -> None:
    assert find(path, OBJECT) == found


@pytest.mark.parametrize(
    "path", ["..type", ".spec.list[0:2]", ".spec.list[0,1]", f"{CONDITIONS}[?(@.number>1)].type", ".spec["]
)
def test_what_is_not_implemented_is_said_and_not_guessed(path: str) -> None:
    with pytest.raises(ApiError) as error:
        find(path, OBJECT)
    assert (error.value.code, path in error.value.message) == (501, True)
