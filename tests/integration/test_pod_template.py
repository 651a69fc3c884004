"""What users pass through to the pods by spec.podTemplate: merged, changed, taken out again, or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.named import EVERYTHING, all_caught_up, change, written
from tests.integration.oracle import complete, condition, wait_condition
from tests.integration.requests import taken
from tests.kubectl_in_namespace import Kubectl

pytestmark = pytest.mark.usefixtures("operator")

GIVEN: Any = EVERYTHING["podTemplate"]
POD: dict[str, Any] = {**GIVEN["spec"], "serviceAccountName": "robot"}
# Beside the user's own, the operator's: no user ids, as the user says who runs.
SECURITY = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}, "fsGroup": 1000}
SIDECAR: dict[str, Any] = {
    "name": "exporter",
    "image": "exporter:1",
    "ports": [{"containerPort": 9150, "name": "metrics"}],
    "resources": {"limits": {"memory": "65536Ki"}, "requests": {"cpu": 0.05}},
    "livenessProbe": {"httpGet": {"path": "/", "port": "metrics"}, "initialDelaySeconds": 0},
}
SCRATCH = {"name": "scratch", "emptyDir": {"sizeLimit": "1024Mi"}}
TOKEN = {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
MEMCACHED: dict[str, Any] = {
    "name": "memcached",
    "env": [
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "EMPTY", "value": ""},
    ],
    "volumeMounts": [{"name": "scratch", "mountPath": "/scratch", "readOnly": False}],
    "ports": [{"containerPort": 11212, "name": "proxy"}],
    "readinessProbe": {"periodSeconds": 2},
}
# Of all that is merged by a key; the API server fills in much of it, and writes some of it otherwise.
MERGED = {"dnsPolicy": "Default", "containers": [SIDECAR, MEMCACHED], "volumes": [SCRATCH, TOKEN], "hostNetwork": False}


def template(kubectl: Kubectl, workload: str) -> Any:
    """Of the pods of the Memcached named shop."""
    return kubectl.get(workload, "shop")["spec"]["template"]


def by_name(entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {each["name"]: each for each in entries}


def assert_plain(kubectl: Kubectl, workload: str, plain: Any) -> None:
    assert kubectl.get(workload, "shop")["spec"] == plain["spec"]
    assert own_annotations(kubectl.get(workload, "shop")) == own_annotations(plain)


def own_annotations(found: Any) -> dict[str, str]:
    annotations = found["metadata"]["annotations"]
    return {key: text for key, text in annotations.items() if key.startswith("cache.example.com/")}


@pytest.mark.core
def test_what_is_passed_through_is_merged_stays_and_goes_again(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 0, workload="StatefulSet")
    plain = kubectl.get("statefulset", "shop")
    change(kubectl, podTemplate={**GIVEN, "spec": {**POD, **MERGED}})
    all_caught_up(kubectl)
    found = template(kubectl, "statefulset")
    assert found["metadata"]["labels"] == plain["spec"]["template"]["metadata"]["labels"] | {"team": "shop"}
    assert found["metadata"]["annotations"]["example.com/note"] == "ours"
    pod = found["spec"]
    for field in POD.keys() - {"securityContext", "affinity"}:
        assert pod[field] == POD[field], field
    assert (pod["securityContext"], pod["dnsPolicy"]) == (SECURITY, "Default")
    assert [each["name"] for each in pod["containers"]] == ["memcached", "exporter"]
    server = by_name(pod["containers"])["memcached"]
    assert [each["name"] for each in server["env"]] == ["NODE", "EMPTY"]
    assert server["volumeMounts"] == [{"name": "scratch", "mountPath": "/scratch"}]
    assert [each["containerPort"] for each in server["ports"]] == [11211, 11212]
    assert (server["readinessProbe"]["periodSeconds"], server["readinessProbe"]["timeoutSeconds"]) == (2, 2)
    assert by_name(pod["containers"])["exporter"]["resources"] == {
        "limits": {"memory": "64Mi"},
        "requests": {"cpu": "50m"},
    }

    # What the API server has filled in is no difference: nothing is written for a reconcile.
    mark = kubectl.cluster.audit_mark()
    kubectl("annotate", "statefulset", "shop", "example.com/look=1")
    all_caught_up(kubectl)
    assert taken(written(kubectl, mark)) == set()

    edit: dict[str, Any] = {"containers": [{"name": "exporter", "image": "other"}], "nodeSelector": {"disk": "slow"}}
    kubectl("patch", "statefulset", "shop", "-p", json.dumps({"spec": {"template": {"spec": edit}}}))
    all_caught_up(kubectl)
    assert template(kubectl, "statefulset")["spec"] == pod

    # Entries go, others of the same lists stay, and a new one stands where it is given.
    sidecar = {field: value for field, value in SIDECAR.items() if field not in ("resources", "livenessProbe")}
    given = {
        "nodeSelector": {"disk": None, "zone": "a"},
        "tolerations": None,
        "containers": [{"name": "memcached", "env": [{"name": "FIRST", "value": "1"}, *MEMCACHED["env"]]}, sidecar],
        "volumes": [TOKEN],
    }
    mark = kubectl.cluster.audit_mark()
    change(kubectl, podTemplate={"spec": given})
    all_caught_up(kubectl)
    pod = template(kubectl, "statefulset")["spec"]
    server = by_name(pod["containers"])["memcached"]
    assert (pod["nodeSelector"], pod.get("tolerations")) == ({"zone": "a"}, None)
    assert [each["name"] for each in server["env"]] == ["FIRST", "NODE", "EMPTY"]
    assert ("volumeMounts" in server, len(server["ports"]), server["readinessProbe"]["periodSeconds"]) == (False, 1, 5)
    exporter = by_name(pod["containers"])["exporter"]
    assert (exporter.get("resources") or None, exporter.get("livenessProbe")) == (None, None)
    assert set(by_name(pod["volumes"])) == {"token"}
    assert taken(written(kubectl, mark)) == {"patch statefulsets 200"}

    change(kubectl, podTemplate=None)
    all_caught_up(kubectl)
    assert_plain(kubectl, "statefulset", plain)


def test_what_is_taken_out_goes_although_somebody_has_cleared_managed_fields(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 0)
    plain = {what: kubectl.get(what, "shop") for what in ("deployment", "service")}
    mine = {"labels": {"team": "shop"}, "annotations": {"example.com/a": "b"}}
    change(kubectl, podTemplate={**GIVEN, "spec": {**POD, **MERGED}}, service=mine)
    all_caught_up(kubectl)
    for what in plain:
        kubectl("patch", f"{what}/shop", "--type=merge", "-p", '{"metadata":{"managedFields":[{}]}}')
        assert "managedFields" not in kubectl.get(what, "shop", "--show-managed-fields")["metadata"]
    kubectl("label", "service/shop", "example.com/theirs=yes")
    change(kubectl, podTemplate=None, service=dict.fromkeys(mine))
    all_caught_up(kubectl)
    assert_plain(kubectl, "deployment", plain["deployment"])
    metadata = kubectl.get("service", "shop")["metadata"]
    assert metadata["labels"] == plain["service"]["metadata"]["labels"] | {"example.com/theirs": "yes"}
    assert metadata["annotations"] == plain["service"]["metadata"]["annotations"]
    assert condition(kubectl, "shop", "Degraded")["reason"] == "AsExpected"


@pytest.mark.parametrize(
    ("workload", "pod", "words"),
    [
        ("Deployment", {"affinity": {"nodeAfinity": {}}}, "nodeAfinity"),
        pytest.param(
            "StatefulSet",
            {"hostname": "a", "nodeSelector": {"not a label": "x"}},
            "spec.template.spec.nodeSelector",
            marks=pytest.mark.cluster("kubernetes"),
        ),
        ("StatefulSet", {"dnsPolicy": 5}, "dnsPolicy"),
        pytest.param(
            "Deployment",
            {"containers": [{"name": "exporter"}]},
            "spec.template.spec.containers[1].image: Required value",
            marks=pytest.mark.cluster("kubernetes"),  # the simulator checks the shape alone
        ),
    ],
    ids=["an unknown field", "a key", "a number for a text", "a sidecar without an image"],
)
def test_what_the_api_server_refuses_is_an_invalid_specification_in_its_words(
    kubectl: Kubectl, workload: str, pod: dict[str, object], words: str
) -> None:
    complete(kubectl, "shop", 1, workload=workload)
    before = template(kubectl, workload)
    change(kubectl, podTemplate={"spec": pod})
    degraded = wait_condition(kubectl, "shop", "Degraded", "InvalidSpec")
    assert degraded["message"].startswith(f"The API server refused the {workload}: ")
    assert words in degraded["message"]
    assert template(kubectl, workload) == before
    assert condition(kubectl, "shop", "Available")["status"] == "True"
    ready = condition(kubectl, "shop", "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "InvalidSpec")

    change(kubectl, podTemplate=None)
    wait_condition(kubectl, "shop", "Ready", "AllServersReady")


def hook(**handler: Any) -> dict[str, Any]:
    """A podTemplate in which servers end by this, and in the time that Kubernetes gives them."""
    server = {"name": "memcached", "lifecycle": {"preStop": handler}}
    return {"spec": {"containers": [server], "terminationGracePeriodSeconds": None}}


AT_ONCE: dict[str, Any] = {"spec": {"containers": None, "terminationGracePeriodSeconds": 0}}


def test_whatever_was_there_before_the_same_specification_comes_to_the_same_pods(kubectl: Kubectl) -> None:
    workload = "StatefulSet"
    complete(kubectl, "shop", 0, workload=workload, image="memcached:1")
    plain, mine = template(kubectl, workload)["spec"], {"exec": {"command": ["true"]}}

    def pods(**spec: Any) -> Any:
        change(kubectl, **({"image": "memcached:1", "podTemplate": None} | spec))
        all_caught_up(kubectl)
        condition_ = condition(kubectl, "shop", "Degraded")
        assert condition_["status"] == "False", condition_["message"]
        return template(kubectl, workload)["spec"]

    def edited(*path: str, value: Any) -> Any:
        """The pods after another client has edited something of the container's."""
        at = "/".join(("/spec/template/spec/containers/0", *path))
        patch = [{"op": "remove", "path": at}] if value is None else [{"op": "replace", "path": at, "value": value}]
        kubectl("patch", workload, "shop", "--type=json", "-p", json.dumps(patch))
        all_caught_up(kubectl)
        return template(kubectl, workload)["spec"]

    def hooks(given: Any) -> Any:
        lifecycle = pods(podTemplate=given)["containers"][0].get("lifecycle") or {}
        return lifecycle.get("preStop", {}).keys()

    hooks_given = (AT_ONCE, hook(**mine), hook(httpGet={"port": 80}), None)
    assert [[*hooks(given)] for given in hooks_given] == [[], ["exec"], ["httpGet"], ["sleep"]]
    assert template(kubectl, workload)["spec"] == plain

    # A variable is put into those below it.
    variables = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}]
    for each in (variables, variables[::-1], variables):
        given = {"spec": {"containers": [{"name": "memcached", "env": each}, {"name": "other", "image": "a"}]}}
        assert pods(podTemplate=given)["containers"][0]["env"] == each
    assert pods() == plain

    assert edited("lifecycle", value=None) == plain
    assert edited("readinessProbe", value=mine) == plain

    latest = pods(image="memcached:latest", podTemplate=None)
    assert latest["containers"][0]["imagePullPolicy"] == "Always"
    assert pods() == plain
    other = {"spec": {"updateStrategy": {"type": "RollingUpdate"}, "ordinals": {"start": 2}}}
    kubectl("patch", workload, "shop", "-p", json.dumps(other))
    all_caught_up(kubectl)
    live = kubectl.get(workload, "shop")["spec"]
    assert (live["updateStrategy"], live.get("ordinals")) == ({"type": "OnDelete"}, None)
