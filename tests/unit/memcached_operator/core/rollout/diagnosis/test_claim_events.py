"""What events say of the claim of a server's disk."""

from __future__ import annotations

import pytest

from memcached_operator.core.observed.pod_status import PodProblem
from memcached_operator.core.rollout.diagnosis.pod_creation_failures import (
    Creation,
    about_claim,
    may_be_unbound,
    why_not_bound,
)
from tests.unit.memcached_operator.support import NAMESPACE

FAILED = "Unschedulable: ProvisioningFailed of the claim a-0-extstore: it is so"


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        ("Unschedulable: 0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims", True),
        ('Unschedulable: waiting for ephemeral volume controller to create the persistentvolumeclaim "a"', True),
        ("Unschedulable: 0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind", True),
        ("Unschedulable: 0/3 nodes are available: 3 Insufficient memory", False),
        ("ImagePullBackOff of the container persistent volume", False),
        ("", False),
    ],
)
def test_the_scheduler_says_that_it_is_a_claim_and_not_which_and_why(problem: str, expected: bool) -> None:
    reason, _, message = problem.partition(": ")
    assert may_be_unbound(PodProblem(reason, message)) is expected


@pytest.mark.parametrize(
    ("reasons", "why"),
    [
        ([], ""),
        (["ProvisioningFailed"], FAILED),
        (["WaitForFirstConsumer"], ""),
        (["WaitForFirstConsumer", "ProvisioningFailed"], FAILED),
        (["ProvisioningFailed", "ProvisioningSucceeded"], ""),
        (["FailedBinding"], FAILED.replace("ProvisioningFailed", "FailedBinding")),
    ],
)
def test_what_is_said_last_of_a_claim_counts_unless_it_is_ordinary(reasons: list[str], why: str) -> None:
    events = [
        Creation(NAMESPACE, "a", "u", "1", reason, "it is so\nand more", at_s) for at_s, reason in enumerate(reasons)
    ]
    assert str(why_not_bound(events, "a-0")) == why
    assert str(why_not_bound(reversed(events), "a-0")) == why


def test_the_claim_is_that_of_the_pods_disk_and_long_words_are_cut() -> None:
    assert about_claim("a-0") == "involvedObject.kind=PersistentVolumeClaim,involvedObject.name=a-0-extstore"
    long = Creation(NAMESPACE, "a", "u", "1", "ProvisioningFailed", "x" * 9999, 1)
    assert len(str(why_not_bound([long], "a-0"))) == 300
