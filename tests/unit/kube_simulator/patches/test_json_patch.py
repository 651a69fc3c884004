import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given, strategies as st

from kube_simulator.errors import ApiError
from kube_simulator.patches.json_patch import json_patch
from tests.unit.kube_simulator.patches.support import CONFIG_MAPS, EXAMPLES, Json

FOUND = {"data": {"k": "1", "l": "2"}, "metadata": {"finalizers": ["one", "two"], "labels": {"a/b": "x", "c~d": "y"}}}


def patched(*operations: Any, found: Json = FOUND) -> Json:
    return json_patch(found, list(operations), CONFIG_MAPS, "a")


def operation(op: str, path: str, *value: Any, **more: Any) -> Json:
    return {"op": op, "path": path, **({"value": value[0]} if value else {}), **more}


def test_operations_are_done_one_after_the_other() -> None:
    result = patched(
        operation("test", "/data/k", "1"),
        operation("replace", "/data/k", "9"),
        operation("add", "/metadata/finalizers/-", "three"),
        operation("remove", "/metadata/finalizers/0"),
        operation("add", "/metadata/finalizers/1", "between"),
        operation("copy", "/data/m", **{"from": "/data/k"}),
        operation("move", "/data/n", **{"from": "/data/l"}),
        operation("replace", "/metadata/labels/a~1b", "z"),
        operation("remove", "/metadata/labels/c~0d"),
    )
    assert result == {
        "data": {"k": "9", "m": "9", "n": "2"},
        "metadata": {"finalizers": ["two", "between", "three"], "labels": {"a/b": "z"}},
    }


def test_what_no_operation_touches_is_shared_and_the_document_stays() -> None:
    before = copy.deepcopy(FOUND)
    result = patched(operation("replace", "/data/k", "9"))
    assert result["metadata"] is FOUND["metadata"]
    assert before == FOUND
    assert patched() is FOUND
    assert json_patch(FOUND, None, CONFIG_MAPS, "a") is FOUND


def test_the_api_server_is_more_lenient_than_the_rfc() -> None:
    """Each of these was answered with 200 by a kube-apiserver v1.36.3."""
    assert patched(operation("replace", "/data/z", "1"))["data"]["z"] == "1"
    assert patched(operation("test", "/data/z", None)) is FOUND
    assert patched(operation("add", "/data/n"))["data"]["n"] is None
    assert patched(operation("copy", "/data/n", **{"from": "/data/zz"}))["data"]["n"] is None
    assert patched(operation("remove", "/metadata/finalizers/-1"))["metadata"]["finalizers"] == ["one"]
    assert patched(operation("add", "data/z", "1"))["z"] == "1"


@pytest.mark.parametrize(
    "refused",
    [
        operation("test", "/data/k", "9"),
        operation("test", "/data/z", "9"),
        operation("test", "/data/k"),
        operation("test", "/metadata/finalizers", ["one"]),
        operation("test", "/data/k/x", None),
        operation("remove", "/data/z"),
        operation("remove", ""),
        operation("replace", "/z/q", "1"),
        operation("replace", "/metadata/finalizers/-", "x"),
        operation("replace", "/metadata/finalizers/2", "x"),
        operation("replace", "", 5),
        operation("add", "/z/q", "1"),
        operation("add", "/data/k/x", "1"),
        operation("add", "/metadata/finalizers/7", "x"),
        operation("add", "/metadata/finalizers/x", "x"),
        operation("move", "/data/n", **{"from": "/data/zz"}),
        operation("move", "/data/n"),
        operation("twist", "/data/k", "1"),
        {"op": "add", "value": "1"},
        {"path": "/data/k", "value": "1"},
    ],
)
def test_an_operation_that_cannot_be_done_is_422_and_says_no_more(refused: Json) -> None:
    with pytest.raises(ApiError) as raised:
        patched(operation("replace", "/data/l", "9"), refused)
    assert (raised.value.code, raised.value.reason) == (422, "Invalid")
    assert str(raised.value) == "the server rejected our request due to an error in our request"


DOCUMENTS = st.fixed_dictionaries(
    {"a": st.lists(st.integers(0, 3), max_size=3), "b": st.dictionaries(st.sampled_from("xy"), st.integers(0, 3))}
)
PATHS = st.sampled_from(["/a", "/a/0", "/a/1", "/a/-", "/b", "/b/x", "/b/y", "/c"])
OPERATIONS = st.lists(
    st.builds(
        lambda op, path, source, value: {"op": op, "path": path, "from": source, "value": value},
        st.sampled_from(["add", "remove", "replace", "test", "move", "copy"]),
        PATHS,
        PATHS,
        st.integers(0, 3),
    ),
    max_size=3,
)


@given(DOCUMENTS, OPERATIONS)
@EXAMPLES
def test_where_the_rfc_allows_a_patch_it_comes_to_the_same(document: Json, operations: list[Json]) -> None:
    try:
        expected = jsonpatch.apply_patch(document, operations)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError):
        return
    assert patched(*operations, found=document) == expected
