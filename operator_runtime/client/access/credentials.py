"""Credentials that prove the client's identity to the API server, kept fresh while the process runs.

A credential is fetched (a file read, a plugin run), cached, fetched again before it goes stale and after a 401; one
class holds these rules for every kind of it. Nothing here prints a credential: no repr, no message, no log line.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from operator_runtime.client.access.tls import ClientCertificate, ClientTls, credential_file
from operator_runtime.client.errors import AuthenticationUnavailable, KubeError

log = logging.getLogger(__name__)

# client-go reads token files once a minute too; the kubelet rotates a token at 80 % of its life, so minutes are left.
TOKEN_FILE_PERIOD_S = 60.0
# A credential is renewed so long before it expires: time for a slow plugin and for clocks that differ. One that lives
# for minutes only gives up a tenth of its life instead.
EXPIRY_SKEW_S = 60.0
# After a fetch that failed the next one waits, or every request would start one more plugin.
FAILURE_PAUSE_S = 5.0


class NoClusterAccess(KubeError):
    """Failure to determine an API server or an identity. The message lists what was tried and the remedy."""


class Discreet(msgspec.Struct, frozen=True):
    """A part of a configuration or an answer that may hold a secret, and shows nothing of it."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """API server and the credentials for it.

    Attributes:
        server: base URL without a trailing slash, an IPv6 address in brackets.
        namespace: the context's or the pod's own; None where none is named.
        description: for logs: "context minikube of ~/.kube/config".
        proxy: URL of an http or https proxy. It may hold a password: never print it.
        tls_server_name: name that the server's certificate is checked against, None for the one in `server`.
        in_pod: this process is a pod's, and `namespace` that pod's.
    """

    server: str
    namespace: str | None
    description: str
    credentials: Credentials = field(repr=False)
    proxy: str | None = field(default=None, repr=False)
    tls_server_name: str | None = None
    in_pod: bool = False


@dataclass(frozen=True, slots=True)
class Identity:
    """One fetched credential: headers, a client certificate, or both; `expires_at_s` is in seconds since the epoch."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    certificate: ClientCertificate | None = field(default=None, repr=False)
    expires_at_s: float | None = None


