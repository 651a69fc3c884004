"""docs/api.md, and whether the code does what it says of reasons."""

from __future__ import annotations

import itertools
import re
from datetime import datetime
from pathlib import Path

from lab.packaging.api_reference import CONDITIONS, REASONS, api_reference
from memcached_operator.api.status import OWNED_CONDITIONS, HandoverStatus, HandoverStep, Problem, Reason
from memcached_operator.api.v1alpha1 import MemoryScaling
from memcached_operator.core.outcome import Blocked
from memcached_operator.core.rollout.next_step import RolloutProgress
from memcached_operator.features.handover.progress_messages import handing_over
from memcached_operator.features.handover.situation import Nothing, Situation
from memcached_operator.features.memory_scaling.retaining_condition import Scaling
from memcached_operator.features.memory_scaling.scaling_decision import (
    AtMaximum,
    Decision,
    Grow,
    Observing,
    Retained,
    ScalingWait,
)
from memcached_operator.servers.certificates import Certificate, Shown
from memcached_operator.servers.stats_cache import AnswerVerdict, ServerHealth
from tests.unit.memcached_operator.status_support import (
    DEPLOYING,
    EXCEEDED,
    FRESH,
    NEW,
    NOW,
    ROLLED_OUT,
    SCALED,
    UPDATED,
    pods,
    reported_status,
)
from tests.unit.memcached_operator.support import deployment_of

DOCS = Path(__file__).parents[4] / "docs"
REPORTED = {
    (bearing.type, bearing.status, str(reason)) for reason, meaning in REASONS.items() for bearing in meaning.bearings
}


def test_the_page_is_up_to_date() -> None:
    assert (DOCS / "api.md").read_bytes() == api_reference().encode(), "run: ./dev api-docs"


def test_every_reason_is_told() -> None:
    assert set(REASONS) == set(Reason)
    page = api_reference()
    assert all(f"| `{reason}` |" in page for reason in Reason)


DEPLOYMENTS = [
    *(None, FRESH, DEPLOYING, ROLLED_OUT, SCALED, UPDATED, deployment_of(deadline_exceeded="too late")),
    *(deployment_of(create_failure=each) for each in (EXCEEDED, "not allowed")),
]
# What bears a problem's reason in the reconciler.
BLOCKING = [
    Problem(reason, "words")
    for reason in set(Reason) - {Reason.COMPLETE, Reason.DEADLINE_EXCEEDED, Reason.ROLLOUT_PAUSED}
    if ("Progressing", "False", reason) in REPORTED
]
AUXILIARY = [
    Problem(reason, "words", blocking=False)
    for reason in (
        *(
            Reason.CONFLICTING_DISRUPTION_BUDGET,
            Reason.OPERATOR_IMAGE_UNKNOWN,
            Reason.ENDPOINT_NOT_READY,
            Reason.ROLLOUT_STUCK,
            Reason.SECRET_NOT_FOUND,
        ),
        *(Reason.CERTIFICATE_INVALID, Reason.PASSWORDS_INVALID, Reason.RELOAD_UNSUPPORTED),
        *(Reason.RELOAD_FAILED, Reason.MEMORY_LIMITED),
    )
]
# A stalled deletion is a problem of what is being deleted alone.
TROUBLES = [
    *(("", each) for each in (None, *BLOCKING, *AUXILIARY)),
    *(("Waiting.", each) for each in (None, *BLOCKING, *AUXILIARY, Problem(Reason.TERMINATION_STALLED, "words"))),
]


def test_each_reason_stands_where_the_page_says_and_nowhere_else() -> None:
    found = [pods(0), pods(3), pods(2, 1), pods(1) + pods(1, template="b")]
    statuses = [
        reported_status(size, there, deployment, problem=problem, last=last, terminating=terminating)
        for size, deployment, (terminating, problem), there, last in itertools.product(
            (None, 0, 3), DEPLOYMENTS, TROUBLES, found, (NEW, reported_status(3, pods(3)))
        )
        # A specification that cannot be read is a problem by itself.
        if size is not None or (problem is not None and problem.reason is Reason.INVALID_SPEC)
    ]
    statuses += [
        reported_status(3, pods(3), waiting="The Service is being deleted."),
        reported_status(3, pods(3), leaving="StatefulSet"),
    ]
    statuses.append(reported_status(3, pods(3), rollout=RolloutProgress(stale=1), paused=True))
    statuses.append(reported_status(3, pods(3), moving="a-1 is about to be replaced."))
    discouraged = [reason for reason in Reason if ("Discouraged", "True", reason) in REPORTED]
    statuses += [reported_status(3, pods(3), advice=[Problem(reason, "words")]) for reason in discouraged]
    statuses += [reported_status(3, pods(3), health=[ServerHealth("a", verdict)]) for verdict in AnswerVerdict]
    statuses.append(reported_status(3, pods(3), health=[ServerHealth("a", AnswerVerdict.ANSWERING, disk="slow")]))
    old, new = Certificate("old", 0.0, 1e10), Certificate("new", 1.0, 1e10)
    for certificates in ((old, new), (Certificate("expired", 0.0, 1.0),)):
        health = [
            ServerHealth(each.fingerprint, AnswerVerdict.ANSWERING, shown=Shown(each, 0.0)) for each in certificates
        ]
        statuses.append(reported_status(3, pods(3), health=health))
    situation = Situation(None, 3, frozenset(), (), None, datetime.fromisoformat(NOW))
    steps = [handing_over(Nothing(), HandoverStatus(each, NOW), situation) for each in HandoverStep]
    statuses += [reported_status(3, pods(3), handing_over=each) for each in steps]
    scaling = MemoryScaling(max="1Gi")
    problems = [Problem(reason, "words") for reason in (Reason.RESIZE_IMPOSSIBLE, Reason.QUOTA_EXCEEDED)]
    blocked = [Blocked(each, 64) for each in problems]
    waiting, grow = ScalingWait(1, 2, is_rolling=False), Grow(64, 80, 60.0)
    decisions: list[Decision] = [
        Observing(),
        Retained(),
        Retained(is_unused=True),
        grow,
        waiting,
        AtMaximum(),
        *blocked,
    ]
    for decision in decisions:
        scaled = Scaling(scaling, decision, "64Mi")
        statuses += [
            reported_status(3, pods(3), health=None, scaling=scaled),
            reported_status(3, pods(3), health=[], scaling=scaled),
        ]
        statuses += [
            reported_status(3, pods(3), health=[ServerHealth("a", each)], scaling=scaled) for each in AnswerVerdict
        ]
    seen = {(each.type, each.status, each.reason) for status in statuses for each in status.conditions or ()}
    # The API server says it, and nothing that is observed.
    assert seen | {(type_, "Unknown", Reason.PENDING) for type_ in OWNED_CONDITIONS} == REPORTED


def test_the_tables_for_users_say_the_same() -> None:
    conditions = (DOCS / "conditions.md").read_text()
    documented = set()
    for type_ in CONDITIONS:
        question = CONDITIONS[type_]
        _, _, part = conditions.partition(f"\n### {type_}: {question[0].lower()}{question[1:]}\n")
        for row in part.partition("\n#")[0].splitlines():
            if match := re.match(r"\| (True|False|Unknown) \| ([^|]+) \|", row):
                documented |= {(type_, match[1], reason) for reason in re.findall(r"`(\w+)`", match[2])}
    assert documented == REPORTED
