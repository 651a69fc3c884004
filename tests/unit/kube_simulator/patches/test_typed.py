"""The words are those of a kube-apiserver v1.36.3 about the same objects."""

import pytest

from kube_simulator.patches.typed import owned
from tests.unit.kube_simulator.patches.support import THING, Json


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"size": 1, "s": None}, {"f:size": {}, "f:s": {}}),
        ({"obj": {"a": "1", "deep": {}}}, {"f:obj": {"f:a": {}, "f:deep": {}}}),
        ({"mapmap": {"x": {"a": "1"}, "e": {}}}, {"f:mapmap": {"f:e": {}, "f:x": {".": {}, "f:a": {}}}}),
        ({"set": ["b", "a"]}, {"f:set": {'v:"b"': {}, 'v:"a"': {}}}),
        ({"atom": {"k": "v"}, "list": ["a"]}, {"f:atom": {}, "f:list": {}}),
        (
            {"ports": [{"port": 80, "sub": {"a": "1"}}]},
            {"f:ports": {'k:{"port":80,"proto":"TCP"}': {".": {}, "f:port": {}, "f:sub": {"f:a": {}}}}},
        ),
        ({"any": {"m": {"n": [1]}, "z": None}}, {"f:any": {"f:m": {".": {}, "f:n": {}}, "f:z": {}}}),
        ({"emb": {"kind": "X", "spec": {"l": [1]}}}, {"f:emb": {"f:kind": {}, "f:spec": {".": {}, "f:l": {}}}}),
        ({"list": [], "map": {}, "obj": {}}, {"f:list": {}, "f:map": {}, "f:obj": {}}),
    ],
)
def test_an_applier_owns_leaves_elements_and_keys_that_the_schema_does_not_name(spec: Json, fields: Json) -> None:
    assert owned({"spec": spec}, THING) == {"f:spec": fields}
