"""docs/api.md, and whether the code does what it says of reasons."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from memcached_operator.memcached.asking.answers import Heard, Verdict
from memcached_operator.memcached.asking.certificates import Certificate, Shown
from memcached_operator.memcached.changing.rollout import Rollout
from memcached_operator.memcached.reference import CONDITIONS, REASONS, api_reference
from memcached_operator.memcached.state import Problem, Reason
from tests.unit.memcached_operator.memcached.status_support import (
    DEPLOYING,
    EXCEEDED,
    FRESH,
    NEW,
    ROLLED_OUT,
    SCALED,
    UPDATED,
    look,
    pods,
)
from tests.unit.memcached_operator.memcached.support import deployment_of

DOCS = Path(__file__).parents[4] / "docs"
TOLD = {(bearing.type, bearing.status, str(reason)) for reason, told in REASONS.items() for bearing in told.bearings}


def test_the_page_is_up_to_date() -> None:
    assert (DOCS / "api.md").read_bytes() == api_reference().encode(), "run: ./dev api-docs"


def test_every_reason_is_told() -> None:
    assert set(REASONS) == set(Reason)
    page = api_reference()
    assert all(f"| `{reason}` |" in page for reason in Reason)


def test_each_reason_stands_where_the_page_says_and_nowhere_else() -> None:
    deployments = [
        None,
        FRESH,
        DEPLOYING,
        ROLLED_OUT,
        SCALED,
        UPDATED,
        deployment_of(deadline_exceeded="too late"),
        deployment_of(create_failure=EXCEEDED),
        deployment_of(create_failure="not allowed"),
    ]
    # What bears a problem's reason in the reconciler.
    # A stalled deletion is a problem of what is being deleted alone.
    troubles = {
        terminating: [
            None,
            *(
                Problem(reason, "words")
                for reason in Reason
                if ("Progressing", "False", reason) in TOLD
                and reason not in (Reason.COMPLETE, Reason.DEADLINE_EXCEEDED, Reason.ROLLOUT_PAUSED)
            ),
            Problem(Reason.CONFLICTING_DISRUPTION_BUDGET, "words", blocking=False),
            Problem(Reason.ROLLOUT_STUCK, "words", blocking=False),
            Problem(Reason.SECRET_NOT_FOUND, "words", blocking=False),
            Problem(Reason.CERTIFICATE_INVALID, "words", blocking=False),
            Problem(Reason.PASSWORDS_INVALID, "words", blocking=False),
            Problem(Reason.RELOAD_UNSUPPORTED, "words", blocking=False),
            *([Problem(Reason.TERMINATION_STALLED, "words")] if terminating else []),
        ]
        for terminating in ("", "Waiting.")
    }
    found = [pods(0), pods(3), pods(2, 1), pods(1) + pods(1, template="b")]
    before = [NEW, look(3, pods(3))]
    seen = {
        (condition.type, condition.status, condition.reason)
        for terminating in troubles
        for size, deployment, problem, there, last in itertools.product(
            (None, 0, 3), deployments, troubles[terminating], found, before
        )
        # A specification that cannot be read is a problem by itself.
        if size is not None or (problem is not None and problem.reason is Reason.INVALID_SPEC)
        for condition in look(size, there, deployment, problem=problem, last=last, terminating=terminating).conditions
        or ()
    }
    beside = [
        look(3, pods(3), waiting="The Service is being deleted."),
        look(3, pods(3), leaving="StatefulSet"),
        look(3, pods(3), rollout=Rollout(stale=1), paused=True),
        *(
            look(3, pods(3), advice=[Problem(reason, "words")])
            for reason in Reason
            if ("Discouraged", "True", reason) in TOLD
        ),
    ]
    beside += [look(3, pods(3), heard=[Heard("a", verdict)]) for verdict in Verdict]
    old, new = Certificate("old", 0.0, 1e10), Certificate("new", 1.0, 1e10)
    for certificates in ((old, new), (Certificate("expired", 0.0, 1.0),)):
        heard = [Heard(each.fingerprint, Verdict.ANSWERING, shown=Shown(each, 0.0)) for each in certificates]
        beside.append(look(3, pods(3), heard=heard))
    seen |= {(each.type, each.status, each.reason) for status in beside for each in status.conditions or ()}
    # The API server says it, and nothing that is observed.
    assert seen | {("Ready", "Unknown", Reason.PENDING)} == TOLD


def test_the_tables_for_users_say_the_same() -> None:
    conditions = (DOCS / "conditions.md").read_text()
    said = set()
    for type_ in CONDITIONS:
        _, _, part = conditions.partition(f"\n### {type_}: {CONDITIONS[type_].lower()[0]}")
        for row in part.partition("\n#")[0].splitlines():
            if match := re.match(r"\| (True|False|Unknown) \| ([^|]+) \|", row):
                said |= {(type_, match[1], reason) for reason in re.findall(r"`(\w+)`", match[2])}
    assert said == TOLD