def bearer(token: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {token}"}


def basic(username: str, password: str) -> Mapping[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode("ascii")}


def is_token(text: str) -> bool:
    """Report whether `text` can stand in a header: a line break in it would start another one."""
    return text.isascii() and text.isprintable() and " " not in text and text != ""


def token_file(path: Path, remedy: str) -> Callable[[], Awaitable[Identity]]:
    """A fetch of the bearer token in `path`, white space around it stripped; `remedy` ends the message of a failure."""

    async def fetch() -> Identity:
        # Some kilobytes, at most once a minute: not worth a thread.
        token = credential_file(path, "token file", remedy).decode("ascii", "replace").strip()
        if not is_token(token):
            fault = "is empty" if not token else "holds something other than one token"
            raise AuthenticationUnavailable(f"token file {path} {fault}: {remedy}")
        return Identity(bearer(token))

    return fetch


class CachedIdentity:
    """Fetches an identity, keeps it while it is good, and fetches again when it is not.

    Invariants: one fetch at a time, which goes on although its callers give up; a good identity is never given up for
    a failed fetch, and is used without waiting for a slow one; after a failure no fetch for FAILURE_PAUSE_S;
    `_changed_at` moves only when the content does, so that a fetch that brings the same token again is no reason to
    repeat a refused request.
    """

    def __init__(
        self,
        name: str,
        fetch: Callable[[], Awaitable[Identity]],
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        max_age_s: float | None = None,
    ) -> None:
        """
        Args:
            name: where the credential comes from, for messages.
            fetch: raises AuthenticationUnavailable.
            wall_clock: for expiry times that others set.
            max_age_s: fetch again after so long; None trusts the expiry time alone.
        """
        self._name = name
        self._fetch = fetch
        self._clock = clock
        self._wall_clock = wall_clock
        self._max_age_s = max_age_s
        self._update_task: asyncio.Task[None] | None = None
        self._identity: Identity | None = None
        self._fetched_at = self._changed_at = float("-inf")
        self._renew_at_s: float | None = None
        self._failure: str | None = None
        self._failed_at = float("-inf")

    async def current(self) -> Identity:
        """The identity to use now; AuthenticationUnavailable where there is none, and the fetch failed."""
        if not self._is_fresh():
            update = self._updating()
            if self._identity is not None and not self._is_expired(self._identity):
                # For as long as it is good it is used during its renewal. One turn of the event loop is all that
                # reading a file takes; a plugin may take a minute.
                await asyncio.sleep(0)
            elif update is not None:
                await asyncio.shield(update)
        return self._usable()

    async def renew(self, failed_since: float) -> bool:
        if self._fetched_at <= failed_since or not self._is_fresh():
            update = self._updating()
            if update is not None:
                await asyncio.shield(update)
        self._usable()
        return self._changed_at > failed_since

    def _updating(self) -> asyncio.Task[None] | None:
        """Return the fetch that is under way, or a new one; None so soon after one that failed.

        A task of its own: the plugin would never come to its end if each caller that gives up took it along.
        """
        if self._update_task is None or self._update_task.done():
            if self._failure is not None and self._clock() - self._failed_at < FAILURE_PAUSE_S:
                return None
            self._update_task = asyncio.create_task(self._update(), name=f"fetch of {self._name}")
        return self._update_task

    def _is_fresh(self) -> bool:
        if self._identity is None:
            return False
        if self._max_age_s is not None and self._clock() - self._fetched_at >= self._max_age_s:
            return False
        return self._renew_at_s is None or self._wall_clock() < self._renew_at_s

    def _usable(self) -> Identity:
        identity = self._identity
        if identity is None or self._is_expired(identity):
            raise AuthenticationUnavailable(self._failure or "the credential has expired")
        return identity

    def _is_expired(self, identity: Identity) -> bool:
        return identity.expires_at_s is not None and self._wall_clock() >= identity.expires_at_s

    async def _update(self) -> None:
        try:
            identity = await self._fetch()
            if self._is_expired(identity):
                raise AuthenticationUnavailable(
                    f"{self._name} gave an expired credential; log in again, and compare this machine's clock"
                )
        except AuthenticationUnavailable as error:
            if self._failure is None and self._identity is not None:
                log.warning("Using the last valid credential: %s", error)
            self._failure, self._failed_at = str(error), self._clock()
            return
        self._failure = None
        self._fetched_at = self._clock()
        if self._identity is None or (identity.headers, identity.certificate) != (
            self._identity.headers,
            self._identity.certificate,
        ):
            self._changed_at = self._fetched_at
        self._identity = identity
        self._renew_at_s = None
        if identity.expires_at_s is not None:
            life_s = identity.expires_at_s - self._wall_clock()
            self._renew_at_s = identity.expires_at_s - min(EXPIRY_SKEW_S, life_s / 10)


class Credentials:
    """Proof of a client's identity: headers, and TLS unless the server speaks plain http.

    An `Identity` stands in the configuration: there is nothing to fetch. Times are seconds on the clock that
    `load_access` was given.
    """

    def __init__(self, identity: CachedIdentity | Identity, tls: ClientTls | None) -> None:
        self._identity = identity
        self._tls = tls

    async def headers(self) -> Mapping[str, str]:
        """The headers that each request carries. Call it per request: it also notices rotated files.

        Raises AuthenticationUnavailable, with the file or plugin, where there is no credential and none can be had.
        """
        identity = await self._current()
        if self._tls is not None:
            self._tls.update(identity.certificate)
        return identity.headers

    async def refresh(self, failed_since: float) -> bool:
        """Called on a 401 to a request that started at `failed_since`: fetch again what is older than that.

        True if a newer credential than the refused one is to be had, so that a retry makes sense.
        """
        renewed = isinstance(self._identity, CachedIdentity) and await self._identity.renew(failed_since)
        if self._tls is None:
            return renewed
        await self.reload_ca(failed_since)
        return renewed or self._tls.changed_at > failed_since

    async def reload_ca(self, failed_since: float) -> None:
        """Read the CA again: it did not vouch for the server of a request that started at `failed_since`."""
        if self._tls is not None:
            self._tls.update((await self._current()).certificate, older_than=failed_since)

    async def _current(self) -> Identity:
        return self._identity if isinstance(self._identity, Identity) else await self._identity.current()

    def ssl_context(self) -> ssl.SSLContext | None:
        """TLS for new connections; None for plain http. Another one after `headers` noticed new certificates."""
        return None if self._tls is None else self._tls.context()
