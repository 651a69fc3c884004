"""What a user of servers with TLS and passwords does from outside of their pods: sockets, handshakes, a library."""

from __future__ import annotations

import hashlib
import socket
import ssl
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pymemcache import Client, HashClient

from tests.certificates import Pair
from tests.e2e.node_cluster import MEMCACHED_PORT

TIMEOUT_S = 5.0
_BATCH = 100


@dataclass(frozen=True, slots=True)
class Login:
    """A user of memcached's password file."""

    user: str
    password: str

    @property
    def line(self) -> str:
        """As the file has it."""
        return f"{self.user}:{self.password}"

    @property
    def command(self) -> bytes:
        """What a client sends first on each connection."""
        given = f"{self.user} {self.password}".encode()
        return b"set login 0 0 %d\r\n%b\r\n" % (len(given), given)


def context(authority: bytes, shown: Pair | None = None) -> ssl.SSLContext:
    """TLS that trusts an authority alone, and shows a certificate where there is one."""
    made = ssl.create_default_context(cadata=authority.decode())
    if shown is not None:
        with tempfile.TemporaryDirectory() as name:
            certificate, key = Path(name, "crt"), Path(name, "key")
            certificate.write_bytes(shown.pem)
            key.write_bytes(shown.key_pem)
            made.load_cert_chain(certificate, key)
    return made


@contextmanager
def plain(address: str) -> Iterator[socket.socket]:
    """A connection without TLS."""
    with socket.create_connection((address, MEMCACHED_PORT), TIMEOUT_S) as connection:
        yield connection


@contextmanager
def secured(address: str, by: ssl.SSLContext, name: str) -> Iterator[ssl.SSLSocket]:
    """A connection by TLS to the server of that name."""
    with plain(address) as connection, by.wrap_socket(connection, server_hostname=name) as secure:
        yield secure


def answer(connection: socket.socket, command: bytes) -> bytes:
    """The first bytes that come after a command; b"" where the server closes the connection without a word."""
    connection.sendall(command)
    return connection.recv(65_536)


def fingerprint(address: str, by: ssl.SSLContext, name: str) -> str:
    """Of the certificate that a new connection is shown."""
    with secured(address, by, name) as connection:
        return hashlib.sha256(connection.getpeercert(binary_form=True) or b"").hexdigest()


class _LoggedIn(Client):  # type: ignore[misc]  # it has no types
    """pymemcache's own, which logs in on each new connection: the library knows memcached's binary passwords alone."""

    login: Login

    def _connect(self) -> None:
        super()._connect()
        if answer(self.sock, self.login.command) != b"STORED\r\n":
            raise PermissionError(f"the login of {self.login.user} is refused")


@dataclass(slots=True)
class Load:
    """A client that reads keys in a loop, each from the server that it hashes to.

    Attributes:
        names: of the servers, by address.
        rounds: how often it has read all of them.
        missed: keys that were not there.
        errors: what went wrong.
    """

    names: Mapping[str, str]
    by: ssl.SSLContext
    login: Login
    keys: int
    rounds: int = 0
    missed: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def fill(self) -> None:
        """Set each key."""
        client = self._client()
        for batch in self._batches():
            failed = client.set_many({key: key.encode() for key in batch}, noreply=False)
            assert failed == [], failed
        client.close()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Read all the while, on connections that stay."""
        thread = threading.Thread(target=self._read, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join(TIMEOUT_S * len(self.names))

    def _read(self) -> None:
        client = self._client()
        while not self._stop.is_set():
            for batch in self._batches():
                try:
                    found = client.get_many(batch)
                except Exception as error:
                    self.errors.append(f"{type(error).__name__}: {error}")
                    continue
                self.missed += [key for key in batch if found.get(key) != key.encode()]
            self.rounds += 1
        client.close()

    def _client(self) -> HashClient:
        login, by, names = self.login, self.by, self.names

        class _Named(_LoggedIn):
            def __init__(self, server: tuple[str, int], **options: Any) -> None:
                super().__init__(server, **options)
                self.login = login

            def _connect(self) -> None:
                self.tls_context = _Verifying(by, names[self.server[0]])
                super()._connect()

        class _Hashing(HashClient):  # type: ignore[misc]  # it has no types
            client_class = _Named

        servers = [(address, MEMCACHED_PORT) for address in names]
        return _Hashing(servers, timeout=TIMEOUT_S, connect_timeout=TIMEOUT_S)

    def _batches(self) -> Iterator[Sequence[str]]:
        for first in range(0, self.keys, _BATCH):
            yield [f"key-{number:05}" for number in range(first, min(first + _BATCH, self.keys))]


class _Verifying:
    """A context that checks a server's name, where the client goes by its address."""

    def __init__(self, by: ssl.SSLContext, name: str) -> None:
        self._by, self._name = by, name

    def wrap_socket(self, connection: socket.socket, **_: object) -> ssl.SSLSocket:
        return self._by.wrap_socket(connection, server_hostname=self._name)
