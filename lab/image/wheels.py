"""Install the wheels of a lock for the machine that an image is for, which need not be the building one.

The Dockerfile runs this in its build stage (``wheels.py ARCHITECTURE LOCK FOLDER``), so it needs nothing but pip.
"""

import subprocess
import sys
from collections.abc import Sequence

# By the names that Dockerfiles have (TARGETARCH): https://docs.docker.com/reference/dockerfile/#automatic-platform-args
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
# Wheels are for a glibc or newer ones (PEP 600): Debian 13 has 2.41, and none of the two machines one before 2.17.
_GLIBC_MINORS = range(41, 16, -1)


def pip_command(architecture: str, lock: str, folder: str) -> list[str]:
    """The call of pip that installs a lock into a folder.

    Raises:
        SystemExit: there are no images for that architecture.
    """
    if architecture not in _MACHINES:
        raise SystemExit(f"wheels: no image is made for {architecture!r}, only for {' and '.join(_MACHINES)}")
    machine = _MACHINES[architecture]
    major, minor = sys.version_info[:2]  # the build stage's Python is the image's
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
    command += ["--root-user-action", "ignore", "--no-compile", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "--python-version", f"{major}.{minor}", "--implementation", "cp"]
    command += ["--abi", f"cp{major}{minor}"]
    for glibc in _GLIBC_MINORS:
        command += ["--platform", f"manylinux_2_{glibc}_{machine}"]
    return [*command, "--platform", f"manylinux2014_{machine}", "--target", folder, "--requirement", lock]


def main(arguments: Sequence[str]) -> int:
    """Install; the exit code is pip's."""
    architecture, lock, folder = arguments
    return subprocess.run(pip_command(architecture, lock, folder), check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
