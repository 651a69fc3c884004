"""JSON patches: a library's, and what refuses one."""

import copy
from typing import Any

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.patches.merge import json_patch

FOUND = {"data": {"k": "1", "l": "2"}, "metadata": {"finalizers": ["one", "two"]}}


def operation(op: str, path: str, *value: Any) -> dict[str, Any]:
    return {"op": op, "path": path, **({"value": value[0]} if value else {})}


def test_all_operations_are_done_on_a_copy() -> None:
    before = copy.deepcopy(FOUND)
    operations = [
        operation("test", "/data/k", "1"),
        operation("replace", "/data/k", "9"),
        operation("add", "/metadata/finalizers/-", "three"),
        operation("remove", "/metadata/finalizers/0"),
    ]
    patched = json_patch(FOUND, operations)
    assert patched == {"data": {"k": "9", "l": "2"}, "metadata": {"finalizers": ["two", "three"]}}
    assert before == FOUND


@pytest.mark.parametrize(
    "refused",
    [
        operation("twist", "/data"),
        operation("remove", "/absent"),
        operation("test", "/data/k", "2"),
        operation("test", "/data/absent", "2"),
        operation("add", "/a/b", 1),
        operation("add", "/metadata/finalizers/7", "x"),
        operation("replace", "", []),
        {"op": "add"},
        {"op": "add", "path": 1, "value": 1},
        "text",
    ],
)
def test_what_cannot_be_done_is_422(refused: Any) -> None:
    with pytest.raises(ApiError) as error:
        json_patch(FOUND, [refused])
    assert error.value.code == 422
