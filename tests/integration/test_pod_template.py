"""What users pass through to the pods by spec.podTemplate: merged, changed, taken out again, or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.conftest import memcached
from tests.integration.named import EVERYTHING, all_caught_up, change, written
from tests.integration.oracle import complete, condition, wait, wait_condition
from tests.integration.requests import taken
from tests.kubectl_in_namespace import Kubectl

pytestmark = pytest.mark.usefixtures("operator")

GIVEN: Any = EVERYTHING["podTemplate"]
POD: dict[str, Any] = {**GIVEN["spec"], "serviceAccountName": "robot"}
# Beside the user's own, the operator's: no user ids, as the user says who runs.
SECURITY = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}, "fsGroup": 1000}
SIDECAR = {
    "name": "exporter",
    "image": "exporter:1",
    "ports": [{"containerPort": 9150, "name": "metrics"}],
    "resources": {"limits": {"memory": "65536Ki"}, "requests": {"cpu": 0.05}},
    "livenessProbe": {"httpGet": {"path": "/", "port": "metrics"}, "initialDelaySeconds": 0},
}
SCRATCH = {"name": "scratch", "emptyDir": {"sizeLimit": "1024Mi"}}
TOKEN = {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
MEMCACHED = {
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
WORKLOADS = ("Deployment", "StatefulSet")


def template(kubectl: Kubectl, workload: str) -> Any:
    """Of the pods of the Memcached named shop."""
    return kubectl.get(workload, "shop")["spec"]["template"]


def by_name(entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {each["name"]: each for each in entries}


@pytest.mark.parametrize("workload", WORKLOADS)
def test_what_is_passed_through_stands_in_the_pods_and_goes_when_it_is_taken_out(
    kubectl: Kubectl, workload: str
) -> None:
    complete(kubectl, "shop", 0, workload=workload)
    plain = kubectl.get(workload, "shop")
    change(kubectl, podTemplate={**GIVEN, "spec": POD})
    all_caught_up(kubectl)
    found = template(kubectl, workload)
    assert found["metadata"]["labels"] == plain["spec"]["template"]["metadata"]["labels"] | {"team": "shop"}
    assert found["metadata"]["annotations"] == plain["spec"]["template"]["metadata"]["annotations"] | {
        "example.com/note": "ours",
        "cache.example.com/template": found["metadata"]["annotations"]["cache.example.com/template"],
    }
    for field in POD.keys() - {"securityContext", "affinity"}:
        assert found["spec"][field] == POD[field], field
    assert found["spec"]["affinity"] is not None
    assert found["spec"]["securityContext"] == SECURITY

    mark = kubectl.cluster.audit_mark()
    change(kubectl, podTemplate={"spec": {"nodeSelector": {"disk": None, "zone": "a"}, "tolerations": None}})
    all_caught_up(kubectl)
    found = template(kubectl, workload)
    assert found["spec"]["nodeSelector"] == {"zone": "a"}
    assert "tolerations" not in found["spec"]
    assert taken(written(kubectl, mark)) == {f"patch {workload.lower()}s 200"}

    mark = kubectl.cluster.audit_mark()
    change(kubectl, podTemplate=None)
    all_caught_up(kubectl)
    assert_plain(kubectl, workload, plain)
    assert taken(written(kubectl, mark)) == {f"patch {workload.lower()}s 200"}


def assert_plain(kubectl: Kubectl, workload: str, plain: Any) -> None:
    assert kubectl.get(workload, "shop")["spec"] == plain["spec"]
    annotations = kubectl.get(workload, "shop")["metadata"]["annotations"]
    ours = {key: text for key, text in annotations.items() if key.startswith("cache.example.com/")}
    assert ours == {"cache.example.com/memcached-uid": kubectl.uid("mc/shop")}


@pytest.mark.core
@pytest.mark.parametrize("workload", WORKLOADS)
def test_sidecars_variables_volumes_and_the_like_are_merged_stay_and_go_one_by_one(
    kubectl: Kubectl, workload: str
) -> None:
    complete(kubectl, "shop", 0, workload=workload)
    plain = kubectl.get(workload, "shop")
    change(kubectl, podTemplate={"spec": MERGED})
    all_caught_up(kubectl)
    pod = template(kubectl, workload)["spec"]
    server = by_name(pod["containers"])["memcached"]
    assert pod["dnsPolicy"] == "Default"
    assert [each["name"] for each in pod["containers"]] == ["memcached", "exporter"]
    assert [each["name"] for each in server["env"]] == ["NODE", "EMPTY"]
    assert server["volumeMounts"] == [{"name": "scratch", "mountPath": "/scratch"}]
    assert [each["containerPort"] for each in server["ports"]] == [11211, 11212]
    assert (server["readinessProbe"]["periodSeconds"], server["readinessProbe"]["timeoutSeconds"]) == (2, 2)
    assert by_name(pod["containers"])["exporter"]["resources"] == {
        "limits": {"memory": "64Mi"},
        "requests": {"cpu": "50m"},
    }

    # What the API server has filled in is no difference: nothing is written for a look.
    mark = kubectl.cluster.audit_mark()
    kubectl("annotate", workload, "shop", "example.com/look=1")
    all_caught_up(kubectl)
    assert taken(written(kubectl, mark)) == set()

    edit = {"spec": {"template": {"spec": {"containers": [{"name": "exporter", "image": "other"}]}}}}
    kubectl("patch", workload, "shop", "-p", json.dumps(edit))
    all_caught_up(kubectl)
    assert template(kubectl, workload)["spec"] == pod

    left: dict[str, Any] = MERGED
    server_left: dict[str, Any] = MEMCACHED
    for without in ("dnsPolicy", "exporter", "env", "volumeMounts", "scratch", "ports", "readinessProbe"):
        server_left = {field: value for field, value in server_left.items() if field != without}
        left = {
            "dnsPolicy": None if without == "dnsPolicy" else left["dnsPolicy"],
            "containers": [each for each in [left["containers"][0], server_left] if each["name"] != without],
            "volumes": [each for each in left["volumes"] if each["name"] != without],
        }
        if left["containers"][0]["name"] == "memcached":
            left["containers"] = [server_left]
        change(kubectl, podTemplate={"spec": left})
        all_caught_up(kubectl)
        found = template(kubectl, workload)["spec"]
        assert (found["dnsPolicy"] == "Default") == bool(left["dnsPolicy"]), without
        assert set(by_name(found["containers"])) == {"memcached", *by_name(left["containers"])}, without
        assert set(by_name(found["volumes"])) == set(by_name(left["volumes"])), without
        server = by_name(found["containers"])["memcached"]
        for field in ("env", "volumeMounts"):
            assert (field in server) == (field in server_left), (without, field)
        assert len(server["ports"]) == 1 + ("ports" in server_left), without
        assert server["readinessProbe"]["periodSeconds"] == (2 if "readinessProbe" in server_left else 5), without

    change(kubectl, podTemplate=None)
    all_caught_up(kubectl)
    assert_plain(kubectl, workload, plain)


def test_what_a_sidecar_has_no_longer_goes_and_a_new_variable_stands_where_it_is_given(kubectl: Kubectl) -> None:
    a, b, c = ({"name": name, "value": value} for name, value in (("A", "1"), ("B", "$(A)"), ("C", "$(B)")))
    exporter = {"name": "exporter", "image": "exporter:1", "args": ["-v"], "env": [a, b]}
    complete(kubectl, "shop", 0, podTemplate={"spec": {"containers": [{"name": "memcached", "env": [a]}, exporter]}})
    others = {"name": "exporter", "image": "exporter:1", "env": [b]}
    given = [{"name": "memcached", "env": [a, b, c]}, others, {"name": "second", "image": "second:1"}]
    mark = kubectl.cluster.audit_mark()
    change(kubectl, podTemplate={"spec": {"containers": given}})
    all_caught_up(kubectl)
    found = template(kubectl, "deployment")["spec"]["containers"]
    assert [each["name"] for each in found] == ["memcached", "exporter", "second"]
    assert found[0]["env"] == [a, b, c]
    assert (found[1]["env"], found[1].get("args")) == ([b], None)
    assert taken(written(kubectl, mark)) == {"patch deployments 200"}


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


def test_another_probe_and_another_hook_are_in_place_of_the_operator_s(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 0)
    plain = kubectl.get("deployment", "shop")
    command = {"exec": {"command": ["true"]}}
    server = {"name": "memcached", "readinessProbe": command, "lifecycle": {"preStop": command}}
    change(kubectl, podTemplate={"spec": {"containers": [server]}})
    all_caught_up(kubectl)
    (found,) = template(kubectl, "deployment")["spec"]["containers"]
    assert found["lifecycle"] == {"preStop": command}
    assert found["readinessProbe"] == plain_probe(plain) | command
    change(kubectl, podTemplate=None)
    all_caught_up(kubectl)
    assert_plain(kubectl, "deployment", plain)


def plain_probe(plain: Any) -> dict[str, Any]:
    """The operator's, without what it does."""
    (container,) = plain["spec"]["template"]["spec"]["containers"]
    return {field: value for field, value in container["readinessProbe"].items() if field != "tcpSocket"}


