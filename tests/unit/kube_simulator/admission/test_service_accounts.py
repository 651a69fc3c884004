"""Pods and the service accounts that they run as."""

import pytest

from kube_simulator.values import Json
from tests.unit.kube_simulator.admission.admission_support import NAMESPACE, World, elsewhere, pod, request

WHY = f'error looking up service account {NAMESPACE}/absent: serviceaccount "absent" not found'


def test_a_pod_of_an_account_that_exists_is_let_in(world: World) -> None:
    world.put("serviceaccounts", "robot")
    world.admit(request("CREATE", "pods", pod(serviceAccountName="robot")))
    world.admit(request("CREATE", "pods", pod()))  # that of the namespace is called default


@pytest.mark.parametrize(
    ("metadata", "shown"),
    [
        ({"name": "p"}, "p"),
        ({"name": "web-x2kzr", "generateName": "web-"}, "web-"),
        ({"name": "own", "generateName": "web-"}, "own"),
        ({"name": "web-own", "generateName": "web-"}, "web-own"),
    ],
)
def test_a_pod_of_an_account_that_does_not_exist_is_refused(world: World, metadata: Json, shown: str) -> None:
    refused = pod(serviceAccountName="absent")
    refused["metadata"] |= metadata
    error = world.refusal(request("CREATE", "pods", refused))
    assert (error.code, error.message) == (403, f'pods "{shown}" is forbidden: {WHY}')


def test_an_account_of_another_namespace_does_not_count(world: World) -> None:
    world.put("namespaces", "elsewhere")
    error = world.refusal(elsewhere(request("CREATE", "pods", pod()), "elsewhere"))
    assert 'serviceaccount "default" not found' in error.message


def test_a_pod_outlives_its_account(world: World) -> None:
    found = pod(serviceAccountName="absent")
    world.admit(request("UPDATE", "pods", {**found, "status": {}}, found))
    world.admit(request("DELETE", "pods", old=found))
