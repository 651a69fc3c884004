"""What the publisher is told beside what every operator is told."""

from typing import Annotated

from pydantic import Field

from operator_runtime import Knob, RuntimeConfig, RuntimeSettings


class Settings(RuntimeSettings):
    """Where the files are."""

    folder: Annotated[
        str,
        Field(description="Folder whose subfolders are published."),
        Knob("Files", why="Where the manifests mount it.", metavar="DIR", allowed="a folder's path"),
    ] = "/publications"


class Config(RuntimeConfig, frozen=True):
    """The same, as the operator's process takes it."""

    folder: str
