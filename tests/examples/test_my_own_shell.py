"""The guide's operator does what the guide shows, with the permissions of its manifests."""

from __future__ import annotations

import json

import pytest

from operator_runtime.testing.waiting import eventually, until
from tests.examples.shells import (
    DEPLOYMENT,
    FINALIZER,
    SAMPLE,
    SHELL,
    await_cleanups,
    await_condition,
    await_replicas,
    cleanups,
    shell,
)
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess

pytestmark = pytest.mark.usefixtures("operator")


def await_nothing(kubectl: Kubectl) -> None:
    """Wait until there is nothing left of the sample."""
    kinds = "myownshells,deployments,replicasets,pods"
    eventually(lambda: kubectl.names(kinds), lambda found: found == [], what="nothing is left")


def await_cleaned(operator: OperatorProcess, kubectl: Kubectl) -> None:
    """Wait until it has cleaned up after both. In between a second Deployment may have come and gone."""
    eventually(lambda: set(cleanups(operator, kubectl)), lambda found: found == {"MyOwnShell", "Deployment"})


def events_of(kubectl: Kubectl, kind: str, reason: str) -> list[str]:
    found = kubectl.get("events")["items"]
    return [each["message"] for each in found if (each["involvedObject"]["kind"], each["reason"]) == (kind, reason)]


def pods_of(kubectl: Kubectl) -> list[str]:
    pods = kubectl.get("pods", "-l", f"app=myownshell,myownshell_cr={SAMPLE}")["items"]
    return sorted(pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"])


def test_the_sample_gets_the_deployment_that_the_guide_shows(sample: Kubectl) -> None:
    owner = sample.get(SHELL)
    deployment = sample.get(DEPLOYMENT)
    assert deployment["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "my-first-operator.jgato.io/v1alpha1",
            "blockOwnerDeletion": True,
            "controller": True,
            "kind": "MyOwnShell",
            "name": SAMPLE,
            "uid": owner["metadata"]["uid"],
        }
    ]
    labels = {"app": "myownshell", "myownshell_cr": SAMPLE}
    spec = deployment["spec"]
    assert (spec["replicas"], spec["selector"]["matchLabels"]) == (3, labels)
    assert spec["template"]["metadata"]["labels"] == labels
    (container,) = spec["template"]["spec"]["containers"]
    assert (container["name"], container["image"]) == ("busybox", "docker.io/library/busybox:latest")
    command = "echo The app is running, You can now ssh into for a while! && sleep 99999999 "
    assert container["command"] == ["sh", "-c", command]
    assert owner["metadata"]["finalizers"] == deployment["metadata"]["finalizers"] == [FINALIZER]


def test_kubectl_shows_what_the_guide_shows(sample: Kubectl) -> None:
    header, row = sample("get", "myownshells").splitlines()
    assert (header.split(), row.split()[0]) == (["NAME", "AGE"], SAMPLE)
    assert len(sample.names("pods")) == 3


def test_a_deleted_pod_comes_back_and_the_status_names_the_new_one(sample: Kubectl) -> None:
    before = pods_of(sample)
    sample("delete", "pod", before[0], "--wait=false")
    eventually(
        lambda: sample.get(SHELL)["status"]["nodes"],
        lambda nodes: len(nodes) == 3 and before[0] not in nodes,
    )


def test_the_size_follows_the_resource(sample: Kubectl) -> None:
    for size in (5, 0, 1):
        sample("patch", "myownshell", SAMPLE, "--type=merge", "-p", json.dumps({"spec": {"size": size}}))
        await_replicas(sample, size)
        eventually(lambda: sample.get(SHELL)["status"]["nodes"], lambda nodes, size=size: len(nodes) == size)  # type: ignore[misc]
        # There is no node to run one.
        assert await_condition(sample, "ShellsNotReady" if size else "ShellsReady")["status"] == str(not size)


