"""What the tests of servers with lasting names and of what stands beside them share."""

from __future__ import annotations

import json
import uuid
from typing import Any

from lab.audit import START, Mark
from operator_runtime.testing.waiting import until
from tests.integration.conftest import memcached
from tests.integration.oracle import OPERATOR_NAME, complete, wait
from tests.integration.requests import writes_of
from tests.kubectl_in_namespace import Kubectl

PEERS = [{"podSelector": {"matchLabels": {"role": "shop"}}}]
# One of each kind that is made on request or for more than one server.
EVERYTHING: dict[str, object] = {
    "workload": "StatefulSet",
    "service": {"annotations": {"example.com/note": "ours"}, "labels": {"team": "shop"}},
    "disruptionBudget": {"maxUnavailable": "50%"},
    "podTemplate": {
        "metadata": {"labels": {"team": "shop"}, "annotations": {"example.com/note": "ours"}},
        "spec": {
            "nodeSelector": {"disk": "fast"},
            "tolerations": [{"key": "cache", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": {"app": "memcached"}},
                }
            ],
            "imagePullSecrets": [{"name": "registry"}],
            "securityContext": {"fsGroup": 1000},
            "terminationGracePeriodSeconds": 5,
        },
    },
    "networkPolicy": {"ingress": [{"from": PEERS}]},
    "discovery": {"configMap": {}},
}


def names(kubectl: Kubectl, *ordinals: int) -> list[str]:
    """`host:port` of servers of the StatefulSet named shop."""
    return [f"shop-{ordinal}.shop.{kubectl.namespace}.svc:11211" for ordinal in ordinals]


def status(kubectl: Kubectl) -> Any:
    """The status of the Memcached named shop."""
    return kubectl.get("mcd", "shop")["status"]


def wait_list(kubectl: Kubectl, *ordinals: int) -> None:
    """Wait until the list of the Memcached named shop, which is not empty, ends with the last of these servers.

    It names no others then.
    """
    listed = names(kubectl, *ordinals)
    wait(kubectl, "mcd/shop", ".status.serverList[-1:]", listed[-1])
    assert status(kubectl)["serverList"] == listed


def change(kubectl: Kubectl, **spec: object) -> None:
    """Merge fields into the specification of the Memcached named shop; None takes one out."""
    kubectl("patch", "mcd/shop", "--type=merge", "-p", json.dumps({"spec": spec}))


def written(kubectl: Kubectl, since: Mark = START) -> list[str]:
    """What the operator wrote of the Memcached named shop but for status and events, such as "create services 201"."""
    events = [
        event
        for event in writes_of(kubectl.cluster, OPERATOR_NAME, since=since)
        if event.namespace == kubectl.namespace and event.name in ("shop", "shop-servers", "shop-discovery")
    ]
    return [
        f"{event.verb} {event.resource} {event.code}"
        for event in sorted(events, key=lambda each: each.received_at)
        if event.resource not in ("memcacheds", "events")
    ]


def all_caught_up(kubectl: Kubectl) -> None:
    """As `catch_up`, of all kinds: return when the operator has dealt with all that happened before.

    Each watch has shown that somebody changed an object that was made now, as the operator put it right.
    """
    name = f"later-{uuid.uuid4().hex[:8]}"
    kubectl.apply(memcached(name, 0, **EVERYTHING), create=True)
    made = [f"{kind}/{name}" for kind in ("statefulset", "service", "pdb", "networkpolicy")]
    made.append(f"configmap/{name}-servers")
    label = "app.kubernetes.io/component"
    until(f"not all is there of {made}", lambda: kubectl.run("get", *made, "-o=name", check=False).returncode == 0)
    kubectl("label", *made, f"{label}=another", "--overwrite")
    kubectl.wait_existing(" ".join(made), f"jsonpath={{.metadata.labels.{label.replace('.', chr(92) + '.')}}}=cache")
    complete(kubectl, f"{name}-2", 1)
