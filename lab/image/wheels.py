"""Install the wheels of a lock for a machine that need not be this one.

The Dockerfile runs this in its build stage (``wheels.py ARCHITECTURE LOCK FOLDER``), so it needs nothing but pip.
"""

import subprocess
import sys
from collections.abc import Sequence

# By the names that Dockerfiles have (TARGETARCH): https://docs.docker.com/reference/dockerfile/#automatic-platform-args
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
# Wheels are for a glibc or newer ones (PEP 600): Debian 13, the image's, has 2.41.
_GLIBC_MINOR = 41
# None of the two machines had one before.
_FIRST_GLIBC_MINOR = 17


def pip_command(
    architecture: str,
    lock: str,
    folder: str,
    python: str = "{}.{}".format(*sys.version_info),
    glibc: int = _GLIBC_MINOR,
) -> list[str]:
    """The call of pip that installs a lock into a folder.

    Args:
        python: the release that will load it; in an image's build stage that of the image.
        glibc: the minor release of glibc that the machine has at least.

    Raises:
        SystemExit: nothing is made for that architecture.
    """
    if architecture not in _MACHINES:
        raise SystemExit(f"wheels: nothing is made for {architecture!r}, only for {' and '.join(_MACHINES)}")
    machine = _MACHINES[architecture]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
    command += ["--root-user-action", "ignore", "--no-compile", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "--python-version", python, "--implementation", "cp"]
    command += ["--abi", f"cp{python.replace('.', '')}"]
    for minor in range(glibc, _FIRST_GLIBC_MINOR - 1, -1):
        command += ["--platform", f"manylinux_2_{minor}_{machine}"]
    return [*command, "--platform", f"manylinux2014_{machine}", "--target", folder, "--requirement", lock]


def main(arguments: Sequence[str]) -> int:
    """Install; the exit code is pip's."""
    architecture, lock, folder = arguments
    return subprocess.run(pip_command(architecture, lock, folder), check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
