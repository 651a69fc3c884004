"""What is told of a move while it is under way, and at its end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memcached_operator.api.status import HandoverMove, MoveStep
from memcached_operator.features.handover.move.move_messages import UNDER_WAY, moved, progress
from memcached_operator.features.handover.move.situation import Copied, Ending, Holder
from tests.unit.memcached_operator.features.handover.test_move_steps import holder, old

COPYING, CLOSING, RESTORING = MoveStep.COPYING, MoveStep.CLOSING, MoveStep.RESTORING


@pytest.mark.parametrize(
    ("step", "carried", "copied", "more"),
    [
        (COPYING, 0, {}, " 0 % of 1,204,000 items are there. Its pod ends in 210 s at the latest."),
        (COPYING, 740_000, {}, " 60 % of 1,204,000 items are there. Its pod ends in 210 s at the latest."),
        (COPYING, 9_999_999, {}, " 100 % of 1,204,000 items are there. Its pod ends in 210 s at the latest."),
        (COPYING, 9, {COPYING: Copied((900,))}, " Its pod ends in 210 s at the latest."),
        (CLOSING, 9, {}, " Its pod ends in 210 s at the latest."),
    ],
)
def test_progress_changes_seldom(step: MoveStep, carried: int, copied: dict[MoveStep, Copied], more: str) -> None:
    server = replace(old(), items=1_204_000, ending=Ending(219.0, 300.0))
    text = progress(HandoverMove("a-1", "h-0", step, ""), server, holder(), carried, copied)
    assert text == UNDER_WAY[step].format("a-1", "h-0") + more


def test_what_is_copied_back_is_of_the_holder() -> None:
    found = holder()
    assert found.server is not None
    held: Holder = replace(found, server=replace(found.server, items=2000))
    text = progress(HandoverMove("a-1", "h-0", RESTORING, ""), old(), held, 1999, {})
    assert text == "a-1 was replaced. It copies its items from h-0. 90 % of 2,000 items are back."


@pytest.mark.parametrize(
    ("copied", "note"),
    [
        ({COPYING: Copied((900, 3), 1000), CLOSING: Copied((0,), 1001)}, "with 1,001 items in 9 s"),
        ({}, "with its items in 9 s"),
        ({CLOSING: Copied((4,), 1001)}, "with 1,001 items but for 4 that could not be copied in 9 s"),
        ({COPYING: Copied(is_running=True)}, "with its items but for those that there was no time for in 9 s"),
    ],
)
def test_the_end_says_what_is_missing(copied: dict[MoveStep, Copied], note: str) -> None:
    assert moved("a-1", copied, 9.2) == f"a-1 was replaced {note}"
