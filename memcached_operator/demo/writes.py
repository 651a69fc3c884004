"""What the operator writes, read from the API server's audit log as it grows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_READS = frozenset({"get", "list", "watch"})
_OPERATOR = "memcached-operator/"
_LOOK_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Write:
    """One request of the operator's that changes something, and how it was answered."""

    verb: str
    what: str
    """Resource, subresource and name: `memcacheds/status shop`."""
    code: int

    @property
    def text(self) -> str:
        """As a line."""
        return f"{self.verb} {self.what} {self.code}"


class AuditTail:
    """The end of an audit log that grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = path.stat().st_size if path.exists() else 0
        self._rest = b""

    def writes(self) -> list[Write]:
        """Those of the operator that came since the last time; a line that is half written comes the next time."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._position)
            *lines, self._rest = (self._rest + file.read()).split(b"\n")
            self._position = file.tell()
        return [write for line in lines if (write := parsed(line)) is not None]


async def follow(tail: AuditTail, told: Callable[[Write], None]) -> None:
    """Tell of each write, until cancelled."""
    while True:
        await asyncio.sleep(_LOOK_EVERY_S)
        for write in tail.writes():  # a few kilobytes from the page cache: nothing to wait for
            told(write)


def parsed(line: bytes) -> Write | None:
    """A line of the audit log, where it is an answered write of the operator's."""
    record = json.loads(line)
    if record["stage"] != "ResponseComplete" or record["verb"] in _READS:
        return None
    if not record.get("userAgent", "").startswith(_OPERATOR):
        return None
    target = record.get("objectRef", {})
    resource = "/".join(target[key] for key in ("resource", "subresource") if target.get(key))
    what = f"{resource} {target.get('name', '')}".rstrip()
    return Write(record["verb"], what, record.get("responseStatus", {}).get("code", 0))
