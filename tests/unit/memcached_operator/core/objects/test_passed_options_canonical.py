"""What is passed through, as the API server keeps it."""

from __future__ import annotations

from typing import Any

import pytest

from memcached_operator.core.objects.passed_options import canonical_options

KEPT: dict[str, tuple[Any, Any]] = {
    "an empty text": ({"key": "a", "value": ""}, {"key": "a"}),
    "a null": ({"fsGroup": None, "runAsUser": 0}, {"runAsUser": 0}),
    "an empty list": ({"podAffinity": {"required": []}}, {"podAffinity": {}}),
    "a selector of everything": ({"podSelector": {}}, {"podSelector": {}}),
    "labels that a selector does not name": ({"podSelector": {"matchLabels": {}}}, {"podSelector": {}}),
    "an empty value of a label": ({"matchLabels": {"a": ""}}, {"matchLabels": {"a": ""}}),
    "an empty value of a driver's attribute": (
        {"csi": {"driver": "a", "volumeAttributes": {"a": ""}}},
        {"csi": {"driver": "a", "volumeAttributes": {"a": ""}}},
    ),
    "no attributes of a driver": ({"csi": {"driver": "a", "volumeAttributes": {}}}, {"csi": {"driver": "a"}}),
    "a claim without a class": ({"storageClassName": "", "volumeName": ""}, {"storageClassName": ""}),
    "false where that is nothing": ({"tty": False, "hostPort": 0}, {}),
    "false of a volume": ({"iscsi": {"chapAuthDiscovery": False, "chapAuthSession": False}}, {"iscsi": {}}),
    "zero of a volume": ({"awsElasticBlockStore": {"partition": 0}}, {"awsElasticBlockStore": {}}),
    "entries of a list": ([{"key": "a", "effect": ""}], [{"key": "a"}]),
    "quantities": (
        {"limits": {"memory": "1024Mi", "cpu": 0.5}, "requests": {"cpu": 1}},
        {"limits": {"memory": "1Gi", "cpu": "500m"}, "requests": {"cpu": "1"}},
    ),
    "a quantity elsewhere": ({"emptyDir": {"sizeLimit": "1000m"}}, {"emptyDir": {"sizeLimit": "1"}}),
    "what is no quantity": ({"limits": {"cpu": "much", "memory": []}}, {"limits": {"cpu": "much", "memory": []}}),
    "a number as text": ({"env": [{"name": "a", "value": "1000m"}]}, {"env": [{"name": "a", "value": "1000m"}]}),
}


@pytest.mark.parametrize(("passed", "kept"), KEPT.values(), ids=KEPT)
def test_what_the_api_server_leaves_out_or_writes_otherwise_is_not_asked_for(passed: object, kept: object) -> None:
    assert canonical_options(passed) == kept
