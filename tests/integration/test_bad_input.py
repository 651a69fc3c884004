"""Memcacheds that cannot be acted on: each is told what is wrong with it, and none stops the others.

The CRD lets no bad specification in. But objects may be older than their schema, so it is loosened for the last tests
here; and what the CRD lets in, the API server may still refuse in a Deployment.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import Cluster
from tests.integration.any_schema import any_schema
from tests.integration.conftest import memcached
from tests.integration.oracle import (
    catch_up,
    wait,
    wait_condition,
    writes,
)
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess

pytestmark = pytest.mark.core


@pytest.fixture(scope="module")
def loosened(installed: Cluster) -> Iterator[Cluster]:
    """The CRD lets everything in; put back when the module's tests are done and their objects gone."""
    with any_schema(installed):
        yield installed
        installed.kubectl("delete", "mcd", "--all", "--all-namespaces", "--timeout=60s")


@pytest.fixture
def loose(loosened: Cluster, namespace: str, operator: OperatorProcess) -> Kubectl:
    """kubectl in a fresh namespace, where anything passes for a Memcached."""
    assert operator.pid
    return Kubectl(loosened, namespace)


def message(kubectl: Kubectl, name: str, reason: str = "InvalidSpec") -> str:
    """What the condition Degraded says once it has that reason."""
    return str(wait_condition(kubectl, name, "Degraded", reason)["message"])


# What each field may be stands in the unit tests: here is one of each sort of value.
BAD: dict[str, tuple[object, str]] = {
    "text": ({"size": "3"}, 'spec.size: must be a whole number from 0 to 2147483647, got "3" (a string)'),
    "huge": ({"size": 2**31}, "spec.size: must be a whole number from 0 to 2147483647, got 2147483648"),
    "list": ([3], 'spec: must be an object such as {"size": 3}, got [3] (a list)'),
    "labels": ({"service": {"labels": {"tier": 1}}}, "spec.service.labels[tier]: must be a string"),
    "stateful": (
        {"workload": "StatefulSet", "service": {"type": "ClusterIP"}},
        "spec.service.type: must be Headless when spec.workload is",
    ),
    "both": ({"size": "x", "image": 7}, "spec.image: must be an image reference"),
}


def test_each_bad_specification_is_named_in_its_condition_and_stops_no_other(loose: Kubectl) -> None:
    everyone = [memcached(name) | {"spec": spec} for name, (spec, _) in BAD.items()]
    newer = memcached("good", 2, fromTheFuture={"enabled": True})
    loose.apply(*everyone[:4], newer, *everyone[4:], create=True)
    for name, (_, words) in BAD.items():
        assert words in message(loose, name)
    wait(loose, "mcd/good", ".status.replicas", 2)
    assert loose("get", "deployments", "-o=name").split() == ["deployment.apps/good"]

    bad = loose.get("mcd", "text")["status"]
    available = next(each for each in bad["conditions"] if each["type"] == "Available")
    assert (available["status"], bad["nodes"], bad["observedGeneration"]) == ("Unknown", [], 1)
    # Said, and not written again and again.
    mark = loose.cluster.audit_mark()
    catch_up(loose)
    assert [name for name in BAD if writes(loose, name, mark)] == []


def test_a_name_that_makes_no_deployment_is_told_what_the_api_server_said(loose: Kubectl) -> None:
    # Good for a Memcached, but too long for the value of a label.
    name = "x" * 70
    loose.apply(memcached(name, 1), memcached("good", 0), create=True)
    assert "must be no more than 63" in message(loose, name)
    wait_condition(loose, "good", "Progressing", "Complete")
