"""A user's program that has a Memcached: it reads keys again and again, sets those that it does not find, and counts.

    python hashing_client.py FILE KEYS

FILE has the servers as the operator publishes them (`servers.json`), and is read again and again. Whoever asks on port
8080 gets a report as JSON; by POST, it begins anew after that. It runs in a pod with pymemcache and nothing of this
project. Tests take `owners` from it, and how it is asked.
"""

import json
import signal
import sys
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pymemcache import Client, HashClient
from pymemcache.client.rendezvous import RendezvousHash

PORT = 8080
_BATCH = 100
# What a busy machine for tests needs. In front of a cache that saves milliseconds it would be less.
_TIMEOUT_S = 3.0
# The library hashes in Python. Without a pause after each batch that alone would take one of two processors.
_PAUSE_S = 0.01


def key_of(number: int) -> str:
    """What the library hashes, together with a server's name."""
    return f"key-{number:05}"


def owners(servers: Sequence[str], keys: int) -> dict[int, str]:
    """The server of each key, as the library chooses it; the same for any order of the list."""
    ring = RendezvousHash(list(servers))
    return {number: ring.get_node(key_of(number)) for number in range(keys)}


def connect(servers: Sequence[str]) -> HashClient:
    """A client for which a server that is away is a miss, and which keeps each key where it is.

    For another list it is made anew: `remove_server` raises KeyError for a server that works, and one that was removed
    comes back after `dead_timeout` (pymemcache 4.0).
    """
    return _CountingHashClient(
        servers,
        # Without these it waits for ever.
        connect_timeout=_TIMEOUT_S,
        timeout=_TIMEOUT_S,
        no_delay=True,
        # A miss, not an exception.
        ignore_exc=True,
        # Asked again so long after it failed; until then all that it has is a miss.
        retry_timeout=1,
        # Never given up. Otherwise its keys go to other servers for a minute (`dead_timeout`), and then back to one
        # that may have older values.
        retry_attempts=sys.maxsize,
        # A set that has not arrived is told.
        default_noreply=False,
    )


class _Counts:
    """What was seen since somebody began to count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers: Sequence[str] = ()
        self._rounds = self._quiet = 0
        self._is_quiet = True
        self._misses: dict[int, list[float]] = {}
        self._wrong: set[int] = set()
        self._errors: list[dict[str, object]] = []

    def take(self, servers: Sequence[str]) -> None:
        with self._lock:
            self._servers = servers

    def end_round(self) -> None:
        with self._lock:
            self._rounds += 1
            self._quiet = self._quiet + 1 if self._is_quiet else 0
            self._is_quiet = True

    def add(self, missed: Sequence[int], wrong: Sequence[int]) -> None:
        now = time.time()
        with self._lock:
            for number in missed:
                self._misses[number] = [self._misses.get(number, [now])[0], now]
            self._wrong.update(wrong)
            self._is_quiet = self._is_quiet and not missed and not wrong

    def add_error(self, server: str, error: Exception) -> None:
        with self._lock:
            self._errors.append({"server": server, "at": time.time(), "what": f"{type(error).__name__}: {error}"})
            self._is_quiet = False

    def report(self, *, begin_anew: bool) -> dict[str, object]:
        with self._lock:
            found = {
                "servers": self._servers,
                "rounds": self._rounds,
                "quiet": self._quiet,
                "misses": [[number, *times] for number, times in sorted(self._misses.items())],
                "wrong": sorted(self._wrong),
                "errors": self._errors,
            }
            if begin_anew:
                self._misses, self._wrong, self._errors = {}, set(), []
            return found


_counts = _Counts()


class _CountingClient(Client):  # type: ignore[misc]  # it has no types
    """Of one server. What goes wrong here goes no further than the library."""

    def get_many(self, *args: Any, **kwargs: Any) -> Any:
        return self._counting(super().get_many, *args, **kwargs)

    def set(self, *args: Any, **kwargs: Any) -> Any:
        return self._counting(super().set, *args, **kwargs)

    def _counting(self, command: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except Exception as error:
            _counts.add_error("%s:%s" % self.server, error)  # noqa: UP031  # a pair
            raise


class _CountingHashClient(HashClient):  # type: ignore[misc]  # it has no types
    client_class = _CountingClient


def _read_for_ever(file: Path, keys: int) -> None:
    servers: list[str] = []
    client = connect(servers)
    while True:
        for first in range(0, keys, _BATCH):
            published = json.loads(file.read_text())
            if published != servers:
                client.close()
                servers, client = published, connect(published)
                _counts.take(servers)
            _read(client, range(first, min(first + _BATCH, keys)))
            time.sleep(_PAUSE_S)
        _counts.end_round()


def _read(client: HashClient, numbers: range) -> None:
    values = {number: b"value of %d" % number for number in numbers}
    found = client.get_many([key_of(number) for number in numbers])
    missed = [number for number in numbers if key_of(number) not in found]
    for number in missed:
        client.set(key_of(number), values[number])
    _counts.add(missed, [number for number in numbers if found.get(key_of(number), values[number]) != values[number]])


class _Reports(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer(_counts.report(begin_anew=False))

    def do_POST(self) -> None:
        self._answer(_counts.report(begin_anew=True))

    def log_message(self, *_: object) -> None:
        """Nothing: it is asked often."""

    def _answer(self, report: dict[str, object]) -> None:
        body = json.dumps(report).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main(file: str, keys: str) -> None:
    """Stay until SIGTERM."""
    # The first process of a container is not ended by a signal that it does not handle.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    threading.Thread(target=ThreadingHTTPServer(("", PORT), _Reports).serve_forever, daemon=True).start()
    _read_for_ever(Path(file), int(keys))


if __name__ == "__main__":
    main(*sys.argv[1:])
