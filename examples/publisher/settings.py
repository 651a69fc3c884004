"""Settings of the publisher in addition to those of every operator."""

from typing import Annotated

from operator_runtime import RuntimeSettings, Setting


class Settings(RuntimeSettings, frozen=True):
    """Settings of the publisher: where the files are."""

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
