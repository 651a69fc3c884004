"""Why servers of a StatefulSet are missing is told, with what to do about it, and over once that is done."""

from __future__ import annotations

import re

import pytest

from tests.integration.oracle import complete, condition, wait, wait_condition
from tests.kubectl_in_namespace import Kubectl

pytestmark = [
    pytest.mark.cluster("kubernetes"),  # its own StatefulSet controller decides
    pytest.mark.usefixtures("operator"),
]


def test_a_pod_that_was_relabelled_is_named_and_its_labels_bring_it_back(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 2, workload="StatefulSet")
    uid = kubectl.get("pod", "shop-1")["metadata"]["uid"]
    kubectl("label", "pod/shop-1", "memcached_cr-")
    told = wait_condition(kubectl, "shop", "Degraded", "NotControlled")["message"]
    assert "A pod named shop-1 is in the way of the server of that name: it lacks the labels app=memcached," in told
    assert told in condition(kubectl, "shop", "Available")["message"]
    found = re.search("`kubectl (label [^`]+)`", told)
    assert found is not None
    kubectl(*found[1].split())
    wait(kubectl, "mc/shop", ".status.readyReplicas", 2)
    wait_condition(kubectl, "shop", "Degraded", "AsExpected")
    assert kubectl.get("pod", "shop-1")["metadata"]["uid"] == uid
