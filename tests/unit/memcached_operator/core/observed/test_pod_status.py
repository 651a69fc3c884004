"""Why a server's memcached does not run, and whether it ever did, as tables of pods' statuses."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from memcached_operator.core.observed.pod_status import (
    NO_PROBLEM,
    PodCondition,
    PodProblem,
    PodStatus,
    failure_of,
    is_down,
    problem_of,
    wait_of,
)

Json = dict[str, Any]
RUNS: Json = {"running": {}}
DONE: Json = {"terminated": {"reason": "Completed", "exitCode": 0}}
FAILED: Json = {"terminated": {"reason": "Error", "exitCode": 1}}
NO_SECRET = 'secret "exporter" not found'


def waits(reason: str, message: str = "") -> Json:
    return {"waiting": {"reason": reason, "message": message}}


CREATED, INITIALIZED = waits("ContainerCreating"), waits("PodInitializing")
PULLS = waits("ErrImagePull", 'failed to pull "exporter:x" after 1.2 s')


def status(
    memcached: Json | None = None,
    *,
    inits: Json | None = None,
    sidecars: Json | None = None,
    sandbox: str = "",
    **own: Any,
) -> PodStatus:
    """Of a pod on a node.

    Args:
        memcached: state of its container, None before its node told of it.
        inits, beside: states of other containers, by their names.
        sandbox: whether its volumes and its network are ready, "" where its node does not say.
        own: more of memcached's container.
    """
    conditions = [{"type": "PodScheduled", "status": "True"}]
    conditions += [{"type": "PodReadyToStartContainers", "status": sandbox}] if sandbox else []
    containers = [{"name": name, "state": state} for name, state in (sidecars or {}).items()]
    if memcached is not None:
        containers.insert(0, {"name": "memcached", "state": memcached, **own})
    reported = {
        "phase": "Pending",
        "conditions": conditions,
        "containerStatuses": containers,
        "initContainerStatuses": [
            {"name": name, "state": state, "started": state is RUNS} for name, state in (inits or {}).items()
        ],
    }
    return msgspec.convert(reported, PodStatus)


@pytest.mark.parametrize(
    ("found", "problem", "down"),
    [
        (status(waits("ImagePullBackOff")), "ImagePullBackOff", True),
        # Another container keeps memcached from starting.
        (status(INITIALIZED, inits={"fetch": PULLS}), "ImagePullBackOff of the container fetch", True),
        (status(INITIALIZED, inits={"fetch": FAILED}), "Error of the container fetch", True),
        (
            status(INITIALIZED, inits={"fetch": waits("CrashLoopBackOff")}),
            "CrashLoopBackOff of the container fetch",
            True,
        ),
        (status(INITIALIZED, inits={"a": DONE, "b": PULLS}), "ImagePullBackOff of the container b", True),
        (status(CREATED, sidecars={"exporter": PULLS}), "ImagePullBackOff of the container exporter", True),
        # What its node says of a Secret or a ConfigMap that a variable names.
        (status(waits("CreateContainerConfigError", NO_SECRET)), f"CreateContainerConfigError: {NO_SECRET}", True),
        (
            status(INITIALIZED, inits={"fetch": waits("CreateContainerConfigError", NO_SECRET)}),
            f"CreateContainerConfigError of the container fetch: {NO_SECRET}",
            True,
        ),
        # It runs beside one that does not.
        (status(RUNS, sidecars={"exporter": PULLS}), "ImagePullBackOff of the container exporter", False),
        # It is on its way for the first time, and has no keys.
        (status(), "", True),
        (status(CREATED), "", True),
        (status(INITIALIZED, inits={"fetch": RUNS}), "", True),
        # It is on its way again, in a pod where it has run.
        (status(CREATED, restartCount=1), "", False),
        (status(CREATED, lastState=FAILED), "", False),
        (status(RUNS, inits={"fetch": DONE, "reloader": RUNS}), "", False),
    ],
)
def test_what_keeps_memcached_from_running_is_named_and_one_that_never_ran_has_no_keys(
    found: PodStatus, problem: str, down: bool
) -> None:
    assert (str(problem_of(found)), is_down(found)) == (problem, down)


@pytest.mark.parametrize(
    ("found", "begins", "names"),
    [
        (status(CREATED, sandbox="False"), "ContainerCreating", "its volumes or its network"),
        (
            status(INITIALIZED, inits={"fetch": INITIALIZED}, sandbox="False"),
            "ContainerCreating",
            "Secret or ConfigMap",
        ),
        (status(CREATED, sandbox="True"), "ContainerCreating", "its image is being pulled"),
        (status(CREATED), "ContainerCreating", "or its image is being pulled; the events of"),
        (status(), "ContainerCreating", "events"),
        (
            status(INITIALIZED, inits={"a": DONE, "fetch": {"running": {}}}),
            "PodInitializing",
            "waits for the container fetch",
        ),
        (status(RUNS, sandbox="True"), "", ""),
        (status(FAILED), "", ""),
        (msgspec.convert({"phase": "Pending"}, PodStatus), "", ""),
    ],
)
def test_what_a_server_waits_for_that_is_on_its_way_is_known_for_when_it_takes_long(
    found: PodStatus, begins: str, names: str
) -> None:
    assert wait_of(found).reason == begins
    assert names in str(wait_of(found))


GATE = "cloud.example.com/neg"
GATED = f'the status of pod readiness gate "{GATE}" is not "True", but False'


@pytest.mark.parametrize(
    ("reason", "message", "others", "wait"),
    [
        ("", "", {}, ""),
        (
            "ContainersNotReady",
            "containers with unready status: [exporter]",
            {"example.com/Problem": "none"},
            "ContainersNotReady: containers with unready status: [exporter]",
        ),
        ("ReadinessGatesNotReady", GATED, {}, f"ReadinessGatesNotReady: {GATED}"),
        ("ReadinessGatesNotReady", GATED, {GATE: "no endpoint"}, "NotYet: no endpoint"),
    ],
)
def test_what_a_server_waits_for_whose_memcached_runs_is_said_by_its_gate_or_its_node(
    reason: str, message: str, others: dict[str, str], wait: str
) -> None:
    found = status(RUNS)
    reported = [{"type": "Ready", "status": "False", "reason": reason, "message": message}]
    reported += [
        {"type": type_, "status": "False", "reason": "NotYet", "message": text} for type_, text in others.items()
    ]
    conditions = msgspec.convert(reported, list[PodCondition])
    assert str(wait_of(msgspec.structs.replace(found, conditions=[*(found.conditions or ()), *conditions]))) == wait


@pytest.mark.parametrize(
    ("reported", "failure"),
    [
        (
            {
                "phase": "Failed",
                "reason": "OutOfmemory",
                "message": "Pod was rejected: Node didn't have enough resource",
            },
            "OutOfmemory: Pod was rejected: Node didn't have enough resource",
        ),
        (
            {
                "phase": "Failed",
                "conditions": [
                    {"type": "Ready", "status": "False", "reason": "PodFailed"},
                    {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC", "message": "no node"},
                ],
            },
            "DeletionByPodGC: no node",
        ),
        ({"phase": "Failed", "message": "so it is"}, "Failed: so it is"),
        ({"phase": "Running", "reason": "NodeLost", "message": "x"}, ""),
        ({"phase": "Failed", "reason": "Evicted", "message": "x" * 999}, f"Evicted: {'x' * 291}"),
    ],
)
def test_why_a_pod_has_failed_is_said_by_its_own_status(reported: Json, failure: str) -> None:
    assert str(failure_of(msgspec.convert(reported, PodStatus))) == failure


@pytest.mark.parametrize(
    ("problem", "text", "passes"),
    [
        (PodProblem("ImagePullBackOff", container="exporter"), "ImagePullBackOff of the container exporter", False),
        (PodProblem("Unschedulable", "0/3 nodes are available"), "Unschedulable: 0/3 nodes are available", True),
        (PodProblem("SecretNotFound", "there is no Secret a"), "SecretNotFound: there is no Secret a", False),
        (PodProblem("Error", "it is so", "exporter"), "Error of the container exporter: it is so", False),
        (NO_PROBLEM, "", False),
    ],
)
def test_a_problem_reads_as_its_reason_whose_it_is_and_a_message(problem: PodProblem, text: str, passes: bool) -> None:
    assert (str(problem), problem.may_pass, bool(problem)) == (text, passes, bool(text))


def test_a_long_problem_is_cut_at_its_message() -> None:
    problem = PodProblem("Error", "no: " + "a" * 99, "exporter")
    assert str(problem.cut(40)) == str(problem)[:40]
    assert str(problem.cut(36)) == "Error of the container exporter: no", "not in the middle of nothing"
    assert problem.cut(999) == problem