def test_a_deployment_that_was_edited_by_hand_is_put_back(sample: Kubectl) -> None:
    sample("scale", DEPLOYMENT, "--replicas=1")
    await_replicas(sample, 3)
    sample("set", "image", DEPLOYMENT, "busybox=busybox:1.0")
    until("the image is not put back", lambda: "busybox:1.0" not in sample("get", DEPLOYMENT, "-o", "yaml"))
    sample("patch", DEPLOYMENT, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    until("the finalizer is not put back", lambda: FINALIZER in sample("get", DEPLOYMENT, "-o", "yaml"))


def test_a_foreign_deployment_is_left_alone_and_told_of_until_it_is_gone(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", SAMPLE, "--image=foreign", "--replicas=0")
    before = kubectl.get(DEPLOYMENT)
    kubectl.apply(shell(size=1))
    condition = await_condition(kubectl, "NotControlled")
    assert "exists and has no owner: it is not changed" in condition["message"]
    eventually(lambda: events_of(kubectl, "MyOwnShell", "NotControlled"), lambda found: found == [condition["message"]])
    after = kubectl.get(DEPLOYMENT)
    assert (after["spec"], after["metadata"].get("finalizers")) == (before["spec"], None)
    kubectl("delete", DEPLOYMENT)
    await_condition(kubectl, "ShellsNotReady")
    await_replicas(kubectl, 1)


@pytest.mark.cluster("kubernetes")  # the simulator has no quotas
def test_a_deployment_that_is_refused_is_told_of_and_made_when_it_may_be(kubectl: Kubectl) -> None:
    kubectl("create", "quota", "none", "--hard=count/deployments.apps=0")
    kubectl.wait_field("quota/none", r".status.hard.count/deployments\.apps", 0)
    kubectl.apply(shell(size=1))
    assert "exceeded quota: none" in await_condition(kubectl, "Refused")["message"]
    kubectl("delete", "quota", "none")
    await_condition(kubectl, "ShellsNotReady")


@pytest.mark.parametrize("cascade", ["background", "foreground"])
def test_a_deleted_resource_goes_after_its_cleanup_and_so_does_its_deployment(
    sample: Kubectl, operator: OperatorProcess, cascade: str
) -> None:
    sample("delete", SHELL, f"--cascade={cascade}", "--timeout=60s")
    await_nothing(sample)
    if cascade == "background":
        await_cleanups(operator, sample, "MyOwnShell", "Deployment")
    else:  # both are marked, and may be seen in either order
        eventually(lambda: sorted(cleanups(operator, sample)), lambda found: found == ["Deployment", "MyOwnShell"])


def test_a_deployment_that_was_left_behind_keeps_its_shells_and_gets_its_cleanup_when_it_goes(
    sample: Kubectl, operator: OperatorProcess
) -> None:
    pods = pods_of(sample)
    sample("delete", SHELL, "--cascade=orphan", "--timeout=60s")
    assert "ownerReferences" not in sample.get(DEPLOYMENT)["metadata"]
    await_cleanups(operator, sample, "MyOwnShell")
    assert pods_of(sample) == pods
    sample("delete", DEPLOYMENT, "--timeout=60s")
    await_cleanups(operator, sample, "MyOwnShell", "Deployment")


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_a_deleted_deployment_gets_its_cleanup_and_is_made_again(
    sample: Kubectl, operator: OperatorProcess, cascade: str
) -> None:
    former = sample.uid(DEPLOYMENT)
    sample("delete", DEPLOYMENT, f"--cascade={cascade}", "--timeout=60s")
    eventually(lambda: sample.names("deployment"), bool)
    assert sample.uid(DEPLOYMENT) != former
    assert sample.get(DEPLOYMENT)["metadata"]["finalizers"] == [FINALIZER]
    await_cleanups(operator, sample, "Deployment")


@pytest.mark.parametrize("first", [SHELL, DEPLOYMENT])
@pytest.mark.parametrize("cascade", ["background", "foreground"])
def test_both_deleted_at_once_go_after_a_cleanup_each(
    sample: Kubectl, operator: OperatorProcess, first: str, cascade: str
) -> None:
    second = DEPLOYMENT if first == SHELL else SHELL
    sample("delete", first, second, f"--cascade={cascade}", "--wait=false", "--ignore-not-found")
    await_nothing(sample)
    await_cleaned(operator, sample)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "spec.size: Required value"),
        ({"size": -1}, "greater than or equal to 0"),
        ({"size": "three"}, "must be of type integer"),
        ({"size": 2**31}, "int32"),
    ],
)
def test_what_is_no_size_is_refused(kubectl: Kubectl, spec: dict[str, object], words: str) -> None:
    refused = kubectl.run("create", "-f", "-", input=json.dumps(shell() | {"spec": spec}), check=False)
    assert refused.returncode == 1
    assert words in refused.stderr
