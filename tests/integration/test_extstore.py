"""Servers with a disk on an API server: its defaults are no difference, and one kind of volume follows another."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.conftest import memcached
from tests.integration.oracle import catch_up, wait
from tests.kubectl_in_namespace import Kubectl

pytestmark = [pytest.mark.core, pytest.mark.usefixtures("operator")]

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
