"""The OLM bundle, installed by hand as OLM does it; tests/e2e/test_olm.py has OLM itself, which takes a node."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster import Cluster, make_namespace
from tests.integration.accounts import bind
from tests.integration.conftest import Operators, memcached
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import PROJECT

MANIFESTS = [yaml.safe_load(path.read_text()) for path in sorted((PROJECT / "bundle" / "manifests").iterdir())]
[CSV] = [thing for thing in MANIFESTS if thing["kind"] == "ClusterServiceVersion"]
INSTALL = CSV["spec"]["install"]["spec"]
ACCOUNT = INSTALL["permissions"][0]["serviceAccountName"]


def deployment(targets: str) -> dict[str, Any]:
    """The operator's Deployment, with the OperatorGroup's namespaces in the annotation of its pods."""
    [desired] = INSTALL["deployments"]
    spec = json.loads(json.dumps(desired["spec"]))
    spec["template"]["metadata"].setdefault("annotations", {})["olm.targetNamespaces"] = targets
    metadata = {"name": desired["name"], "labels": desired["label"]}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def environment(made: dict[str, Any], namespace: str) -> dict[str, str]:
    """What the kubelet makes of the variables of the operator's container."""
    template = made["spec"]["template"]
    fields = {
        "metadata.name": "operator-0",
        "metadata.namespace": namespace,
        **{f"metadata.annotations['{name}']": value for name, value in template["metadata"]["annotations"].items()},
    }
    [container] = template["spec"]["containers"]
    return {
        variable["name"]: variable["value"]
        if "value" in variable
        else fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        for variable in container["env"]
    }


def grant(kubectl: Kubectl, kind: str, account_namespace: str) -> str:
    """The CSV's permissions as a Role in kubectl's namespace, or as a ClusterRole; the binding's name."""
    name = f"olm-{uuid.uuid4().hex[:10]}"
    [permissions] = INSTALL["permissions"]
    bind(kubectl, kind, name, (account_namespace, ACCOUNT), permissions["rules"])
    return name


@pytest.fixture
def home(installed: Cluster) -> Iterator[Kubectl]:
    """The namespace that the Subscription is in, with the account that OLM makes there."""
    name = f"operators-{uuid.uuid4().hex[:10]}"
    make_namespace(installed, name)
    installed.kubectl("create", "serviceaccount", ACCOUNT, "-n", name)
    yield Kubectl(installed, name)
    installed.kubectl("delete", "namespace", name, "--wait=false")


@pytest.mark.parametrize("mode", ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"])
def test_the_operator_works_with_what_olm_gives_it_in_each_install_mode(
    mode: str, home: Kubectl, kubectl: Kubectl, operators: Operators, installed: Cluster
) -> None:
    target = home if mode == "OwnNamespace" else kubectl
    targets = {"MultiNamespace": f"{home.namespace},{target.namespace}", "AllNamespaces": ""}.get(
        mode, target.namespace
    )
    # In its own namespace in any case; in those of the OperatorGroup; in all by a ClusterRole.
    grant(home, "Role", home.namespace)
    wide = None
    if mode == "AllNamespaces":
        wide = grant(home, "ClusterRole", home.namespace)
    elif target is not home:
        grant(target, "Role", home.namespace)
    try:
        made = deployment(targets)
        folder: Path = installed.service_account_dir(home.namespace, ACCOUNT)
        flags = [flag for flag in made["spec"]["template"]["spec"]["containers"][0]["args"] if "bind-addr" not in flag]
        operator = operators.start(*flags, account_dir=folder, **environment(made, home.namespace))
        target.apply(memcached("cache", 2))
        target.wait_field("memcached/cache", ".status.observedGeneration", 1)
        assert target.get("deployment/cache")["spec"]["replicas"] == 2
        assert operator.stop() == 0
        assert "forbidden" not in operator.log.lower()
    finally:
        if wide is not None:
            home("delete", f"clusterrole/{wide}", f"clusterrolebinding/{wide}")


@pytest.mark.cluster("kubernetes")
def test_an_api_server_takes_all_that_the_bundle_has_for_it(home: Kubectl) -> None:
    others = [thing for thing in MANIFESTS if thing["kind"] != "ClusterServiceVersion"]
    text = "\n---\n".join(json.dumps(thing) for thing in [deployment(home.namespace), *others])
    home("apply", "--validate=strict", "--dry-run=server", "--server-side", "--force-conflicts", "-f", "-", input=text)


def test_an_api_server_takes_the_examples(kubectl: Kubectl) -> None:
    examples = json.loads(CSV["metadata"]["annotations"]["alm-examples"])
    kubectl.apply(*examples, create=True)
