"""Source outside of the cluster: a folder of folders of files, read again and again."""

import asyncio
from contextlib import suppress
from pathlib import Path

from operator_runtime import Channel

POLL_S = 1.0

Contents = dict[str, str] | str
"""The text of each file of a folder by the file's name; or in words why they cannot be read."""


class Folder:
    """Knows the files as they were read last, and sends the name of each folder that has changed to a channel.

    A service of the operator: it runs on each replica, so that one that begins to lead knows the files already.
    """

    def __init__(self, path: Path, changed: Channel[str]) -> None:
        self._path, self._changed = path, changed
        self._stopping = asyncio.Event()
        self._contents = _read(path)

    def contents(self, name: str) -> Contents:
        """Return the content of the folder of that name."""
        return self._contents.get(name, f"There is no folder {name} in {self._path}.")

    async def run(self) -> None:
        """Read again and again until `stop`."""
        while not self._stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), POLL_S)
            before, self._contents = self._contents, await asyncio.to_thread(_read, self._path)
            for name in before.keys() | self._contents.keys():
                if before.get(name) != self._contents.get(name):
                    self._changed.send(name)

    def stop(self) -> None:
        """Make `run` return."""
        self._stopping.set()


def _read(path: Path) -> dict[str, Contents]:
    return {each.name: _contents_of(each) for each in path.glob("[!.]*") if each.is_dir()}


def _contents_of(folder: Path) -> Contents:
    try:
        return {each.name: each.read_text("utf-8") for each in folder.glob("[!.]*") if each.is_file()}
    except (OSError, UnicodeError) as error:
        return f"The files of {folder.name} cannot be read: {error}"
