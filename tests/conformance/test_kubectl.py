"""The commands that people type: what kubectl makes of the server's answers."""

import json
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

from tests.cluster import Cluster
from tests.conformance.api import Api, Json
from tests.conformance.sample_objects import GROUP, deployment, path, widget

Kubectl = Callable[..., CompletedProcess[str]]


@pytest.fixture
def kubectl(cluster: Cluster, namespace: str, widgets: None) -> Kubectl:
    """kubectl in the test's namespace; ``body`` goes to its standard input as JSON, and a failure is an answer too."""

    def run(*arguments: str, body: Json | None = None) -> CompletedProcess[str]:
        text = None if body is None else json.dumps(body)
        return cluster.kubectl("-n", namespace, *arguments, input=text, check=False)

    return run


@pytest.mark.parametrize("command", ["apply", "create"])
def test_a_kind_that_is_not_served_is_said_to_be_none(kubectl: Kubectl, command: str) -> None:
    body = {"apiVersion": "absent.example.com/v1", "kind": "Absent", "metadata": {"name": "a"}}
    refused = kubectl(command, "-f", "-", body=body)
    assert refused.returncode == 1
    assert 'no matches for kind "Absent" in version "absent.example.com/v1"' in refused.stderr
    assert "unknown" not in refused.stderr


@pytest.mark.parametrize("flags", [[], ["--server-side"]])
def test_apply_says_what_it_did(kubectl: Kubectl, flags: list[str]) -> None:
    apply = ("apply", *flags, "-f", "-")
    done = ["serverside-applied"] * 3 if flags else ["created", "unchanged", "configured"]
    for first, second, named in (
        (widget("w", {"size": 2}), widget("w", {"size": 3}), f"widget.{GROUP}/w"),
        (deployment("web", replicas=0), deployment("web", replicas=0, labels={"l": "1"}), "deployment.apps/web"),
    ):
        answers = [kubectl(*apply, body=body) for body in (first, first, second)]
        assert [answer.stdout for answer in answers] == [f"{named} {word}\n" for word in done]
    assert kubectl("get", "wid", "w", "-o", "jsonpath={.spec.size}").stdout == "3"


def test_apply_removes_what_is_left_out_and_keeps_what_others_set(api: Api, kubectl: Kubectl, namespace: str) -> None:
    first = widget("w", {"size": 2, "color": "red"}, labels={"mine": "1", "kept": "1"})
    kubectl("apply", "-f", "-", body=first)
    api.merge(path("widgets", namespace, "w"), {"metadata": {"labels": {"theirs": "1"}}}).expect(200)
    kubectl("apply", "-f", "-", body=widget("w", {"size": 2}, labels={"kept": "1"}))
    found = api.get(path("widgets", namespace, "w")).expect(200)
    assert (found["spec"], found["metadata"]["labels"]) == ({"size": 2}, {"kept": "1", "theirs": "1"})


def test_a_server_side_apply_over_another_s_field_is_explained(api: Api, kubectl: Kubectl, namespace: str) -> None:
    body = widget("w", {"size": 2})
    api.apply(path("widgets", namespace, "w"), body, "someone").expect(201)
    refused = kubectl("apply", "--server-side", "-f", "-", body=widget("w", {"size": 3}))
    assert refused.returncode == 1
    assert 'Apply failed with 1 conflict: conflict with "someone": .spec.size' in refused.stderr
    assert kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", body=body).returncode == 0


def test_create_get_edit_and_delete_one_object(kubectl: Kubectl) -> None:
    named = f"widget.{GROUP}/w"
    assert kubectl("create", "-f", "-", body=widget("w", {"size": 2})).stdout == f"{named} created\n"
    assert kubectl("create", "-f", "-", body=widget("w")).stderr.startswith(
        f'Error from server (AlreadyExists): error when creating "STDIN": widgets.{GROUP} "w" already exists'
    )
    patch = ("patch", "widget", "w", "--type=merge", "-p")
    assert kubectl(*patch, '{"spec":{"size":3}}').stdout == f"{named} patched\n"
    assert kubectl(*patch, '{"spec":{"size":3}}').stdout == f"{named} patched (no change)\n"
    assert kubectl("label", "widget", "w", "a=b").stdout == f"{named} labeled\n"
    assert kubectl("annotate", "widget", "w", "a=b").stdout == f"{named} annotated\n"
    assert kubectl("get", "widget", "-l", "a=b", "-o", "name").stdout == f"{named}\n"
    assert "Size:" in kubectl("describe", "widget", "w").stdout
    assert kubectl("scale", "widget/w", "--replicas=4", "--current-replicas=3").returncode == 0
    refused = kubectl("scale", "widget/w", "--replicas=5", "--current-replicas=3")
    assert "Expected replicas to be 3, was 4" in refused.stderr
    assert kubectl("delete", "widget", "w").stdout.startswith(f'{named.replace("/w", "")} "w" deleted')
    assert kubectl("get", "widget", "w").stderr == f'Error from server (NotFound): widgets.{GROUP} "w" not found\n'
    assert kubectl("get", "widgets").stderr.startswith("No resources found in")


def test_what_the_schema_refuses_is_explained(kubectl: Kubectl) -> None:
    refused = kubectl("create", "-f", "-", body=widget("w", {"size": "3"}))
    assert refused.stderr.startswith('The Widget "w" is invalid: ')
    assert 'spec.size: Invalid value: "string": spec.size in body must be of type integer' in refused.stderr
    unknown = kubectl("create", "-f", "-", body=widget("w", {"siez": 3}))
    assert 'strict decoding error: unknown field "spec.siez"' in unknown.stderr
    assert "the server doesn't have a resource type" in kubectl("get", "nothings").stderr


def test_wait_ends_when_what_it_waits_for_holds(api: Api, kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "-f", "-", body=widget("w"))
    condition = {"type": "Ready", "status": "True"}
    api.merge(path("widgets", namespace, "w", "status"), {"status": {"conditions": [condition]}}).expect(200)
    assert kubectl("wait", "widget/w", "--for=condition=Ready", "--timeout=60s").returncode == 0
    assert kubectl("wait", "widget/w", "--for=jsonpath={.spec.size}=1", "--timeout=60s").returncode == 0
    kubectl("delete", "widget/w", "--wait=false")
    assert kubectl("wait", "widget/w", "--for=delete", "--timeout=60s").returncode == 0


def test_a_deployment_is_restarted_scaled_and_shown(api: Api, kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "-f", "-", body=deployment("web", replicas=0))
    assert kubectl("rollout", "restart", "deployment/web").stdout == "deployment.apps/web restarted\n"
    template = api.get(path("deployments", namespace, "web")).json["spec"]["template"]
    assert "kubectl.kubernetes.io/restartedAt" in template["metadata"]["annotations"]
    assert kubectl("scale", "deploy/web", "--replicas=2").stdout == "deployment.apps/web scaled\n"
    assert kubectl("wait", "deploy/web", "--for=jsonpath={.status.replicas}=2", "--timeout=60s").returncode == 0
    header, row = (line.split() for line in kubectl("get", "deployments").stdout.splitlines())
    assert header == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert row[:4] == ["web", "0/2", "2", "0"]
    kubectl("delete", "deployment", "web", "--cascade=foreground")
    assert kubectl("get", "replicasets,pods").stderr.startswith("No resources found")
