"""Volumes of disks and of Secrets on an API server: its defaults are no difference, and one kind follows another."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.conftest import memcached
from tests.integration.oracle import catch_up, complete, wait
from tests.kubectl_in_namespace import Kubectl

pytestmark = [pytest.mark.core, pytest.mark.usefixtures("operator")]

TLS = {"tls": {"secretName": "shop-tls", "clientAuth": "Require"}}
AUTH = {"auth": {"secretName": "shop-passwords"}}
VOLUMES: tuple[dict[str, Any], ...] = (
    {"ephemeral": {"storageClassName": "local-nvme"}},
    {"ephemeral": {}},
    {"emptyDir": {}},
    {"ephemeral": {"accessModes": ["ReadWriteOncePod"]}},
)


def test_one_volume_follows_another_by_one_write_each(kubectl: Kubectl) -> None:
    for number, volume in enumerate(VOLUMES):
        kubectl.apply(memcached("shop", 1, extstore={"size": "1Gi", "volume": volume}))
        wait(kubectl, "mcd/shop", ".status.observedGeneration", number + 1)
        catch_up(kubectl)
        live = kubectl.get("deployment", "shop")
        assert live["metadata"]["generation"] == number + 1, "each change of the specification is one write"
        (found,) = live["spec"]["template"]["spec"]["volumes"]
        assert found.keys() == {"name", *volume}
        if (claim := found.get("ephemeral")) is not None:
            spec, ephemeral = claim["volumeClaimTemplate"]["spec"], volume["ephemeral"]
            assert spec.get("storageClassName") == ephemeral.get("storageClassName")
            assert spec["accessModes"] == ephemeral.get("accessModes", ["ReadWriteOnce"])
    kubectl("patch", "mcd", "shop", "--type=merge", "-p", json.dumps({"spec": {"extstore": None}}))
    wait(kubectl, "mcd/shop", ".status.observedGeneration", len(VOLUMES) + 1)
    catch_up(kubectl)
    assert "volumes" not in kubectl.get("deployment", "shop")["spec"]["template"]["spec"]


@pytest.mark.cluster("kubernetes")  # whose defaults stand in the volumes
def test_without_a_sidecar_the_kubelet_waits_for_secrets_and_with_one_again_it_does_not(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 1, workload="StatefulSet", **TLS, **AUTH)
    restart = {"tls": TLS["tls"] | {"reload": "Restart"}}
    for fields, optional in ((restart, {None}), (TLS, {True})):
        kubectl.apply(memcached("shop", 1, workload="StatefulSet", **fields, **AUTH))
        catch_up(kubectl)  # the second change is complete at once where the first has replaced no pod yet
        pod = kubectl.get("statefulset", "shop")["spec"]["template"]["spec"]
        assert {each["secret"].get("optional") for each in pod["volumes"] if "secret" in each} == optional
        assert pod.get("shareProcessNamespace") is (True if optional == {True} else None)
