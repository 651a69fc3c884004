"""The events of a Memcached, as `kubectl describe` and `kubectl get events` show them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from memcached_operator import cli
from operator_runtime.testing.waiting import eventually
from tests.integration.conftest import memcached
from tests.integration.oracle import (
    wait,
)
from tests.integration.other_client import called, events_of
from tests.kubectl_in_namespace import Kubectl

pytestmark = pytest.mark.usefixtures("operator")


def events(kubectl: Kubectl, name: str) -> list[Any]:
    """The operator's events about a Memcached as kubernetes-asyncio reads them, oldest first."""
    found: list[Any] = called(kubectl.cluster, lambda client: events_of(client, kubectl.namespace, name))
    return found


def wait_event(kubectl: Kubectl, name: str, reason: str, *, count: int = 1) -> Any:
    """The latest of `count` events with that reason."""
    found = eventually(
        lambda: [each for each in events(kubectl, name) if each.reason == reason],
        lambda found: len(found) >= count,
        what=f"{count} events {reason}",
    )
    return found[-1]


def described(kubectl: Kubectl, name: str) -> str:
    """What `kubectl describe` says under Events, with single spaces."""
    return " ".join(kubectl("describe", "mcd", name).partition("\nEvents:")[2].split())


def test_describe_tells_what_was_created_scaled_and_updated(kubectl: Kubectl) -> None:
    kubectl.apply(memcached("shop", 1), create=True)
    created = wait_event(kubectl, "shop", "Created")
    assert (created.type, created.action) == ("Normal", "Create")
    assert created.regarding.uid == kubectl.uid("mcd/shop")

    kubectl("scale", "mcd/shop", "--replicas=3")
    wait_event(kubectl, "shop", "Scaled")
    kubectl("patch", "mcd/shop", "--type=merge", "-p", '{"spec":{"image":"memcached:1.6.44"}}')
    wait_event(kubectl, "shop", "Updated")

    text = described(kubectl, "shop")
    assert "Normal Created" in text
    assert "memcached-operator Created Deployment shop with 1 replicas" in text
    assert "Scaled Deployment shop from 1 to 3 replicas: spec.size changed" in text
    was = "docker.io/library/memcached:1.6.45-alpine"
    image = f'spec.template.spec.containers[memcached].image: "{was}" → "memcached:1.6.44"'
    assert f"Updated Deployment shop: {image}" in text


def test_an_event_tells_what_a_change_costs_as_render_told_it_before(
    kubectl: Kubectl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change = {"memory": "128Mi", "threads": 8, "drainPeriodSeconds": 5}
    kubectl.apply(memcached("shop", 3, workload="StatefulSet"), create=True)
    wait(kubectl, "mcd/shop", ".status.observedGeneration", 1)
    old, new = tmp_path / "old.yaml", tmp_path / "new.json"
    old.write_text(kubectl("get", "mcd", "shop", "-o", "yaml"))
    new.write_text(json.dumps(memcached("shop", 3, workload="StatefulSet", **change)))
    compare = ["render", "-f", str(new), "--diff", str(old), "-n", kubectl.namespace]
    assert cli.main(compare) == 1
    (rendered,) = re.findall(r"^# rolling: (.*)$", capsys.readouterr().out, re.MULTILINE)
    kubectl("patch", "mcd/shop", "--type=merge", "-p", json.dumps({"spec": change}))
    found = wait_event(kubectl, "shop", "RollingChange")
    assert found.note.startswith(f"spec.memory, spec.threads: {rendered}. spec.memory: "), found.note
    wait(kubectl, "mcd/shop", ".status.observedGeneration", 2)
    assert [each.reason for each in events(kubectl, "shop") if each.reason.endswith("Change")] == ["RollingChange"]
    old.write_text(kubectl("get", "mcd", "shop", "-o", "yaml"))
    assert cli.main(compare) == 0
