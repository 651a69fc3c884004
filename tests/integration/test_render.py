"""`memcached-operator render` prints what the operator applies, and judges as it and the API server do."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from typing import Any
from unittest import mock

import pytest
import yaml

from memcached_operator import cli
from tests.integration.conftest import memcached
from tests.integration.oracle import wait
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess

Json = dict[str, Any]
LISTED: Json = {"discovery": {"configMap": {}}}
KINDS = "deployments,statefulsets,services,poddisruptionbudgets,networkpolicies,configmaps"


def render(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command with this as its standard input, in this process: starting Python takes longer."""
    output, complained = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "stdin", io.StringIO(text)),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(complained),
    ):
        code = cli.main(["render", "-f", "-", *arguments])
    return subprocess.CompletedProcess(arguments, code, output.getvalue(), complained.getvalue())


def _made_of(kubectl: Kubectl, printed: Json) -> Json:
    """What the API server would make of that, under another name."""
    again = {**printed, "metadata": {**printed["metadata"], "name": f"{printed['metadata']['name']}-again"}}
    found: Json = json.loads(kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", input=json.dumps(again)))
    return found


def _specified(made: Json) -> Json:
    """What of an object its maker says, with the defaults of the rest."""
    metadata = {part: made["metadata"].get(part) for part in ("labels", "annotations", "ownerReferences")}
    metadata["annotations"].pop("deployment.kubernetes.io/revision", None)
    given = ("clusterIP", "clusterIPs") if made.get("spec", {}).get("clusterIP") != "None" else ()
    spec = {field: value for field, value in made.get("spec", {}).items() if field not in given}
    return {"kind": made["kind"], "metadata": metadata, "spec": spec, "data": made.get("data")}


@pytest.mark.parametrize(
    "written",
    [
        memcached("plain", 3),
        memcached("bare"),
        memcached("none", 0),
        memcached("other", 1, image="memcached:1.6-other"),
        memcached("addressed", 2, service={"type": "ClusterIP", "labels": {"team": "shop"}}, **LISTED),
        memcached("alone", 3, service={"type": "Disabled"}, disruptionBudget={"maxUnavailable": "100%"}),
        memcached(
            "full",
            2,
            disruptionBudget={"maxUnavailable": "50%"},
            podTemplate={
                "metadata": {"labels": {"team": "shop"}},
                "spec": {
                    "nodeSelector": {"disk": "ssd"},
                    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
                    "containers": [{"name": "memcached", "env": [{"name": "A", "value": "b"}]}],
                    "securityContext": {"fsGroup": 5},
                    "terminationGracePeriodSeconds": 5,
                },
            },
            networkPolicy={"ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "web"}}}]}]},
        ),
        memcached("named", 0, workload="StatefulSet", discovery={"configMap": {}}, networkPolicy={"ingress": []}),
    ],
    ids=lambda written: str(written["metadata"]["name"]),
)
def test_what_is_printed_is_what_was_made(kubectl: Kubectl, operator: OperatorProcess, written: Json) -> None:
    name = written["metadata"]["name"]
    kubectl.apply(written)
    wait(kubectl, f"mcd/{name}", ".status.observedGeneration", 1)
    printed = render(kubectl("get", "mcd", name, "-o", "yaml"))
    assert (printed.returncode, printed.stderr) == (0, "")
    made = {each["kind"]: _specified(each) for each in _made_for(kubectl, name)}
    if policy := made.get("NetworkPolicy"):
        policy["spec"]["ingress"] = _without_operator(policy["spec"].get("ingress", []))
    again = {kind: _specified(_made_of(kubectl, each)) for kind, each in _by_kind(printed.stdout).items()}
    if policy := again.get("NetworkPolicy"):
        policy["spec"].setdefault("ingress", [])
    assert again == made
    # From the file as it was written only the uid is not known.
    early = render(json.dumps(written), "-n", kubectl.namespace)
    uid = kubectl.uid(f"mcd/{name}")
    assert _by_kind(early.stdout.replace("UID-OF-THE-MEMCACHED", uid)) == _by_kind(printed.stdout)


def _by_kind(printed: str) -> dict[str, Json]:
    return {each["kind"]: each for each in yaml.safe_load_all(printed)}


def _without_operator(rules: list[Json]) -> list[Json]:
    """What a NetworkPolicy admits beside the operator's own pods, of which only an operator in a cluster knows."""
    *others, operator = rules
    (peer,) = operator["from"]
    assert peer["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "memcached-operator"}
    return others


def _made_for(kubectl: Kubectl, name: str) -> list[Json]:
    """All that a Memcached owns."""
    uid = kubectl.uid(f"mcd/{name}")
    found = json.loads(kubectl("get", KINDS, "-o", "json"))["items"]
    return [each for each in found if uid in {owner["uid"] for owner in each["metadata"].get("ownerReferences", ())}]


SIZES = ["3", "3.0", "1e1", "08", "0x1F", "!!float 3", "y", "~", "'3'", "2.5", "1:30", "2147483648.0", "-1.0"]


@pytest.mark.parametrize("size", SIZES)
def test_a_size_is_the_number_that_kubectl_sends(kubectl: Kubectl, size: str) -> None:
    text = (
        "apiVersion: cache.example.com/v1alpha1\nkind: Memcached\nmetadata: {name: sized}\n"
        f"spec:\n  image: memcached:1\n  size: {size}\n"
    )
    created = kubectl.run("create", "--dry-run=server", "-o", "json", "-f", "-", input=text, check=False)
    printed = render(text)
    assert printed.returncode == created.returncode, (created.stderr, printed.stderr)
    if created.returncode == 0:
        sent = json.loads(created.stdout)["spec"].get("size", 1)
        assert _by_kind(printed.stdout)["Deployment"]["spec"]["replicas"] == sent
