"""Pure: reports of a move to users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from memcached_operator.api.status import HandoverMove, MoveStep
from memcached_operator.features.handover.move.situation import Copied, Holder, MovingServer, NotMoved

UNDER_WAY: Final[Mapping[MoveStep | None, str]] = {
    None: "{0} is not replaced yet, as its items cannot move while clients may have the former list of servers.",
    MoveStep.PREPARING: "{0} is about to be replaced. {1}, which holds its items meanwhile, gets ready.",
    MoveStep.CONNECTING: "{0} is about to be replaced. It tells {1} of its writes.",
    MoveStep.COPYING: "{0} is about to be replaced. {1} copies its items.",
    MoveStep.CLOSING: "{0} is about to be replaced. It refuses writes, while {1} copies its last items.",
    MoveStep.REPLACING: "{0} is being replaced. {1} holds its items.",
    MoveStep.RESTORING: "{0} was replaced. It copies its items from {1}.",
    MoveStep.DISCONNECTING: "{1} holds the items of {0} no longer, and goes.",
}
"""The message of the condition Progressing, by the names of the server and of the holder's pod."""


_ALL: Final = Copied((0,))


_STEPS_OF_10: Final = 10
_ALL_OF: Final[Mapping[MoveStep, str]] = {
    MoveStep.COPYING: " {0} % of {1:,} items are there.",
    MoveStep.RESTORING: " {0} % of {1:,} items are back.",
}


def progress(
    status: HandoverMove,
    server: MovingServer | None,
    holder: Holder | None,
    carried: int,
    copied: Mapping[MoveStep, Copied],
) -> str:
    """The message while a move is under way, in steps of ten so that the status seldom changes.

    Args:
        server: that moves, or that has taken its place.
    """
    text = UNDER_WAY[status.step].format(status.server, status.holder)
    held = holder.server if holder is not None else None
    source = server if status.step is MoveStep.COPYING else held
    done = copied.get(status.step, Copied())
    if status.step in _ALL_OF and source is not None and source.items and not done.lacking:
        share = min(100, 100 * carried // source.items) // _STEPS_OF_10 * _STEPS_OF_10
        text += _ALL_OF[status.step].format(share, source.items)
    if server is not None and server.ending is not None:
        left_s = int(server.ending.left_s) // _STEPS_OF_10 * _STEPS_OF_10
        text += f" Its pod ends in {left_s} s at the latest."
    return text


def moved(server: str, copied: Mapping[MoveStep, Copied], seconds: float | None) -> str:
    """The note of the event at the end.

    Args:
        copied: by the step, as far as this leader copied them.
        seconds: that it took, None where that is not known.
    """
    items = max((each.items for each in copied.values()), default=0)
    ends = (copied.get(step, Copied()).lacking[-1:] for step in (MoveStep.CLOSING, MoveStep.RESTORING))
    lost = sum(map(sum, ends))
    count = f"{items:,} items" if items else "its items"
    but = f" but for {lost:,} that could not be copied" if lost else ""
    if not copied.get(MoveStep.COPYING, _ALL).is_near:
        but = " but for those that there was no time for"
    took = f" in {seconds:.0f} s" if seconds is not None else ""
    return f"{server} was replaced with {count}{but}{took}"


def not_moved(server: str, why: NotMoved) -> str:
    """The note of the event where a server is replaced without its items."""
    return f"The items of {server} do not move, as {why.value}"
