from typing import Annotated

from msgspec import Meta

from operator_runtime import RuntimeSettings, Setting


class SampleSettings(RuntimeSettings, frozen=True):
    """What this operator is told besides what any is."""

    parts: Annotated[
        int,
        Meta(ge=1, le=6),
        Setting("Samples", help="How many parts a sample has.", why="One each.", metavar="NUMBER"),
    ] = 2