def test_what_somebody_adds_to_a_field_that_was_passed_through_is_put_right(kubectl: Kubectl) -> None:
    given = {"nodeSelector": {"disk": "fast"}, "tolerations": [{"operator": "Exists"}]}
    complete(kubectl, "shop", 0, podTemplate={"spec": given})
    before, mark = template(kubectl, "deployment"), kubectl.cluster.audit_mark()
    edit = {"spec": {"template": {"spec": {"nodeSelector": {"disk": "slow"}, "tolerations": [{"key": "theirs"}]}}}}
    kubectl("patch", "deployment/shop", "--type=merge", "-p", json.dumps(edit))
    all_caught_up(kubectl)
    assert template(kubectl, "deployment") == before
    assert taken(written(kubectl, mark)) == {"patch deployments 200"}
    change(kubectl, podTemplate=None)
    all_caught_up(kubectl)
    assert not {"nodeSelector", "tolerations"} & template(kubectl, "deployment")["spec"].keys()


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize(
    ("pod", "words"),
    [
        ({"affinity": {"nodeAfinity": {}}}, "nodeAfinity"),
        ({"hostname": "a", "nodeSelector": {"not a label": "x"}}, "spec.template.spec.nodeSelector"),
        ({"containers": [{"name": "memcached", "readinessProbe": "none"}]}, "readinessProbe"),
        ({"dnsPolicy": 5}, "dnsPolicy"),
    ],
    ids=["an unknown field", "a key", "a text for an object", "a number for a text"],
)
def test_what_the_api_server_refuses_is_an_invalid_specification_in_its_words(
    kubectl: Kubectl, workload: str, pod: dict[str, object], words: str
) -> None:
    refused(kubectl, workload, pod, words)


