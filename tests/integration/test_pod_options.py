"""What users pass through to the pods by spec.pod: taken as it stands, changed, taken out again, or refused."""

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

OPTIONS: dict[str, Any] = {**EVERYTHING["pod"], "serviceAccountName": "robot"}  # type: ignore[dict-item]
# Beside the user's own, the operator's: no user ids, as the user says who runs.
SECURITY = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}, "fsGroup": 1000}
WORKLOADS = ("Deployment", "StatefulSet")


def template(kubectl: Kubectl, workload: str) -> Any:
    """Of the pods of the Memcached named shop."""
    return kubectl.get(workload, "shop")["spec"]["template"]


def generation_seen(kubectl: Kubectl) -> None:
    """Wait until the operator has dealt with the specification as it is."""
    wait(kubectl, "mc/shop", ".status.observedGeneration", kubectl.get("mc", "shop")["metadata"]["generation"])


@pytest.mark.parametrize("workload", WORKLOADS)
def test_what_is_passed_through_stands_in_the_pods_and_goes_when_it_is_taken_out(
    kubectl: Kubectl, workload: str
) -> None:
    complete(kubectl, "shop", 0, workload=workload)
    plain = kubectl.get(workload, "shop")
    change(kubectl, pod=OPTIONS)
    generation_seen(kubectl)
    found = template(kubectl, workload)
    assert found["metadata"]["labels"]["team"] == "shop"
    assert found["metadata"]["labels"]["memcached_cr"] == "shop"
    assert found["metadata"]["annotations"] == plain["spec"]["template"]["metadata"]["annotations"] | {
        **OPTIONS["annotations"],
        "cache.example.com/template": found["metadata"]["annotations"]["cache.example.com/template"],
    }
    for field in OPTIONS.keys() - {"labels", "annotations", "securityContext", "affinity"}:
        assert found["spec"][field] == OPTIONS[field], field
    assert found["spec"]["affinity"] is not None
    assert found["spec"]["securityContext"] == SECURITY

    mark = kubectl.cluster.audit_mark()
    change(kubectl, pod={"nodeSelector": {"disk": None, "zone": "a"}, "tolerations": None})
    all_caught_up(kubectl)
    found = template(kubectl, workload)
    assert found["spec"]["nodeSelector"] == {"zone": "a"}
    assert "tolerations" not in found["spec"]
    assert taken(written(kubectl, mark)) == {f"patch {workload.lower()}s 200"}

    mark = kubectl.cluster.audit_mark()
    change(kubectl, pod=None)
    all_caught_up(kubectl)
    assert kubectl.get(workload, "shop")["spec"] == plain["spec"]
    annotations = kubectl.get(workload, "shop")["metadata"]["annotations"]
    ours = {key: text for key, text in annotations.items() if key.startswith("cache.example.com/")}
    assert ours == {"cache.example.com/memcached-uid": kubectl.uid("mc/shop")}
    assert taken(written(kubectl, mark)) == {f"patch {workload.lower()}s 200"}


def test_what_is_taken_out_goes_although_somebody_has_cleared_managed_fields(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 0)
    plain = {what: kubectl.get(what, "shop") for what in ("deployment", "service")}
    mine = {"labels": {"team": "shop"}, "annotations": {"example.com/a": "b"}}
    change(kubectl, pod=OPTIONS, service=mine)
    all_caught_up(kubectl)
    for what in plain:
        kubectl("patch", f"{what}/shop", "--type=merge", "-p", '{"metadata":{"managedFields":[{}]}}')
        assert "managedFields" not in kubectl.get(what, "shop", "--show-managed-fields")["metadata"]
    kubectl("label", "service/shop", "example.com/theirs=yes")
    change(kubectl, pod=None, service=dict.fromkeys(mine))
    all_caught_up(kubectl)
    assert kubectl.get("deployment", "shop")["spec"] == plain["deployment"]["spec"]
    metadata = kubectl.get("service", "shop")["metadata"]
    assert metadata["labels"] == plain["service"]["metadata"]["labels"] | {"example.com/theirs": "yes"}
    assert metadata["annotations"] == plain["service"]["metadata"]["annotations"]
    assert condition(kubectl, "shop", "Degraded")["reason"] == "AsExpected"


def test_what_somebody_adds_to_a_field_that_was_passed_through_is_put_right(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 0, pod={"nodeSelector": {"disk": "fast"}, "tolerations": [{"operator": "Exists"}]})
    before, mark = template(kubectl, "deployment"), kubectl.cluster.audit_mark()
    edit = {"spec": {"template": {"spec": {"nodeSelector": {"disk": "slow"}, "tolerations": [{"key": "theirs"}]}}}}
    kubectl("patch", "deployment/shop", "--type=merge", "-p", json.dumps(edit))
    all_caught_up(kubectl)
    assert template(kubectl, "deployment") == before
    assert taken(written(kubectl, mark)) == {"patch deployments 200"}


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize(
    ("pod", "words"),
    [
        ({"affinity": {"nodeAfinity": {}}}, "nodeAfinity"),
        ({"terminationGracePeriodSeconds": 5, "nodeSelector": {"not a label": "x"}}, "spec.template.spec.nodeSelector"),
    ],
    ids=["an unknown field", "a key"],
)
def test_what_the_api_server_refuses_is_an_invalid_specification_in_its_words(
    kubectl: Kubectl, workload: str, pod: dict[str, object], words: str
) -> None:
    refused(kubectl, workload, pod, words)


@pytest.mark.cluster("kubernetes")  # the simulator checks the shape alone
@pytest.mark.parametrize("workload", WORKLOADS)
def test_so_is_a_value_that_it_refuses(kubectl: Kubectl, workload: str) -> None:
    refused(
        kubectl, workload, {"tolerations": [{"operator": "Sometimes"}]}, "spec.template.spec.tolerations[0].operator"
    )


def refused(kubectl: Kubectl, workload: str, pod: dict[str, object], words: str) -> None:
    """A change to these fields of pods is told in the API server's words, and changes nothing until it is mended."""
    complete(kubectl, "shop", 1, workload=workload)
    before = template(kubectl, workload)
    change(kubectl, pod=pod)
    degraded = wait_condition(kubectl, "shop", "Degraded", "InvalidSpec")
    assert degraded["message"].startswith(f"The API server refused the {workload}: ")
    assert words in degraded["message"]
    assert template(kubectl, workload) == before
    assert condition(kubectl, "shop", "Available")["status"] == "True"
    ready = condition(kubectl, "shop", "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "InvalidSpec")

    change(kubectl, pod=None)
    wait_condition(kubectl, "shop", "Ready", "AllServersReady")


def test_a_memcached_whose_first_specification_is_refused_has_its_servers_once_it_is_mended(kubectl: Kubectl) -> None:
    kubectl.apply(memcached("shop", 1, pod={"nodeSelector": {"not a label": "x"}}), create=True)
    degraded = wait_condition(kubectl, "shop", "Degraded", "InvalidSpec")
    assert "spec.template.spec.nodeSelector" in degraded["message"]
    change(kubectl, pod=None)
    wait(kubectl, "mc/shop", ".status.replicas", 1)
    wait_condition(kubectl, "shop", "Degraded", "AsExpected")
