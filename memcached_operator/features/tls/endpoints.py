"""The credentials for connections to servers, read from the Secrets that their Memcacheds name, where that is allowed.

Secrets are read one at a time by their names, and never listed or watched, so that a Role can name each. What was
read is kept for a minute, of which nothing is ever written or logged.
"""

from __future__ import annotations

import asyncio
import binascii
import ssl
import time
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import msgspec

from memcached_operator.api.v1alpha1 import Auth, Tls
from memcached_operator.core.objects.owned_object import ObjectIdentity
from memcached_operator.core.observed.caches import Caches
from memcached_operator.servers.certificates import first_of_chain
from memcached_operator.servers.queried_pod import QueriedPod, Resolved, without_credentials
from memcached_operator.servers.server_connection import Login, client_context
from operator_runtime import Client, Forbidden, Kind, KubeError, NotFound, ObjectKey, load_cert_chain, resource_of

CACHE_S: Final = 60.0
READ_TIMEOUT_S: Final = 2.0
PASSWORDS, CERTIFICATE, KEY = "password-file", "tls.crt", "tls.key"
_MAX_SECRETS: Final = 1_000
_MAX_CONTEXTS: Final = 256
_NO_SPEC: Final = "its Memcached no longer names the Secret"


class SecretRecord(msgspec.Struct, frozen=True):
    """A Secret, of which only the credentials for servers are kept."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    files: Mapping[str, bytes] = {}

    def __repr__(self) -> str:
        return f"<Secret {self.namespace}/{self.name}>"


class _Secret(msgspec.Struct):
    metadata: ObjectIdentity
    data: dict[str, str] | None = None


_decode = msgspec.json.Decoder(_Secret).decode


def secret_record(raw: msgspec.Raw | bytes) -> SecretRecord:
    secret = _decode(raw)
    meta, data = secret.metadata, secret.data or {}
    files = {key: b64decode(data[key]) for key in (PASSWORDS, CERTIFICATE, KEY) if key in data}
    return SecretRecord(meta.namespace, meta.name, meta.uid, meta.resourceVersion, files)


SECRETS = Kind(resource_of("v1", "Secret", "secrets"), secret_record)


@dataclass(slots=True, eq=False)
class _CachedSecret:
    """Cached content of a Secret, or in words why it is not known."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    until_s: float = float("-inf")
    found: Mapping[str, bytes] | str = ""


class Secrets:
    """Reads Secrets by their names, each at most once in `CACHE_S`."""

    def __init__(self, client: Client, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._kept: dict[ObjectKey, _CachedSecret] = {}

    async def read(self, key: ObjectKey) -> Mapping[str, bytes] | str:
        """Read the content of a Secret, by key, or why that is not known, in words."""
        kept = self._kept.get(key)
        if kept is None:
            while len(self._kept) >= _MAX_SECRETS:
                del self._kept[next(iter(self._kept))]
            kept = self._kept[key] = _CachedSecret()
        async with kept.lock:
            if self._clock() >= kept.until_s:
                kept.found = await self._get(key)
                kept.until_s = self._clock() + CACHE_S
        return kept.found

    async def _get(self, key: ObjectKey) -> Mapping[str, bytes] | str:
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                return (await self._client.get(SECRETS, key)).files
        except NotFound:
            return f"Secret {key.name} does not exist"
        except Forbidden:
            return f"the operator may not get Secret {key.name}"
        except (KubeError, TimeoutError, binascii.Error):
            return f"Secret {key.name} could not be read"


class EndpointResolver:
    """Resolver of each server's endpoint, by its pod's annotations and what is known of its credentials."""

    def __init__(self, caches: Caches, secrets: Secrets) -> None:
        self._caches = caches
        self._secrets = secrets

    async def to(self, pod: QueriedPod) -> Resolved:
        """Resolve the endpoint of a pod's server. Nothing is waited for where it takes no credentials."""
        transport, found = pod.transport, await without_credentials(pod)
        if not transport.tls and not transport.passwords:
            return found
        # If the Memcached names other Secrets by now, the pod is about to be replaced.
        spec = self._caches.spec_at(pod.memcached_key)
        tls, auth = (spec.tls, spec.auth) if spec is not None else (None, None)
        endpoint, lacks = found.endpoint, ""
        due = await self._due(pod.namespace, tls) if tls is not None and tls.reload == "Restart" else ""
        if transport.client_certificate:
            context = await self._context(pod.namespace, tls)
            if isinstance(context, str):
                lacks = context
            else:
                endpoint = endpoint._replace(tls=context, has_certificate=True)
        if transport.passwords:
            login = await self._login(pod.namespace, auth)
            if isinstance(login, str):
                lacks = lacks or login
            else:
                endpoint = endpoint._replace(login=login)
        return Resolved(endpoint, lacks, due)

    async def _due(self, namespace: str, tls: Tls) -> str:
        """The fingerprint of the certificate that a new server would show, "" where that is not known."""
        files = await self._secrets.read(ObjectKey(namespace, tls.secretName))
        found = None if isinstance(files, str) else first_of_chain(files.get(CERTIFICATE, b""))
        return found.fingerprint if found is not None else ""

    async def _context(self, namespace: str, tls: Tls | None) -> ssl.SSLContext | str:
        if tls is None:
            return _NO_SPEC
        files = await self._secrets.read(ObjectKey(namespace, tls.secretName))
        if isinstance(files, str):
            return files
        for key in (CERTIFICATE, KEY):
            if not files.get(key):
                return f"Secret {tls.secretName} has no {key}"
        context = _showing(files[CERTIFICATE], files[KEY])
        return context or f"{CERTIFICATE} and {KEY} of Secret {tls.secretName} are not a certificate and its key"

    async def _login(self, namespace: str, auth: Auth | None) -> Login | str:
        if auth is None:
            return _NO_SPEC
        files = await self._secrets.read(ObjectKey(namespace, auth.secretName))
        if isinstance(files, str):
            return files
        if not files.get(PASSWORDS):
            return f"Secret {auth.secretName} has no {PASSWORDS}"
        return Login.first_of(files[PASSWORDS]) or f"{PASSWORDS} of Secret {auth.secretName} has no line user:password"


@lru_cache(_MAX_CONTEXTS)
def _showing(chain: bytes, key: bytes) -> ssl.SSLContext | None:
    """Make the context for TLS with that client certificate; None where these are none."""
    context = client_context()
    try:
        load_cert_chain(context, chain.rstrip() + b"\n" + key)
    except (OSError, ValueError):
        return None
    return context
