from typing import Annotated

from msgspec import Meta

from operator_runtime import RuntimeSettings, Setting


class KettleSettings(RuntimeSettings, frozen=True):
    """What this operator is told besides what any is."""

    cups: Annotated[
        int,
        Meta(ge=1, le=6),
        Setting("Tea", help="How many cups a kettle makes.", why="One each.", metavar="NUMBER"),
    ] = 2
