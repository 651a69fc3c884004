"""What the publisher is told beside what every operator is told."""

from typing import Annotated

from operator_runtime import RuntimeSettings, Setting


class Settings(RuntimeSettings, frozen=True):
    """Where the files are."""

    folder: Annotated[
        str,
        Setting(
            "Files",
            help="Folder whose subfolders are published.",
            why="Where the manifests mount it.",
            metavar="DIR",
            allowed="a folder's path",
        ),
    ] = "/publications"
