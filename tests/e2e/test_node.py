"""The node itself: what the other tests here take for granted of a cluster."""

import json
import os
import signal
import sys
import urllib.request

import pytest

from lab.kubectl import LabError
from lab.node.node import Node
from operator_runtime.testing.waiting import eventually
from tests.e2e.node_cluster import BUSYBOX, STAYS, pod_address, run_pod
from tests.kubectl_in_namespace import Kubectl

# Answers whatever it is asked by HTTP.
SERVER = ("sh", "-c", "while :; do printf 'HTTP/1.0 200 OK\\r\\n\\r\\nhello' | nc -l -p 8080; done")

# Asks an API server whether it lives, and believes its certificate only.
LIVEZ = """
import http.client, ssl, sys
host, authority = sys.argv[1:]
connection = http.client.HTTPSConnection(host, timeout=20, context=ssl.create_default_context(cafile=authority))
connection.request("GET", "/livez")
print(connection.getresponse().read().decode(), end="")
"""


def test_a_pod_runs_and_says_what_it_does(kubectl: Kubectl) -> None:
    run_pod(kubectl, "talker", "sh", "-c", "echo told by the pod; exec sleep infinity")
    assert kubectl("logs", "talker") == "told by the pod\n"
    assert kubectl("exec", "talker", "--", "sh", "-c", "echo $((6 * 7))") == "42\n"


def test_a_command_in_a_pod_ends_with_its_own_code(kubectl: Kubectl) -> None:
    run_pod(kubectl, "talker")
    with pytest.raises(LabError, match="exit code 7"):
        kubectl("exec", "talker", "--", "sh", "-c", "exit 7")


@pytest.mark.parametrize("name", ["kubernetes.default.svc.cluster.local", "kube-dns.kube-system.svc.cluster.local"])
def test_a_pod_resolves_the_names_of_services(kubectl: Kubectl, node: Node, name: str) -> None:
    run_pod(kubectl, "asker")
    service, namespace, *_ = name.split(".")
    address = node.kubectl("-n", namespace, "get", "service", service, "-o", "jsonpath={.spec.clusterIP}").stdout
    assert f"Address: {address}" in kubectl("exec", "asker", "--", "nslookup", name)


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


def test_a_name_outside_the_cluster_does_not_exist(kubectl: Kubectl) -> None:
    run_pod(kubectl, "asker")
    answer = kubectl("exec", "asker", "--", "nslookup", "registry.example.com", check=False)
    assert "can't find registry.example.com: NXDOMAIN" in answer


def test_a_pod_reaches_the_api_server_by_its_service_and_is_known_there(kubectl: Kubectl) -> None:
    run_pod(kubectl, "caller")
    account = "/var/run/secrets/kubernetes.io/serviceaccount"
    script = (
        f'wget -qO- --no-check-certificate --header "Authorization: Bearer $(cat {account}/token)" '
        "https://kubernetes.default.svc/apis/authorization.k8s.io/v1"
    )
    found = json.loads(kubectl("exec", "caller", "--", "sh", "-c", script))
    assert found["groupVersion"] == "authorization.k8s.io/v1"


def test_the_api_server_s_certificate_is_good_for_the_address_that_pods_are_given(node: Node) -> None:
    host = node.addresses.services.removesuffix("0/24") + "1"
    answer = node.exec_in_network(sys.executable, "-c", LIVEZ, host, str(node.plane.ca_path))
    assert answer.stdout == "ok"


def test_this_machine_reaches_a_pod_and_a_service_by_their_addresses(kubectl: Kubectl) -> None:
    run_pod(kubectl, "server", *SERVER)
    kubectl("expose", "pod", "server", "--port=80", "--target-port=8080")
    service = kubectl.get("service", "server")["spec"]["clusterIP"]
    for url in (f"http://{pod_address(kubectl, 'server')}:8080/", f"http://{service}/"):
        assert eventually(lambda url=url: _fetch(url), bool) == b"hello"  # type: ignore[misc]


def test_one_pod_reaches_another_by_a_service(kubectl: Kubectl) -> None:
    run_pod(kubectl, "server", *SERVER)
    kubectl("expose", "pod", "server", "--port=80", "--target-port=8080")
    run_pod(kubectl, "caller")
    fetch = "until wget -T 5 -qO- http://server/; do sleep 0.1; done"
    assert kubectl("exec", "caller", "--", "timeout", "50", "sh", "-c", fetch) == "hello"


def test_a_pod_reaches_no_other_machine(kubectl: Kubectl) -> None:
    run_pod(kubectl, "caller")
    with pytest.raises(LabError, match="exit code 1"):
        kubectl("exec", "caller", "--", "nc", "-z", "-w", "2", "192.0.2.1", "80")


def test_a_container_whose_process_is_killed_is_started_again(kubectl: Kubectl, node: Node) -> None:
    run_pod(kubectl, "victim")
    os.kill(node.container_pid(kubectl.namespace, "victim", "victim"), signal.SIGKILL)
    kubectl.wait_field("pod/victim", ".status.containerStatuses[0].restartCount", 1)
    kubectl.wait("pod/victim", "condition=Ready")


def test_a_container_hears_the_signal_that_ends_it(kubectl: Kubectl) -> None:
    # With SIGTERM blocked, as a child of a careless parent has it, the shell would be killed after 30 s with 137.
    run_pod(kubectl, "polite", "sh", "-c", "trap 'exit 3' TERM; while :; do sleep 1 & wait; done")
    # The end of the container may take `kill` itself along before its answer is here.
    kubectl("exec", "polite", "--", "kill", "-TERM", "1", check=False)
    kubectl.wait_field("pod/polite", ".status.containerStatuses[0].lastState.terminated.exitCode", 3)


def test_an_image_that_is_not_there_is_named_as_the_reason(kubectl: Kubectl) -> None:
    kubectl("run", "missing", "--image=registry.example.com/missing:1")
    reason = "jsonpath={.status.containerStatuses[0].state.waiting.reason}"
    eventually(
        lambda: kubectl("get", "pod", "missing", "-o", reason),
        lambda found: found in ("ErrImagePull", "ImagePullBackOff"),
    )


def test_a_loaded_image_is_listed_by_its_full_name(node: Node) -> None:
    assert BUSYBOX in node.images()


def _fetch(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            found: bytes = answer.read()
            return found
    except OSError:
        return b""
