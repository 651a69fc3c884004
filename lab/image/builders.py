"""docker, podman or buildah: whichever builds images on this machine, with one set of calls."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

PROGRAMS = ("docker", "podman", "buildah")
# Names one of them where several are there.
VARIABLE = "IMAGE_BUILDER"

_LIVENESS_DEADLINE_S = 20.0


class ImageError(Exception):
    """An image could not be built, found or sent; the message carries the builder's words, or says what to do."""


@dataclass(frozen=True, slots=True)
class Builder:
    """One of the programs, with the store of images that it is pointed at."""

    name: str
    options: tuple[str, ...] = ()
    """Before the command: where its store is."""

    def build(
        self,
        context: Path,
        image: str,
        *,
        arguments: Mapping[str, str],
        secrets: Mapping[str, Path],
        cached: bool = True,
        more: Sequence[str] = (),
    ) -> None:
        """Build the Dockerfile of a folder.

        Args:
            arguments: values of its ARGs.
            secrets: files for its mounts of type secret, by id.
            cached: whether steps of earlier builds are used again, which takes a layer for each step.
            more: options of the builder's own.
        """
        command = [self.name, *self.options, "build"]
        if self.name == "buildah":
            # Works as root and not, in a container and not: no step here needs more to be apart than its files.
            command += ["--isolation", "chroot", f"--layers={str(cached).lower()}"]
            command += ["--pull=false"]  # only what is missing; podman's word for it is another
        elif self.name == "podman":
            command += [f"--layers={str(cached).lower()}", "--pull=missing"]
        elif not cached:
            command += ["--no-cache"]
        for name, value in arguments.items():
            command += ["--build-arg", f"{name}={value}"]
        for name, path in secrets.items():
            command += ["--secret", f"id={name},src={path}"]
        self._run_shown([*command, *more, "--tag", image, str(context)])

    def has(self, image: str) -> bool:
        """Report whether the image is in the store."""
        kind = ["inspect", "--type", "image"] if self.name == "buildah" else ["image", "inspect"]
        return self._quietly([*kind, image]) is None

    def pull(self, image: str, machine: str = "") -> str | None:
        """Fetch an image from its registry, this machine's or that of another; what is wrong, or None."""
        return self._quietly(["pull", "--quiet", *(("--platform", f"linux/{machine}") if machine else ()), image])

    def push_index(self, name: str, images: Sequence[str], digest_file: Path, more: Sequence[str] = ()) -> None:
        """Join images of a registry under one name there, and write its digest into a file. buildah alone does it.

        Args:
            images: by their digests.
            more: options of the builder's own.

        Raises:
            ImageError: the registry has not got them, or does not take it.
        """
        joined = f"localhost/{name.rpartition('/')[2]}-index"
        self._run_shown([self.name, *self.options, "manifest", "create", joined])
        for image in images:
            self._run_shown([self.name, *self.options, "manifest", "add", *more, joined, f"docker://{image}"])
        push = ("manifest", "push", "--all", *more, f"--digestfile={digest_file}", joined, f"docker://{name}")
        self._run_shown([self.name, *self.options, *push])

    def load(self, archive: Path) -> None:
        """Put the image of an archive into the store, by the name that it has there.

        Raises:
            ImageError: it is no such archive.
        """
        command = ["pull", "--quiet", f"docker-archive:{archive}"] if self.name == "buildah" else ["load", "--input"]
        wrong = self._quietly(command if self.name == "buildah" else [*command, str(archive)])
        if wrong is not None:
            raise ImageError(f"{self.name} does not take {archive}: {wrong}")

    def save(self, image: str, archive: Path) -> None:
        """Write an image of the store as a docker-archive. Raises ImageError: it is not there."""
        command = {
            "docker": ["save", "--output", str(archive), image],
            "podman": ["save", "--quiet", "--format", "docker-archive", "--output", str(archive), image],
            "buildah": ["push", "--quiet", image, f"docker-archive:{archive}:{image}"],
        }[self.name]
        wrong = self._quietly(command)
        if wrong is not None:
            raise ImageError(f"{self.name} cannot save {image}: {wrong}")

    def push(self, image: str, more: Sequence[str] = ()) -> None:
        """Send an image of the store to the registry that its name begins with.

        Args:
            more: options of the builder's own.

        Raises:
            ImageError: it is not there, or the registry does not take it.
        """
        self._run_shown([self.name, *self.options, "push", *more, image])

    def stored_in(self, folder: Path) -> "Builder":
        """The same with a store of its own in a folder; docker's is its daemon's, and stays."""
        if self.name == "docker":
            return self
        # vfs needs nothing of the kernel; it copies a layer for each step, so such a store is for one build.
        store = ("--storage-driver", "vfs", "--root", str(folder / "store"), "--runroot", str(folder / "run"))
        return replace(self, options=store)

    def _run_shown(self, command: Sequence[str]) -> None:
        # Secrets are BuildKit's, which is docker's default from 23.0 on.
        environment = {**os.environ, "DOCKER_BUILDKIT": "1"}
        finished = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment, check=False)
        if finished.returncode != 0:
            raise ImageError(f"{' '.join(command[:3])} ... failed with exit code {finished.returncode}, see above")

    def _quietly(self, arguments: Sequence[str]) -> str | None:
        command = [self.name, *self.options, *arguments]
        finished = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return None if finished.returncode == 0 else finished.stderr.strip()


def find(preferred: Sequence[str] = PROGRAMS) -> Builder:
    """The first that works here; the one that the variable IMAGE_BUILDER names where it is set.

    Raises:
        ImageError: none does.
    """
    requested = os.environ.get(VARIABLE, "")
    if requested and requested not in PROGRAMS:
        raise ImageError(f"{VARIABLE}={requested!r} is none of {', '.join(PROGRAMS)}")
    reasons = []
    for name in [requested] if requested else preferred:
        wrong = _unusable(name)
        if wrong is None:
            return Builder(name)
        reasons.append(f"{name}: {wrong}")
    raise ImageError(f"nothing builds images here ({'; '.join(reasons)}): install one of {', '.join(PROGRAMS)}")


def _unusable(name: str) -> str | None:
    """Explain why it does not work, or None. A docker without its daemon is common."""
    if shutil.which(name) is None:
        return "not on the PATH"
    command = [name, "version" if name == "docker" else "info"]
    try:
        finished = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIVENESS_DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_LIVENESS_DEADLINE_S:.0f} s"
    return None if finished.returncode == 0 else (finished.stderr.strip().splitlines() or ["it fails"])[-1]
