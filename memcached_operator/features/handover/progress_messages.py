"""Reports of a hand-over to users: its progress, its condition and events, and the reason where there was none."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from memcached_operator.api.status import HANDING_OVER, HandoverStatus, HandoverStep, Problem, Reason, first_names
from memcached_operator.features.handover.situation import (
    MARKER_TTL_S,
    Action,
    Awaited,
    GivenUp,
    GiveUp,
    HandoverWait,
    Situation,
    former_clients_s,
    published_s,
)
from operator_runtime import Condition, rfc3339

EVENTS: Final[Mapping[HandoverStep, str]] = {
    HandoverStep.PREPARING: "Preparing a hand-over: the list changes once every server has all others as peers",
    HandoverStep.CONNECTING: "Every server gets all others as peers",
    HandoverStep.PUBLISHED: "The list of servers has changed; servers fill themselves from each other",
    HandoverStep.DISCONNECTING: "Servers stop filling themselves from each other",
    HandoverStep.COMPLETE: "The hand-over has ended",
}
"""The note of the event of each step, and the message of the condition meanwhile."""
_ANEW: Final = "clients get the time of spec.handover.periodSeconds anew to follow the list"
RESUMED: Final[Mapping[HandoverStep, str]] = {
    HandoverStep.PUBLISHED: "Another client changed status.handover while servers fill themselves from each other: "
    f"{_ANEW}",
    HandoverStep.COMPLETE: f"Another client changed status.handover: {_ANEW}",
}
"""The note of the event where the status is not what the operator wrote, by the step that follows."""
NO_HANDOVER_UNDER_WAY: Final = Condition(HANDING_OVER, "False", Reason.COMPLETE, "No hand-over is under way.")


def handing_over(action: Action, state: HandoverStatus | None, situation: Situation) -> Condition | None:
    """The condition HandingOver, None where no hand-over is desired or in the status."""
    if state is None or state.step is HandoverStep.COMPLETE:
        is_there = state is not None or situation.for_s is not None
        return NO_HANDOVER_UNDER_WAY if is_there else None
    now = situation.now
    message = f"{EVENTS[state.step]}."
    match action:
        case HandoverWait(why=Awaited.SERVERS, names=names):
            message = f"The list of servers does not change until these are ready: {first_names(names)}."
        case HandoverWait(why=Awaited.FORMER_CLIENTS, requeue_s=left_s) if left_s > MARKER_TTL_S:
            ends = _clock(now, left_s)
            message = (
                f"The list of servers does not change before {ends}, as clients may have the former list until then."
            )
        case _ if state.step is HandoverStep.PUBLISHED and situation.for_s is not None:
            ends = _clock(now, published_s(state, situation.for_s, now))
            message = f"Servers fill themselves from each other until {ends}."
    return Condition(HANDING_OVER, "True", Reason(state.step), message)


def advice(situation: Situation, state: HandoverStatus | None, given_up: GiveUp | None) -> tuple[Problem, ...]:
    """Reason for which the list changes without a hand-over, or did so lately."""
    if situation.for_s is None:
        return ()
    if names := [each.name for each in situation.servers if each.unsupported]:
        message = (
            f"{first_names(names)} {GivenUp.UNSUPPORTED.value}: the list of servers changes without a hand-over. Set "
            "spec.image to such an image, or omit spec.handover."
        )
        return (Problem(Reason.HANDOVER_UNAVAILABLE, message),)
    if given_up is None or state is None or (left_s := former_clients_s(state, situation.now)) <= 0.0:
        return ()
    message = (
        f"The list of servers changed without a hand-over, as {first_names(given_up.names)} "
        f"{given_up.why.value}. Clients may have the former list until {_clock(situation.now, left_s)}."
    )
    return (Problem(Reason.HANDOVER_UNAVAILABLE, message),)


def _clock(now: datetime, left_s: float) -> str:
    """The time of day after so many seconds, to the nearest second."""
    return rfc3339(now + timedelta(seconds=left_s + 0.5)).partition("T")[2]
