"""A registry on loopback: distribution's own, with its storage in a folder."""

from __future__ import annotations

import socket
import urllib.request
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self
from urllib.error import HTTPError

import yaml

from lab.node.namespace import Namespaces
from lab.process import Program
from lab.programs import go_tools
from operator_runtime.testing.waiting import eventually

_STORAGE = "storage"


class Registry:
    """A registry; a context manager. Images on it are named `localhost:PORT/…`, which clients ask by plain HTTP.

    Raises:
        BuildError: from the constructor, where it is not built and cannot be.
    """

    def __init__(self, folder: Path, port: int = 0, inside: Namespaces | None = None, accounts: str = "") -> None:
        """
        Args:
            folder: where it keeps what is pushed; several can serve one folder.
            port: on which it listens, 0 for any that is free.
            inside: the network namespace in which it listens, None for this machine's.
            accounts: lines of htpasswd with bcrypt, "" where it asks nobody for a login.
        """
        self.port = port or _free_port()
        self.storage = folder / _STORAGE
        self._inside = inside
        program = go_tools.build("registry")
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / f"config-{self.port}.yaml"
        storage = {"filesystem": {"rootdirectory": str(self.storage)}, "delete": {"enabled": True}}
        settings: dict[str, Any] = {"version": 0.1, "storage": storage, "http": {"addr": f"127.0.0.1:{self.port}"}}
        if accounts:
            passwords = folder / "htpasswd"
            passwords.write_text(accounts)
            settings["auth"] = {"htpasswd": {"realm": "registry", "path": str(passwords)}}
        config.write_text(yaml.safe_dump(settings))
        command = [str(program), "serve", str(config)]
        if inside is not None:
            command = inside.command(*command, only_network=True)
        self._program = Program(command, folder / "registry.log", name="registry")

    @property
    def host(self) -> str:
        """What names of its images begin with."""
        return f"localhost:{self.port}"

    def __enter__(self) -> Self:
        self._program.start()
        if self._inside is None:
            eventually(self._answers, bool)
        return self

    def __exit__(self, *_: object) -> None:
        self._program.kill()

    def _answers(self) -> bool:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v2/", timeout=5).close()
        except OSError as error:
            return isinstance(error, HTTPError) and error.code == HTTPStatus.UNAUTHORIZED
        return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