@pytest.mark.cluster("kubernetes")  # the simulator checks the shape alone
@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize(
    ("pod", "words"),
    [
        ({"tolerations": [{"operator": "Sometimes"}]}, "spec.template.spec.tolerations[0].operator"),
        ({"containers": [{"name": "exporter"}]}, "spec.template.spec.containers[1].image: Required value"),
    ],
    ids=["a value", "a sidecar without an image"],
)
def test_so_is_a_value_that_it_refuses(kubectl: Kubectl, workload: str, pod: dict[str, object], words: str) -> None:
    refused(kubectl, workload, pod, words)


def refused(kubectl: Kubectl, workload: str, pod: dict[str, object], words: str) -> None:
    """A change to these fields of pods is told in the API server's words, and changes nothing until it is mended."""
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


def test_a_memcached_whose_first_specification_is_refused_has_its_servers_once_it_is_mended(kubectl: Kubectl) -> None:
    kubectl.apply(memcached("shop", 1, podTemplate={"spec": {"nodeSelector": {"not a label": "x"}}}), create=True)
    degraded = wait_condition(kubectl, "shop", "Degraded", "InvalidSpec")
    assert "spec.template.spec.nodeSelector" in degraded["message"]
    change(kubectl, podTemplate=None)
    wait(kubectl, "mc/shop", ".status.replicas", 1)
    wait_condition(kubectl, "shop", "Degraded", "AsExpected")
