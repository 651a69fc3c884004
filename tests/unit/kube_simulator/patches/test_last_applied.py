"""What a kube-apiserver v1.36.3 did after `kubectl apply` without --server-side."""

import json

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.patches.last_applied import ANNOTATION
from kube_simulator.patches.merge import merge_patch
from tests.unit.kube_simulator.patches.support import Json, applied, config_map, owners, written


@pytest.fixture
def live() -> Json:
    """A ConfigMap that kubectl applied on the client's side."""
    configuration = config_map({"a": "1", "b": "2"}, labels={"x": "1"}, annotations={})
    body = config_map({"a": "1", "b": "2"}, labels={"x": "1"}, annotations={ANNOTATION: json.dumps(configuration)})
    return written(None, body, "kubectl-client-side-apply")


def note(found: Json) -> Json:
    read = json.loads(found["metadata"]["annotations"][ANNOTATION])
    assert isinstance(read, dict)
    return read


def test_kubectl_takes_over_what_it_recorded_without_force(live: Json) -> None:
    body = config_map({"a": "9", "b": "2"}, labels={"x": "1"})
    found = applied(live, body, "kubectl")
    assert found["data"] == {"a": "9", "b": "2"}
    assert note(found) == body
    assert found["metadata"]["annotations"][ANNOTATION].endswith("\n")
    assert owners(found)["kubectl", "Apply"] == {
        "f:data": {"f:a": {}, "f:b": {}},
        "f:metadata": {"f:labels": {"f:x": {}}},
    }
    assert "f:a" not in owners(found)["kubectl-client-side-apply", "Update"]["f:data"]


def test_what_has_another_value_since_remains_a_conflict(live: Json) -> None:
    changed = written(live, merge_patch(live, {"data": {"b": "77"}}), "stranger")
    with pytest.raises(ApiError) as raised:
        applied(changed, config_map({"a": "10", "b": "3"}), "kubectl")
    assert str(raised.value) == 'Apply failed with 1 conflict: conflict with "stranger" using v1: .data.b'


@pytest.mark.parametrize("unreadable", ["", "{no json", "[]", '{"dat": {}}'])
def test_a_note_that_cannot_be_read_takes_nothing_over(live: Json, unreadable: str) -> None:
    recorded = written(live, merge_patch(live, {"metadata": {"annotations": {ANNOTATION: unreadable}}}), "x")
    with pytest.raises(ApiError, match="Apply failed with 1 conflict"):
        applied(recorded, config_map({"a": "9"}), "kubectl")
