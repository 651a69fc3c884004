"""What the query of a write says, and the body of a deletion."""

from __future__ import annotations

from typing import Any

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.http.options import delete_options, write_options
from kube_simulator.requests.types import DeleteOptions, WriteOptions


def causes(refused: ApiError) -> list[tuple[str, str]]:
    return [(cause["reason"], cause["field"]) for cause in refused.details["causes"]]


def test_a_write_says_who_manages_its_fields_and_how_strict_it_is() -> None:
    assert write_options({}, "CreateOptions") == WriteOptions()
    query = {"dryRun": "All", "fieldManager": "me", "fieldValidation": "Strict", "pretty": "true"}
    assert write_options(query, "UpdateOptions") == WriteOptions(True, "me", "Strict", False)
    assert write_options({"force": "true"}, "PatchOptions", apply=True).force
    assert not write_options({"force": "false"}, "PatchOptions", apply=True).force
    assert not write_options({"force": "true"}, "CreateOptions").force, "only an apply can force"


@pytest.mark.parametrize(
    ("query", "cause"),
    [
        ({"dryRun": "all"}, ("FieldValueNotSupported", "dryRun")),
        ({"dryRun": ""}, ("FieldValueNotSupported", "dryRun")),
        ({"fieldValidation": "strict"}, ("FieldValueNotSupported", "fieldValidation")),
        ({"fieldManager": "x" * 129}, ("FieldValueTooLong", "fieldManager")),
        ({"fieldManager": "a\x01b"}, ("FieldValueInvalid", "fieldManager")),
        ({"force": "true"}, ("FieldValueForbidden", "force")),
    ],
)
def test_a_parameter_with_a_wrong_value_is_422(query: dict[str, str], cause: tuple[str, str]) -> None:
    with pytest.raises(ApiError, match=r'^PatchOptions\.meta\.k8s\.io "" is invalid: ') as refused:
        write_options(query, "PatchOptions")
    assert (refused.value.code, causes(refused.value)) == (422, [cause])


def test_a_deletion_s_options_are_its_body_or_else_its_query() -> None:
    query = {"propagationPolicy": "Foreground", "gracePeriodSeconds": "5", "dryRun": "All"}
    assert delete_options(None, query) == DeleteOptions("Foreground", grace_period_s=5, dry_run=True)
    body = {"propagationPolicy": "Orphan", "preconditions": {"uid": "u", "resourceVersion": "7"}}
    assert delete_options(body, query) == DeleteOptions("Orphan", "u", "7"), "with a body, the query is not read"
    assert delete_options({}, {}) == DeleteOptions()
    assert delete_options({"orphanDependents": True}, {}).propagation == "Orphan"
    assert delete_options(None, {"orphanDependents": "false"}).propagation == "Background"
    assert delete_options({"gracePeriodSeconds": -1}, {}).grace_period_s == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"propagationPolicy": "Foo"}, "propagationPolicy"),
        ({"propagationPolicy": "Orphan", "orphanDependents": False}, "propagationPolicy"),
        ({"dryRun": ["some"]}, "dryRun"),
    ],
)
def test_options_of_a_deletion_that_do_not_go_are_422(body: dict[str, Any], field: str) -> None:
    with pytest.raises(ApiError) as refused:
        delete_options(body, {})
    assert refused.value.code == 422
    assert [name for _, name in causes(refused.value)] == [field]


@pytest.mark.parametrize("body", [[], {"kind": "Pod"}, {"gracePeriodSeconds": "x"}])
def test_options_of_a_deletion_that_cannot_be_read_are_400(body: object) -> None:
    with pytest.raises(ApiError) as refused:
        delete_options(body, {})
    assert refused.value.code == 400
    with pytest.raises(ApiError, match="invalid syntax"):
        delete_options(None, {"gracePeriodSeconds": "x"})
