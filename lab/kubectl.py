"""Calls of the real kubectl, as a user of a cluster makes them."""

import subprocess
from pathlib import Path

# Far above what a call takes, and outside of the 60 s that a `kubectl wait` is given: kubectl itself says what it waits
# for. Well within the time of a whole test.
_TIMEOUT_S = 90.0
# It lives for a tenth of a second: collecting garbage would be a quarter of what it uses of a processor.
_NO_GARBAGE_COLLECTION = {"GOGC": "off", "GOMEMLIMIT": "512MiB"}


class LabError(Exception):
    """The control plane, or a kubectl call, did not do what was asked; the message carries the program's words."""


def run(
    program: Path | str, *arguments: str, kubeconfig: Path, home: Path, input: str | None, check: bool
) -> subprocess.CompletedProcess[str]:
    """Run kubectl with nothing of the caller's environment.

    Args:
        home: where it keeps its cache.

    Raises:
        LabError: it failed, and ``check`` is true; or it did not end in time, and was ended.
    """
    try:
        finished = subprocess.run(
            [program, *arguments],
            env={
                "KUBECONFIG": str(kubeconfig),
                "KUBECACHEDIR": str(home / "kubectl-cache"),
                "HOME": str(home),
                **_NO_GARBAGE_COLLECTION,
            },
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        output = " ".join(_decoded(each) for each in (error.stdout, error.stderr)).strip()
        raise LabError(
            f"kubectl {' '.join(arguments)}: no end within {_TIMEOUT_S:g} s; its output was: {output or 'nothing'}"
        ) from None
    if check and finished.returncode != 0:
        raise LabError(f"kubectl {' '.join(arguments)}: exit code {finished.returncode}: {finished.stderr.strip()}")
    return finished


def _decoded(output: str | bytes | None) -> str:
    """Decode the output of a program that was ended: bytes, whatever was requested."""
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""
