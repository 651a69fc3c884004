from typing import Annotated

from pydantic import Field

from operator_runtime import Knob, RuntimeSettings


class KettleSettings(RuntimeSettings):
    """What this operator is told besides what any is."""

    cups: Annotated[
        int,
        Field(ge=1, le=6, description="How many cups a kettle makes."),
        Knob("Tea", why="One each.", metavar="NUMBER"),
    ] = 2
