"""What others do to a Deployment of ours: what is ours is put right once, what is theirs stays."""

from __future__ import annotations

import json
from typing import Any

import pytest

from operator_runtime.testing.waiting import until
from tests.integration.conftest import memcached
from tests.integration.oracle import catch_up, deployment_writes, wait, wait_condition
from tests.integration.requests import taken
from tests.kubectl_in_namespace import Kubectl

pytestmark = [pytest.mark.core, pytest.mark.usefixtures("operator")]

Path = tuple[str | int, ...]
CONTAINER: Path = ("spec", "template", "spec", "containers", 0)
IMAGE = "memcached:1.6.45"


@pytest.fixture(name="shop")
def fixture_shop(kubectl: Kubectl) -> Kubectl:
    """kubectl in a namespace where a Memcached named shop has its Deployment and is at rest."""
    kubectl.apply(memcached("shop", 0, image=IMAGE), create=True)
    wait_condition(kubectl, "shop", "Progressing", "Complete")
    return kubectl


def live(kubectl: Kubectl) -> Any:
    return kubectl.get("deployment", "shop")


def json_patch(kubectl: Kubectl, *operations: dict[str, object]) -> None:
    kubectl("patch", "deployment/shop", "--type=json", "-p", json.dumps(operations))


def operation(op: str, path: Path, value: object = None) -> dict[str, object]:
    pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
    return {"op": op, "path": pointer, "value": value}


LABEL: Path = ("metadata", "labels", "app.kubernetes.io/managed-by")
RECORDED: Path = ("spec", "template", "metadata", "annotations", "cache.example.com/template")
POD_LABEL: Path = ("spec", "template", "metadata", "labels", "app.kubernetes.io/name")

# One after the other: without its owner and the uid in the annotation it would be nobody's.
CHANGED = (
    operation("replace", ("spec", "replicas"), 3),
    operation("replace", (*CONTAINER, "image"), "evil"),
    operation("replace", (*CONTAINER, "command"), ["sleep", "1"]),
    operation("replace", (*CONTAINER, "ports", 0, "containerPort"), 11212),
    operation("replace", (*CONTAINER, "ports", 0, "name"), "other"),
    operation("replace", (*CONTAINER, "securityContext"), {}),
    operation("replace", (*CONTAINER, "resources", "limits", "memory"), "1Gi"),
    operation("replace", LABEL, "me"),
    operation("replace", ("spec", "strategy"), {"type": "Recreate"}),
    operation("replace", ("spec", "minReadySeconds"), 5),
    operation("remove", ("metadata", "ownerReferences")),
)
REMOVED = (
    operation("remove", (*CONTAINER, "ports")),
    operation("remove", (*CONTAINER, "readinessProbe")),
    operation("remove", (*CONTAINER, "lifecycle")),
    operation("add", (*CONTAINER, "args"), ["-vv"]),
    operation("remove", LABEL),
    operation("remove", POD_LABEL),
    operation("remove", RECORDED),
    operation("remove", ("metadata", "annotations", "cache.example.com/memcached-uid")),
)


def owned_parts(kubectl: Kubectl) -> Any:
    found = live(kubectl)
    metadata = found["metadata"]
    annotations = {key: text for key, text in metadata["annotations"].items() if key.startswith("cache.example.com/")}
    return found["spec"], metadata["labels"], metadata["ownerReferences"], annotations


def test_what_somebody_changed_or_removed_of_the_owned_is_put_right_in_its_place_by_one_write(shop: Kubectl) -> None:
    before, uid = owned_parts(shop), shop.uid("deployment/shop")
    for change in (CHANGED, REMOVED):
        mark = shop.cluster.audit_mark()
        json_patch(shop, *change)
        # A template without its digest waits for its turn, as one of another release does.
        until("it is not put right", lambda: owned_parts(shop) == before)
        catch_up(shop)
        assert owned_parts(shop) == before
        assert taken(deployment_writes(shop, "shop", mark)) == {"deployments 200"}
    mark = shop.cluster.audit_mark()
    catch_up(shop)
    assert taken(deployment_writes(shop, "shop", mark)) == set(), "what was healed once is not written again"
    assert shop.uid("deployment/shop") == uid


def test_what_others_add_stays_and_costs_no_write(shop: Kubectl) -> None:
    shop("create", "configmap", "other")
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": shop.uid("configmap/other")}
    mark = shop.cluster.audit_mark()
    shop("rollout", "restart", "deployment/shop")
    shop("annotate", "deployment/shop", "example.com/note=theirs")
    shop("label", "deployment/shop", "example.com/team=theirs")
    sidecar = {"name": "sidecar", "image": "sidecar", "ports": [{"containerPort": 9150, "name": "metrics"}]}
    environment = [{"name": "THEIRS", "value": "1"}]
    json_patch(
        shop,
        operation("add", ("spec", "template", "spec", "containers", "-"), sidecar),
        operation("add", (*CONTAINER, "env"), environment),
        operation("add", (*CONTAINER, "resources", "limits", "ephemeral-storage"), "1Gi"),
        operation("add", ("spec", "template", "metadata", "labels", "example.com/team"), "theirs"),
        operation("add", ("metadata", "finalizers"), ["example.com/theirs"]),
        operation("add", ("metadata", "ownerReferences", "-"), other),
        operation("replace", ("spec", "revisionHistoryLimit"), 5),
    )
    catch_up(shop)
    assert taken(deployment_writes(shop, "shop", mark)) == set()

    # Neither does a write of ours take it away, of whichever sort.
    shop("patch", "mcd/shop", "--type=merge", "-p", '{"spec":{"image":"memcached:1.6.44"}}')
    wait(shop, "deployment/shop", ".spec.template.spec.containers[0].image", "memcached:1.6.44")
    shop("scale", "mcd/shop", "--replicas=1")
    wait(shop, "mcd/shop", ".status.replicas", 1)
    found = live(shop)
    meta, template = found["metadata"], found["spec"]["template"]
    server, theirs = template["spec"]["containers"]
    assert "kubectl.kubernetes.io/restartedAt" in template["metadata"]["annotations"]
    assert (meta["annotations"]["example.com/note"], meta["labels"]["example.com/team"]) == ("theirs", "theirs")
    assert (theirs["name"], theirs["image"]) == ("sidecar", "sidecar")
    assert (server["env"], server["resources"]["limits"]["ephemeral-storage"]) == (environment, "1Gi")
    assert template["metadata"]["labels"]["example.com/team"] == "theirs"
    assert [each["kind"] for each in meta["ownerReferences"]] == ["Memcached", "ConfigMap"]
    assert (meta["finalizers"], found["spec"]["revisionHistoryLimit"]) == (["example.com/theirs"], 5)
    json_patch(shop, operation("remove", ("metadata", "finalizers")))


def test_a_deployment_that_was_deleted_is_made_again_however_it_was_deleted(shop: Kubectl) -> None:
    shop("scale", "mcd/shop", "--replicas=2")
    wait(shop, "mcd/shop", ".status.replicas", 2)
    for mode in ("background", "foreground", "orphan"):
        before = shop.uid("deployment/shop")
        mark = shop.cluster.audit_mark()
        shop("delete", "deployment/shop", f"--cascade={mode}", "--timeout=60s")
        shop.wait("deployment/shop", "create")
        catch_up(shop, pods=True)
        wait(shop, "deployment/shop", ".status.replicas", 2)
        wait(shop, "mcd/shop", ".status.replicas", 2)
        assert shop.uid("deployment/shop") != before
        assert taken(deployment_writes(shop, "shop", mark)) == {"deployments 201"}, mode
