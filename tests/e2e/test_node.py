"""The node itself: what the other tests here take for granted of a cluster."""

import sys

import pytest

from lab.kubectl import LabError
from lab.node.node import Node
from operator_runtime.testing.waiting import eventually
from tests.e2e.node_cluster import BUSYBOX, STAYS, pod_address, run_pod
from tests.kubectl_in_namespace import Kubectl

# Asks an API server whether it lives, and believes its certificate only.
LIVEZ = """
import http.client, ssl, sys
host, authority = sys.argv[1:]
connection = http.client.HTTPSConnection(host, timeout=20, context=ssl.create_default_context(cafile=authority))
connection.request("GET", "/livez")
print(connection.getresponse().read().decode(), end="")
"""


def test_a_pod_resolves_the_lasting_names_of_a_stateful_set_and_the_records_of_its_port(kubectl: Kubectl) -> None:
    labels = {"app": "lasting"}
    pod = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "app", "image": BUSYBOX, "command": STAYS}]},
    }
    kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "lasting"},
            "spec": {"clusterIP": "None", "selector": labels, "ports": [{"name": "answers", "port": 8080}]},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "lasting"},
            "spec": {"serviceName": "lasting", "selector": {"matchLabels": labels}, "template": pod},
        },
    )
    run_pod(kubectl, "asker")
    kubectl.wait("pod/lasting-0", "condition=Ready")
    name = f"lasting-0.lasting.{kubectl.namespace}.svc.cluster.local"
    records = f"_answers._tcp.lasting.{kubectl.namespace}.svc.cluster.local"
    for requested, desired in (
        ((name,), f"Address: {pod_address(kubectl, 'lasting-0')}\n"),
        (("-type=srv", records), f"8080 {name}\n"),
    ):
        eventually(
            lambda requested=requested: kubectl("exec", "asker", "--", "nslookup", *requested, check=False),  # type: ignore[misc]
            lambda printed, desired=desired: desired in printed,  # type: ignore[misc]
        )


def test_the_api_server_s_certificate_is_good_for_the_address_that_pods_are_given(node: Node) -> None:
    host = node.addresses.services.removesuffix("0/24") + "1"
    answer = node.exec_in_network(sys.executable, "-c", LIVEZ, host, str(node.plane.ca_path))
    assert answer.stdout == "ok"


def test_a_pod_reaches_no_other_machine(kubectl: Kubectl) -> None:
    run_pod(kubectl, "caller")
    with pytest.raises(LabError, match="exit code 1"):
        kubectl("exec", "caller", "--", "nc", "-z", "-w", "2", "192.0.2.1", "80")
