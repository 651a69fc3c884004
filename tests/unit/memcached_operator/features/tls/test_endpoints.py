"""How servers are spoken to, and what is read for it of which Secrets."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import cast

import msgspec
import pytest
from hypothesis import given, strategies as st

from memcached_operator.core.objects.memory_annotation import Memory
from memcached_operator.core.observed.caches import Caches
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.rollout.live.live_memory import limit_setter
from memcached_operator.features.tls import endpoints as credentials
from memcached_operator.features.tls.endpoints import CACHE_S, SECRETS, EndpointResolver, SecretRecord, Secrets
from memcached_operator.servers.certificates import first_of_chain
from memcached_operator.servers.queried_pod import Resolved, without_credentials
from memcached_operator.servers.server_connection import Endpoint, Login, without_certificate
from memcached_operator.servers.stats_answer import StatsAnswer
from memcached_operator.servers.text_protocol import query
from memcached_operator.servers.transport import Transport
from operator_runtime import Client, Forbidden, Kind, KubeError, NotFound, ObjectKey, ServerError, Store
from operator_runtime.testing.clock import FakeClock
from tests.certificates import Authority, mounted, secret, tls_arguments
from tests.unit.memcached_operator.servers.support import ONE_THREAD, TIMEOUT_S, running, server_pod

PLAIN, TLS, REQUIRE = Transport(), Transport(tls=True), Transport(tls=True, client_certificate=True)
BOTH = Transport(tls=True, client_certificate=True, passwords=True)
LOGIN = Transport(passwords=True)
CERTIFICATE = Authority().issue("cache").files
PASSWORDS = {"password-file": b"ann:secret\n"}
SPEC = b'{"tls": {"secretName": "certificate", "clientAuth": "Require"}, "auth": {"secretName": "passwords"}}'


class Server:
    """An API server that has Secrets, as far as a client gets them by name."""

    def __init__(self, **secrets: dict[str, bytes]) -> None:
        self.secrets = secrets
        self.error: KubeError | None = None
        self.gets: Counter[str] = Counter()

    async def get(self, kind: Kind[SecretRecord], key: ObjectKey) -> SecretRecord:
        assert (kind, key.namespace) == (SECRETS, "shop")
        self.gets[key.name] += 1
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        if key.name not in self.secrets:
            raise NotFound(404, "NotFound", "not found")
        meta = {"metadata": {"name": key.name, "namespace": "shop", "uid": "u", "resourceVersion": "1"}}
        return SECRETS.decode(json.dumps(secret(key.name, self.secrets[key.name]) | meta).encode())


def endpoints(server: Server, clock: FakeClock | None = None, spec: bytes = SPEC) -> EndpointResolver:
    caches = Caches(Store(), Store(), Store(), Store(), {})
    caches.index()
    caches.memcacheds.put(MemcachedRecord("shop", "cache", "cache", "1", 1, False, spec, b""))
    return EndpointResolver(caches, Secrets(cast(Client, server), clock=clock or FakeClock()))


def pod(transport: Transport) -> PodRecord:
    return msgspec.structs.replace(server_pod(), transport=transport)


@pytest.mark.parametrize(("transport", "tls"), [(PLAIN, False), (TLS, True)])
async def test_servers_that_require_nothing_are_queried_without_a_read_of_secrets(
    transport: Transport, tls: bool
) -> None:
    server = Server(certificate=CERTIFICATE)
    resolved = await endpoints(server).to(pod(transport))
    assert resolved == Resolved(Endpoint("127.64.0.1", without_certificate() if tls else None))
    assert not server.gets


async def test_with_the_setting_a_server_is_shown_a_certificate_and_told_a_login() -> None:
    resolved = await endpoints(Server(certificate=CERTIFICATE, passwords=PASSWORDS)).to(pod(BOTH))
    assert resolved.lacks == ""
    assert resolved.endpoint.login == Login("ann", "secret")
    assert resolved.endpoint.has_certificate
    assert resolved.endpoint.tls not in (None, without_certificate())


@pytest.mark.parametrize(
    ("reload", "files", "is_due"),
    [
        (b"Restart", CERTIFICATE, True),
        (b"Restart", {"tls.crt": b"none"}, False),
        (b"Restart", {}, False),
        (b"Live", CERTIFICATE, False),
    ],
)
async def test_where_only_a_new_server_takes_a_renewed_certificate_the_secrets_is_read(
    reload: bytes, files: dict[str, bytes], is_due: bool
) -> None:
    spec = b'{"tls": {"secretName": "certificate", "reload": "%b"}}' % reload
    server = Server(certificate=files)
    resolved = await endpoints(server, spec=spec).to(pod(TLS))
    found = first_of_chain(CERTIFICATE["tls.crt"])
    assert found is not None
    assert resolved.due == (found.fingerprint if is_due else "")
    assert bool(server.gets) is (reload == b"Restart")
    assert (await without_credentials(pod(TLS))).due == ""


NO_PAIR = "tls.crt and tls.key of Secret certificate are not a certificate"
LACKS: list[tuple[Transport, dict[str, dict[str, bytes]], str]] = [
    (LOGIN, {}, "Secret passwords does not exist"),
    (LOGIN, {"passwords": {}}, "Secret passwords has no password-file"),
    (LOGIN, {"passwords": {"password-file": b"ann\n"}}, "password-file of Secret passwords has no line user:password"),
    (REQUIRE, {}, "Secret certificate does not exist"),
    (REQUIRE, {"certificate": {"tls.crt": b"x"}}, "Secret certificate has no tls.key"),
    (REQUIRE, {"certificate": {"tls.crt": b"x", "tls.key": b"y"}}, f"{NO_PAIR} and its key"),
    (REQUIRE, {"certificate": CERTIFICATE | {"tls.key": Authority().issue("other").key_pem}}, f"{NO_PAIR} and its key"),
    (BOTH, {"passwords": PASSWORDS}, "Secret certificate does not exist"),
]


@pytest.mark.parametrize(("transport", "secrets", "lacks"), LACKS)
async def test_what_lacks_is_said_by_its_key(
    transport: Transport, secrets: dict[str, dict[str, bytes]], lacks: str
) -> None:
    assert (await endpoints(Server(**secrets)).to(pod(transport))).lacks == lacks


@pytest.mark.parametrize(
    ("error", "lacks"),
    [
        (Forbidden(403), "the operator may not get Secret passwords"),
        (ServerError(500), "Secret passwords could not be read"),
    ],
)
async def test_an_api_server_that_refuses_is_no_failure_of_the_operators(error: KubeError, lacks: str) -> None:
    server = Server(passwords=PASSWORDS)
    server.error = error
    clock = FakeClock()
    to = endpoints(server, clock).to
    assert (await to(pod(LOGIN))).lacks == lacks
    server.error = None
    clock.advance(CACHE_S)
    assert (await to(pod(LOGIN))).lacks == ""


@pytest.mark.parametrize("spec", [b"{}", b'{"size": "many"}'])
async def test_a_pod_whose_memcached_names_no_secret_any_more_lacks_it(spec: bytes) -> None:
    server = Server(passwords=PASSWORDS)
    assert (await endpoints(server, spec=spec).to(pod(LOGIN))).lacks == "its Memcached no longer names the Secret"
    assert not server.gets


async def test_a_secret_is_read_once_a_minute_however_many_servers_ask_for_it() -> None:
    server, clock = Server(certificate=CERTIFICATE, passwords=PASSWORDS), FakeClock()
    to = endpoints(server, clock).to
    first = await asyncio.gather(*(to(pod(BOTH)) for _ in range(20)))
    assert server.gets == {"certificate": 1, "passwords": 1}
    clock.advance(CACHE_S - 1)
    assert (await to(pod(BOTH))).endpoint.tls is first[0].endpoint.tls
    assert server.gets.total() == 2
    server.secrets["passwords"] = {"password-file": b"bob:other\n"}
    clock.advance(1)
    assert (await to(pod(BOTH))).endpoint.login == Login("bob", "other")
    assert server.gets.total() == 4


async def test_no_more_secrets_are_kept_than_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "_MAX_SECRETS", 2)
    server = Server(a={}, b={}, c={})
    secrets = Secrets(cast(Client, server), clock=FakeClock())
    for name in ("a", "b", "b", "c", "c", "a"):
        await secrets.read(ObjectKey("shop", name))
    assert server.gets == {"a": 2, "b": 1, "c": 1}


FILES = [
    (b"ann:secret\nbob:x\n", Login("ann", "secret")),
    (b"ann:a:b\r\n", Login("ann", "a:b")),
    (b"\n:x\nann:\nbob:x\n", Login("bob", "x")),
    (b"two words:x\nbob:x\n", Login("bob", "x")),
    (b"\xff:x\nbob:x", Login("bob", "x")),
    (b"", None),
]


@pytest.mark.parametrize(("content", "login"), FILES)
def test_the_first_user_who_can_log_in_is_taken(content: bytes, login: Login | None) -> None:
    assert Login.first_of(content) == login


@given(st.binary(max_size=60))
def test_no_password_file_raises_an_exception(content: bytes) -> None:
    Login.first_of(content)


def test_of_a_secret_only_what_is_needed_is_kept_and_nothing_shown() -> None:
    record = SECRETS.decode(
        b'{"metadata": {"name": "a", "namespace": "b", "uid": "c", "resourceVersion": "1"}, '
        b'"data": {"password-file": "YW5uOnNlY3JldA==", "other": "eA=="}}'
    )
    assert record.files == {"password-file": b"ann:secret"}
    assert "secret" not in repr(record).replace("Secret", "")


async def test_a_server_is_told_of_other_memory_as_its_pod_says_or_says_what_is_lacking() -> None:
    with mounted({**CERTIFICATE, **PASSWORDS}) as folder:
        passwords = ("-Y", f"{folder}/password-file")
        async with running(*tls_arguments(folder, verify=2), *passwords, "-m", "64", *ONE_THREAD) as where:
            there = msgspec.structs.replace(pod(BOTH), address=where)
            failure = await limit_setter(without_credentials)(there, Memory(128, "", ""))
            assert failure is not None
            assert failure.why == "it requires a client certificate, and --server-credentials is off"
            known = endpoints(Server(certificate=CERTIFICATE, passwords=PASSWORDS))
            assert await limit_setter(known.to)(there, Memory(128, "", "")) is None
            response = await query((await known.to(there)).endpoint, TIMEOUT_S)
    assert isinstance(response[0], StatsAnswer)
    assert response[0].number("limit_maxbytes") == 128 << 20
