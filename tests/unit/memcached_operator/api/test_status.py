"""The fields of a status, what of it is written, and what holds of every status."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, strategies as st

from kube_simulator.errors import Cause
from kube_simulator.patches.merge import merge_patch
from kube_simulator.schema import custom
from kube_simulator.schema.validation import validate
from memcached_operator.api.crd import memcached_crd
from memcached_operator.api.status import Drain, HandoverStep, Problem, Reason, Status, decode_status, status_patch
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.observed.memcacheds import is_overdue, memcached_record
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.outcome import WorkloadResult
from memcached_operator.core.plan.plan import ListedServers
from memcached_operator.core.status.conditions import status_of
from memcached_operator.core.status.debounce import is_complete
from memcached_operator.core.status.observation import Observation
from memcached_operator.servers.stats_cache import AnswerVerdict, ServerHealth
from operator_runtime.objects.conditions import Condition
from tests.unit.memcached_operator.status_support import (
    DEPLOYING,
    EXCEEDED,
    LATER,
    NEW,
    NOW,
    ROLLED_OUT,
    condition_of,
    pods,
    reported_status,
)
from tests.unit.memcached_operator.support import NAME, deployment_of, pod_of
from tests.unit.memcached_operator.world import UNSEEN

STATUS = b"""{
  "nodes": ["example-memcached-6fd7c98d8-7dqdr"], "replicas": 1, "readyReplicas": 0, "selector": "app=memcached",
  "version": "1.6.45",
  "observedGeneration": 2,
  "workload": "StatefulSet", "service": "example-memcached",
  "serverList": ["example-memcached-0.example-memcached.shop.svc:11211"],
  "draining": [{"workload": "StatefulSet", "firstOrdinal": 1, "startTime": "2026-01-02T03:04:05Z"}],
  "handover": {"step": "Published", "startTime": "2026-01-02T03:04:05Z", "formerListEndTime": "2026-01-02T03:04:05Z",
    "move": {"server": "example-memcached-0", "holder": "example-memcached-holder-0", "step": "Copying",
      "startTime": "2026-01-02T03:04:05Z"}},
  "conditions": [{"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable",
    "message": "0 of 1 ready", "lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": 2}]
}"""


def _problems_of(status: bytes) -> list[Cause]:
    """What the schema of the CRD finds wrong in a status."""
    [resource] = custom.resources_of(custom.defaulted(memcached_crd()))
    return validate(resource.schema, {"status": json.loads(status)})


def test_a_status_reads_and_writes_the_names_of_the_api() -> None:
    assert json.loads(msgspec.json.encode(decode_status(STATUS))) == json.loads(STATUS)
    assert _problems_of(STATUS) == []


@pytest.mark.parametrize("step", HandoverStep)
def test_each_step_of_a_hand_over_can_be_written(step: HandoverStep) -> None:
    assert _problems_of(STATUS.replace(b"Published", step.encode())) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"status": "False"', b'"status": "Maybe"'),
        (b'"reason": "MinimumReplicasUnavailable"', b'"reason": "two words"'),
        (b'"type": "Available"', b'"type": "Not a name"'),
        (b'"lastTransitionTime": "2026-01-02T03:04:05Z", ', b""),
        (b'"readyReplicas": 0', b'"readyReplicas": -1'),
        (b'"firstOrdinal": 1', b'"firstOrdinal": -1'),
        (b', "startTime": "2026-01-02T03:04:05Z"', b""),
    ],
)
def test_a_status_that_breaks_the_conventions_is_refused(before: bytes, after: bytes) -> None:
    assert before in STATUS
    assert _problems_of(STATUS.replace(before, after))


def test_the_nodes_are_the_sorted_names_of_the_pods() -> None:
    status = reported_status(3, [pod_of("c"), pod_of("a"), pod_of("b", ready=False)], generation=4)
    assert status.nodes == tuple(pod_of(name).name for name in "abc")
    assert (status.replicas, status.readyReplicas, status.observedGeneration) == (3, 2, 4)
    assert status.selector == "app=memcached,memcached_cr=sessions"
    assert json.loads(msgspec.json.encode(reported_status(0)))["nodes"] == [], "and not absent"


@pytest.mark.parametrize(
    ("live", "overdue"),
    [
        ({}, True),
        ({"status": {}}, True),
        ({"status": {"observedGeneration": "3"}}, True),
        ({"status": UNSEEN}, True),
        ({"status": {"observedGeneration": 2}}, True),
        ({"status": {"observedGeneration": 3}}, False),
        ({"status": {"observedGeneration": 3, "nodes": [1]}}, True),
    ],
)
def test_a_memcached_is_overdue_until_a_status_tells_of_its_generation(live: dict[str, object], overdue: bool) -> None:
    metadata = {"namespace": "shop", "name": "sessions", "uid": "u", "resourceVersion": "7", "generation": 3}
    assert is_overdue(memcached_record(json.dumps({"metadata": metadata, **live}).encode())) is overdue


TYPES = ["Available", "Progressing", "Degraded", "Ready", "Serving", "Discouraged"]


def test_our_conditions_bear_the_generation_that_they_speak_of() -> None:
    conditions = reported_status(3, pods(3), generation=4).conditions or ()
    assert [condition.type for condition in conditions] == TYPES
    assert {condition.observedGeneration for condition in conditions} == {4}


def test_a_transition_is_timed_when_the_status_changes_and_not_when_reason_or_message_do() -> None:
    first = reported_status(3, pods(0, 3), DEPLOYING, now=NOW)
    second = reported_status(3, pods(1, 2, "ImagePullBackOff"), DEPLOYING, last=first, generation=2, now=LATER)
    assert condition_of(first, "Available") != condition_of(second, "Available")
    assert [condition.lastTransitionTime for condition in second.conditions or ()] == [NOW] * 6
    third = reported_status(3, pods(3), DEPLOYING, last=second, now=LATER)
    times = [condition.lastTransitionTime for condition in third.conditions or ()]
    assert times == [LATER, LATER, NOW, LATER, NOW, NOW]


def test_conditions_of_others_stay_as_they_came_and_where_they_were() -> None:
    foreign = [
        {"type": "example.com/Backed", "status": "Unknown", "reason": "Soon", "message": "", "lastTransitionTime": "t"},
        {"type": "Warm", "status": "True", "reason": "Yes", "message": "m", "lastTransitionTime": "t"},
    ]
    reported = {
        "type": "Progressing",
        "status": "True",
        "reason": "Deploying",
        "message": "",
        "lastTransitionTime": NOW,
    }
    last = decode_status(json.dumps({"conditions": [foreign[0], reported, foreign[1]]}).encode())
    patch = json.loads(msgspec.json.encode(status_patch(reported_status(3, last=last, now=LATER), last)))
    conditions = patch["conditions"]
    types = ["example.com/Backed", "Progressing", "Warm", "Available", "Degraded", "Ready", "Serving", "Discouraged"]
    assert [condition["type"] for condition in conditions] == types
    assert [conditions[0], conditions[2]] == foreign


# The image


OLD, OTHER = "registry.example.com/memcached:1", "registry.example.com/memcached:2"


def of_image(deployment: WorkloadRecord, image: str) -> WorkloadRecord:
    return msgspec.structs.replace(deployment, image=image)


def test_the_image_is_told_when_its_rollout_is_complete_and_until_then_the_one_before() -> None:
    unseen, seen, done = (
        deployment_of(generation=2, revised=True, image=OTHER, is_observed=is_observed, rolled_out=rolled_out)
        for is_observed, rolled_out in ((False, True), (True, False), (True, True))
    )
    status = reported_status(3, pods(1, 2), of_image(DEPLOYING, OLD))
    assert status.image is None
    joined_complaints = []
    observations = (
        (pods(3), of_image(ROLLED_OUT, OLD)),
        (pods(3), unseen),
        ([*pods(3), pod_of("x", template="b")], seen),
        (pods(3, template="b"), done),
    )
    for found, deployment in observations:
        before, status = status, reported_status(3, found, deployment, last=status)
        joined_complaints.append(status.image)
        assert status_patch(status, before).keys() != {"image"}, "it would be a write of its own"
    assert joined_complaints == [OLD, OLD, OLD, OTHER]


def test_without_a_deployment_the_image_stays_and_beside_a_foreign_one_there_is_none() -> None:
    running = reported_status(3, pods(3), of_image(ROLLED_OUT, OLD))
    assert reported_status(3, [], None, last=running).image == OLD
    foreign_workload = Problem(Reason.NOT_CONTROLLED, "It is somebody else's.")
    assert reported_status(3, [], None, last=running, problem=foreign_workload).image is None


def test_an_image_that_somebody_writes_into_the_deployment_is_not_told_before_pods_run_it() -> None:
    running = reported_status(3, pods(3), of_image(ROLLED_OUT, OLD))
    edited = deployment_of(generation=2, is_observed=False, rolled_out=True, image=OTHER)
    assert status_patch(reported_status(3, pods(3), edited, last=running), running) == {}


# What is written


def test_a_first_status_is_written_in_full() -> None:
    drains = (Drain("StatefulSet", 0, NOW),)
    servers = ListedServers("StatefulSet", (), drains)
    status = reported_status(
        0, deployment=of_image(ROLLED_OUT, OLD), servers=servers, service=NAME, pending_writes=("PodDisruptionBudget",)
    )
    assert status_patch(status, NEW).keys() == set(Status.__struct_fields__) - {
        "version",
        "recommendedMemory",
        "handover",
    }


@pytest.mark.parametrize("body", [b"", b"null", b'{"nodes": 3}', b'{"conditions": [{"status": "True"}]}', b"[]"])
def test_a_status_that_is_absent_or_cannot_be_read_counts_as_none_and_is_written_anew(body: bytes) -> None:
    assert decode_status(body) == NEW


def test_what_the_api_server_fills_in_until_the_first_write_counts_as_none_and_others_conditions_stay() -> None:
    audited = {"type": "Audited", "status": "True", "reason": "Pending", "message": "", "lastTransitionTime": NOW}
    assert decode_status(json.dumps(UNSEEN).encode()) == NEW
    assert reported_status(3, last=decode_status(json.dumps(UNSEEN).encode())) == reported_status(3)
    last = decode_status(json.dumps({"conditions": [*UNSEEN["conditions"], audited]}).encode())
    assert [each.type for each in last.conditions or ()] == ["Audited"]
    ready = {"type": "Ready", "status": "True", "reason": "AllServersReady", "message": "", "lastTransitionTime": NOW}
    last = decode_status(json.dumps({"conditions": [ready, audited, *UNSEEN["conditions"][1:]]}).encode())
    assert [each.type for each in last.conditions or ()] == ["Ready", "Audited"]


@pytest.mark.parametrize("phase", ['"Running"', "[" * 5000 + "]" * 5000], ids=["shallow", "deep"])
def test_fields_of_a_status_that_we_do_not_know_do_no_harm(phase: str) -> None:
    body = f'{{"nodes": ["a"], "phase": {phase}, "conditions": [{{"type": "T", "color": "red"}}]}}'.encode()
    assert decode_status(body) == Status(nodes=("a",), conditions=(Condition("T"),))


COMPLETED = {
    "all servers have come": (pods(0, 3), [], True),
    "the last server has become ready": (pods(3), pods(2, 1), True),
    "a server has become unready": (pods(2, 1), pods(3), False),
    "a server too many has gone": (pods(3), pods(4), True),
    "nothing but a message has changed": (pods(0, 3, "ImagePullBackOff"), pods(0, 3), False),
}


@pytest.mark.parametrize(("found", "before", "complete"), COMPLETED.values(), ids=COMPLETED)
def test_a_change_is_complete_when_its_servers_are_all_there_or_all_ready(
    found: list[PodRecord], before: list[PodRecord], complete: bool
) -> None:
    last = reported_status(3, before)
    assert is_complete(reported_status(3, found, last=last), last, 3) is complete
    assert not is_complete(reported_status(3, found, last=last), last, None), "without a readable size nothing ever is"


# What holds of every status

problems = st.sampled_from(["", "ImagePullBackOff", "Unschedulable: no node"])
templates, names = st.sampled_from("ab"), st.text("abc", min_size=1)
some_pod = st.builds(pod_of, names, ready=st.booleans(), problem=problems, template=templates)
some_pods = st.lists(some_pod, max_size=6, unique_by=lambda pod: pod.name)
some_deployments = st.none() | st.builds(
    deployment_of,
    generation=st.integers(1, 2),
    is_observed=st.booleans(),
    rolled_out=st.booleans(),
    create_failure=st.sampled_from(["", EXCEEDED]),
    deadline_exceeded=st.sampled_from(["", "has timed out progressing"]),
)
some_drain = st.builds(Drain, st.just("StatefulSet"), st.integers(0, 3), st.just(NOW))
some_drains = st.lists(some_drain, max_size=2, unique_by=lambda each: each.firstOrdinal).map(tuple)
# A certificate that expires between two reconciles is worth a write.
some_health = st.builds(
    ServerHealth,
    st.text("abc"),
    st.sampled_from(AnswerVerdict),
    st.just("why"),
    st.sampled_from(["", "1.6"]),
    st.none(),
)
some_troubles = st.none() | st.builds(
    Problem,
    st.sampled_from([Reason.NOT_CONTROLLED, Reason.INVALID_SPEC, Reason.FORBIDDEN, Reason.QUOTA_EXCEEDED]),
    st.just("in the way"),
)
observations = st.builds(
    Observation,
    st.just(NAME),
    st.integers(1, 3),
    st.builds(Spec, size=st.integers(0, 5)),
    st.just("Deployment"),
    st.builds(WorkloadResult, some_deployments),
    some_pods,
    st.none() | st.builds(ListedServers, st.just("Deployment"), st.tuples(st.text("abc")), some_drains),
    st.sampled_from(["", NAME]),
    some_troubles,
    st.sampled_from(["", "waiting"]),
    leaving=st.sampled_from([None, "StatefulSet"]),
    health=st.none() | st.lists(some_health),
)


@given(st.lists(observations, min_size=1, max_size=4))
def test_whatever_is_seen_the_schema_takes_the_status_and_a_second_reconcile_writes_nothing(
    seen: list[Observation],
) -> None:
    last = NEW
    for observed in seen:
        status = status_of(observed, last, NOW)
        written = merge_patch({}, msgspec.to_builtins(status))
        assert _problems_of(msgspec.json.encode(written)) == []
        conditions = status.conditions or ()
        assert [condition.type for condition in conditions] == TYPES
        assert all(condition.message and condition.reason in set(Reason) for condition in conditions)
        last = decode_status(msgspec.json.encode(status))
        assert status_patch(status_of(observed, last, LATER), last) == {}


def test_servers_drain_from_when_it_is_written_that_they_left_and_not_from_when_that_was_planned() -> None:
    planned = Drain("StatefulSet", 3, NOW)
    servers = ListedServers("StatefulSet", (), (planned,))
    observed = Observation(NAME, 1, Spec(size=3), "StatefulSet", WorkloadResult(), [], servers)
    first = status_of(observed, NEW, LATER)
    assert first.draining == (msgspec.structs.replace(planned, startTime=LATER),)
    again = msgspec.structs.replace(observed, servers=servers._replace(draining=first.draining))
    assert status_of(again, first, "2027-01-01T00:00:00Z").draining == first.draining
