"""The folder of a running simulator: certificates, kubeconfigs, the audit log. Nothing of it outlives the simulator.

However a simulator ends, the next one removes what it left: a folder whose lock is free belongs to nobody.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_LOCK = "owner.lock"


@contextlib.contextmanager
def state_directory(base: Path | None = None) -> Iterator[Path]:
    """A fresh folder until the end of the block, readable by this user alone.

    Args:
        base: where; None for a folder of this user's under the temporary one.

    Raises:
        PermissionError: the folder under the temporary one belongs to another user.
    """
    base = base or _base()
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (base / "lock").open("w") as one_at_a_time:  # or a sweep could take a folder before its owner locks it
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        sweep(base)
        # No prefix: with it, `export KUBECONFIG=` and a path in here would not fit into a terminal's 80 columns.
        path = Path(tempfile.mkdtemp(prefix="", dir=base))
        lock = (path / _LOCK).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with lock:
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


def sweep(base: Path) -> None:
    """Remove the folders under `base` whose owner is gone."""
    for lock_path in base.glob(f"*/{_LOCK}"):
        try:
            with lock_path.open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock_path.parent, ignore_errors=True)
        except (BlockingIOError, FileNotFoundError):
            continue  # in use, or another sweep was faster


def _base() -> Path:
    base = Path(tempfile.gettempdir()) / f"memcached-operator-simulator-{os.getuid()}"
    base.mkdir(mode=0o700, exist_ok=True)
    if base.stat().st_uid != os.getuid():
        raise PermissionError(f"{base} belongs to another user: remove it, or set TMPDIR to a folder of your own")
    return base
