"""Settings of the publisher in addition to those of every operator."""

from operator_runtime import RuntimeSettings, setting


class Settings(RuntimeSettings):
    """Settings of the publisher: where the files are."""

    folder: str = setting(
        "/publications",
        "Folder whose subfolders are published.",
        "Where the manifests mount it.",
        group="Files",
        metavar="DIR",
        allowed="a folder's path",
    )
