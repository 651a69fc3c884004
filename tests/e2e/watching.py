"""When things became so in the API, as a watch beside the operator's own saw them."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from lab.programs import kubernetes
from operator_runtime.testing.waiting import DEADLINE_S

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """One event of a watch, and when it came, in seconds by ``time.monotonic()``."""

    at_s: float
    kind: str
    object: Object


class Watch:
    """A watch of one collection until the end of the block; begins with what is there already."""

    def __init__(self, kubeconfig: Path, path: str) -> None:
        """
        Args:
            path: of the collection, such as ``/api/v1/namespaces/default/pods``.
        """
        self._command = [kubernetes.kubectl_path(), "--kubeconfig", str(kubeconfig)]
        self._command += ["get", "--raw", f"{path}?watch=1&timeoutSeconds=3600"]
        self._seen: list[Seen] = []
        self._changed = threading.Condition()
        self._process: subprocess.Popen[bytes]
        self._thread = threading.Thread(target=self._read, name=f"watch of {path}", daemon=True)

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._thread.join()

    def first(self, desired: Callable[[Object], bool], *, after_s: float = 0.0) -> Seen:
        """The first event since then of an object that is as wanted; waits for it.

        Args:
            after_s: by ``time.monotonic()``.
        """
        ends = time.monotonic() + DEADLINE_S
        with self._changed:
            while True:
                for seen in self._seen:
                    if seen.at_s > after_s and desired(seen.object):
                        return seen
                left_s = ends - time.monotonic()
                assert left_s > 0, f"not seen within {DEADLINE_S} s; last: {[seen.object for seen in self._seen[-3:]]}"
                self._changed.wait(left_s)

    def so_far(self) -> list[Seen]:
        """All that has come until now."""
        with self._changed:
            return list(self._seen)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                event = json.loads(line)
                with self._changed:
                    self._seen.append(Seen(time.monotonic(), event["type"], event["object"]))
                    self._changed.notify_all()
