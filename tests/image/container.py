"""An image's files, and containers of it as a kubelet would run them: read-only root, no capability, no other user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from operator_runtime.testing.waiting import DEADLINE_S, until

# The kinds of capabilities that a process has, https://github.com/opencontainers/runtime-spec/blob/main/config.md
_CAPABILITIES = ("bounding", "effective", "inheritable", "permitted", "ambient")
_SERVICE_ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount"


def why_not() -> str | None:
    """Why no container runs here, or None."""
    if os.geteuid() != 0:
        return "containers are started by runc as root"
    return None if shutil.which("runc") else "there is no runc to run containers with"


@dataclass(frozen=True, slots=True)
class Image:
    """An unpacked docker-archive."""

    folder: Path
    names: Sequence[str]
    config: Mapping[str, Any]
    """What a container does unless it is told otherwise: ``User``, ``Env``, ``Entrypoint`` and so on."""
    size: int
    """Bytes of its layers, not compressed."""

    @property
    def root(self) -> Path:
        """Its files."""
        return self.folder / "rootfs"

    def start(
        self,
        *arguments: str,
        entrypoint: Sequence[str] | None = None,
        account_dir: Path | None = None,
        **variables: str,
    ) -> Container:
        """Start a container on the machine's own network, whose output comes together.

        Args:
            arguments: after the image's entrypoint, in the place of its command.
            entrypoint: in the place of the image's.
            account_dir: a service account's token and CA, to be where a pod has them.
        """
        words = [*(self.config["Entrypoint"] or () if entrypoint is None else entrypoint)]
        words += arguments or self.config.get("Cmd") or ()
        return Container(self, words, account_dir, variables)

    def run(self, *arguments: str, entrypoint: Sequence[str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run a container to its end."""
        with self.start(*arguments, entrypoint=entrypoint) as container:
            output = container.wait()
        return subprocess.CompletedProcess(arguments, container.returncode, output)

    def python(self, code: str) -> str:
        """What a piece of Python prints in a container; it must not fail."""
        finished = self.run("-c", code, entrypoint=["python"])
        assert finished.returncode == 0, finished.stdout
        return finished.stdout


def unpack(archive: Path, folder: Path) -> Image:
    """Unpack an image for :meth:`Image.start`, as root."""
    with tarfile.open(archive) as outer:
        outer.extractall(folder, filter="data")
    (manifest,) = json.loads((folder / "manifest.json").read_text())
    document = json.loads((folder / manifest["Config"]).read_text())
    layers = [folder / name for name in manifest["Layers"]]
    image = Image(folder, manifest["RepoTags"], document["config"], sum(layer.stat().st_size for layer in layers))
    image.root.mkdir()
    for layer in layers:
        subprocess.run(["tar", "-xpf", layer, "--same-owner", "-C", image.root], check=True)
        layer.unlink()
    assert not list(image.root.rglob(".wh.*")), "a layer removes files, which this does not know how to do"
    return image


def contents(archive: Path) -> dict[str, tuple[object, ...]]:
    """What lies under each path of an image's layers, and how, but for times."""
    found: dict[str, tuple[object, ...]] = {}
    with tarfile.open(archive) as outer:
        (manifest,) = json.loads(_read(outer, "manifest.json"))
        for name in manifest["Layers"]:
            with tarfile.open(fileobj=outer.extractfile(name)) as layer:
                for entry in layer:
                    content = entry.linkname or (_read(layer, entry) if entry.isfile() else b"")
                    found[entry.name] = (entry.type, entry.mode, entry.uid, entry.gid, content)
    return found


def _read(archive: tarfile.TarFile, member: str | tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None
    return file.read()


class Container:
    """A running container; a context manager that ends it."""

    def __init__(
        self, image: Image, words: Sequence[str], account_dir: Path | None, variables: Mapping[str, str]
    ) -> None:
        self._name = f"memcached-operator-test-{uuid.uuid4().hex[:10]}"
        self._bundle = image.folder / self._name
        self._bundle.mkdir()
        self._state = ("runc", "--root", str(image.folder / "runc"))
        specification = _specification(image, words, account_dir, variables)
        (self._bundle / "config.json").write_text(json.dumps(specification))
        self._log = self._bundle / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*self._state, "run", "--bundle", self._bundle, self._name],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            subprocess.run([*self._state, "kill", self._name, "KILL"], capture_output=True, check=False)
            self._process.wait(DEADLINE_S)
        subprocess.run([*self._state, "delete", "--force", self._name], capture_output=True, check=False)

    @property
    def log(self) -> str:
        """What it has written."""
        return self._log.read_text(errors="replace")

    @property
    def returncode(self) -> int:
        """Its exit code, once it has ended."""
        code = self._process.poll()
        assert code is not None, "it is running"
        return code

    def send(self, signal_name: str) -> None:
        """Send its first process a signal, once it is there."""
        kill = [*self._state, "kill", self._name, signal_name]
        until(
            f"{signal_name} cannot be sent",
            lambda: subprocess.run(kill, capture_output=True, check=False).returncode == 0,
        )

    def wait(self) -> str:
        """Wait until it has ended; what it wrote."""
        try:
            self._process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end. Its log:\n{self.log}") from None
        return self.log


def _specification(
    image: Image, words: Sequence[str], account_dir: Path | None, variables: Mapping[str, str]
) -> dict[str, Any]:
    user, _, group = image.config["User"].partition(":")
    mounts: list[dict[str, Any]] = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
    ]
    if account_dir is not None:
        mounts.append(
            {
                "destination": _SERVICE_ACCOUNT_DIR,
                "type": "bind",
                "source": str(account_dir),
                "options": ["rbind", "ro", "nosuid", "nodev", "noexec"],
            }
        )
    return {
        "ociVersion": "1.0.2",
        "root": {"path": str(image.root), "readonly": True},
        "process": {
            "args": list(words),
            "cwd": image.config["WorkingDir"] or "/",
            "env": [*image.config["Env"], *(f"{name}={value}" for name, value in variables.items())],
            "user": {"uid": int(user or 0), "gid": int(group or user or 0)},
            "capabilities": {kind: [] for kind in _CAPABILITIES},
            "noNewPrivileges": True,
        },
        "mounts": mounts,
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount")]},
    }
