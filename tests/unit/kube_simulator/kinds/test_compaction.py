"""What is left out of Kubernetes' own kinds because it is empty, and what is there although nobody said so."""

from __future__ import annotations

import pytest

from kube_simulator.kinds.compaction import APPS_V1, CORE_V1, EVENTS_V1, compact, compact_object
from kube_simulator.values import Json

CONDITION: Json = {"type": "", "status": "", "lastTransitionTime": None}


@pytest.mark.parametrize(
    "field",
    [
        {"volumes": []},
        {"volumes": None},
        {"nodeName": ""},
        {"hostNetwork": False},
        {"nodeSelector": {}},
        {"securityContext": None},
    ],
)
def test_what_says_nothing_is_left_out(field: Json) -> None:
    assert compact({"hostname": "x", **field}, f"{CORE_V1}PodSpec") == {"hostname": "x"}
    template = {"metadata": {}, "spec": {"hostname": "x", **field}}
    assert compact(template, f"{CORE_V1}PodTemplateSpec")["spec"] == {"hostname": "x"}


@pytest.mark.parametrize(
    ("type", "value"),
    [
        ("apps/v1.ReplicaSetStatus", {"replicas": 0}),
        ("apps/v1.DeploymentStatus", {"collisionCount": 0}),
        ("core/v1.PodSpec", {"securityContext": {}}),
        ("core/v1.PodSpec", {"automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0}),
        ("core/v1.PodSpec", {"nodeSelector": {"a": ""}}),
        ("coordination/v1.LeaseSpec", {"holderIdentity": ""}),
    ],
)
def test_what_says_that_there_is_none_stays(type: str, value: Json) -> None:
    assert compact(value, f"k8s.io/api/{type}") is value


@pytest.mark.parametrize(
    ("type", "always"),
    [
        (
            f"{CORE_V1}ContainerStatus",
            {"name": "", "state": {}, "lastState": {}, "ready": False, "restartCount": 0, "image": "", "imageID": ""},
        ),
        (f"{CORE_V1}ContainerStateTerminated", {"exitCode": 0, "startedAt": None, "finishedAt": None}),
        (f"{CORE_V1}PodCondition", {"type": "", "status": "", "lastProbeTime": None, "lastTransitionTime": None}),
        (
            f"{APPS_V1}DeploymentCondition",
            {"type": "", "status": "", "lastUpdateTime": None, "lastTransitionTime": None},
        ),
        (f"{CORE_V1}ResourceFieldSelector", {"resource": "", "divisor": "0"}),
        (f"{CORE_V1}ConfigMapKeySelector", {"key": ""}),
        (f"{CORE_V1}ServiceStatus", {"loadBalancer": {}}),
        (f"{CORE_V1}PodTemplateSpec", {"metadata": {}, "spec": {}}),
        (f"{EVENTS_V1}EventSeries", {"count": 0, "lastObservedTime": None}),
        (f"{CORE_V1}EventSeries", {"lastObservedTime": None}),
    ],
)
def test_what_has_no_way_of_being_absent_is_there(type: str, always: Json) -> None:
    assert compact({}, type) == always
    assert compact(dict.fromkeys(always), type) == always, "null is the same as nothing"


def test_fields_of_embedded_types_and_of_none_are_known_for_what_they_are() -> None:
    probe = {"httpGet": {"port": 80, "host": ""}, "periodSeconds": 0, "new": ""}
    assert compact(probe, f"{CORE_V1}Probe") == {"httpGet": {"port": 80}, "new": ""}


def test_amounts_get_their_one_form() -> None:
    given = {"limits": {"cpu": "1000m"}, "requests": {"memory": "1024Ki"}, "claims": []}
    assert compact(given, f"{CORE_V1}ResourceRequirements") == {"limits": {"cpu": "1"}, "requests": {"memory": "1Mi"}}
    assert compact({"sizeLimit": "1000"}, f"{CORE_V1}EmptyDirVolumeSource") == {"sizeLimit": "1k"}


def test_what_is_compact_already_is_itself() -> None:
    given = {"containers": [{"name": "a", "image": "i", "resources": {"limits": {"cpu": "1"}}}], "hostAliases": []}
    written = compact(given, f"{CORE_V1}PodSpec")
    assert written["containers"] is given["containers"]
    assert compact(written, f"{CORE_V1}PodSpec") is written


def test_of_a_whole_object_the_metadata_stay() -> None:
    account = {"metadata": {"name": "a", "labels": {}}, "secrets": [], "imagePullSecrets": [{"name": "s"}]}
    assert compact_object(account, f"{CORE_V1}ServiceAccount") == {
        "metadata": {"name": "a", "labels": {}},
        "imagePullSecrets": [{"name": "s"}],
    }
