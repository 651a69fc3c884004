"""The rules by which credentials age: period, expiry, single flight, 401, failures; and that nothing shows them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from operator_runtime.client.access.credentials import (
    CachedIdentity,
    ClusterAccess,
    ClusterCredentials,
    Identity,
    StaticIdentity,
    basic,
    bearer,
    token_file,
)
from operator_runtime.client.access.tls import ClientCertificate, Pem, Tls
from operator_runtime.client.errors import AuthenticationUnavailable
from operator_runtime.testing.clock import FakeClock
from tests.unit.operator_runtime.client.access.auth_support import make_authority

DEADLINE_S = 60.0
SECRET = "hunter2hunter2"


class Source:
    """A plugin by hand: hands out what the test puts in, and counts."""

    def __init__(self) -> None:
        self.token = "one"
        self.expires_at_s: float | None = None
        self.fault: str | None = None
        self.runs = 0
        self.gate: asyncio.Event | None = None
        self.running = asyncio.Event()

    async def fetch(self) -> Identity:
        self.runs += 1
        self.running.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.fault is not None:
            raise AuthenticationUnavailable(self.fault)
        return Identity(bearer(self.token), expires_at_s=self.expires_at_s)


class Bench:
    """A cached identity with its clocks, both of which start at 1000."""

    def __init__(self, fetch: Callable[[], Awaitable[Identity]] | None = None, max_age_s: float | None = None) -> None:
        self.clock, self.wall = FakeClock(), FakeClock()
        self.source = Source()
        self.identity = CachedIdentity(
            "the source", fetch or self.source.fetch, clock=self.clock, wall_clock=self.wall, max_age_s=max_age_s
        )

    async def token(self) -> str:
        return (await self.identity.current()).headers["Authorization"].removeprefix("Bearer ")

    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.wall.advance(seconds)


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_a_credential_is_renewed_a_minute_before_it_expires(bench: Bench) -> None:
    bench.source.expires_at_s = 1000 + 900
    await bench.token()
    bench.source.token, bench.source.expires_at_s = "two", 1000 + 1800
    bench.wait(839)
    assert await bench.token() == "one"
    bench.wait(1)
    assert await bench.token() == "two"


async def test_a_short_life_gives_up_a_tenth_of_itself_and_is_still_cached(bench: Bench) -> None:
    bench.source.expires_at_s = 1000 + 30
    await bench.token()
    bench.wait(26)
    await bench.token()
    assert bench.source.runs == 1
    bench.source.expires_at_s = 2000
    bench.wait(1)
    await bench.token()
    assert bench.source.runs == 2


async def test_many_callers_share_one_failure_and_the_next_fetch_waits(bench: Bench) -> None:
    bench.source.fault = "the plugin is broken"
    async with asyncio.timeout(DEADLINE_S):
        outcomes = await asyncio.gather(*(bench.token() for _ in range(8)), return_exceptions=True)
    assert {str(outcome) for outcome in outcomes} == {"the plugin is broken"}
    assert bench.source.runs == 1
    bench.source.fault = None
    bench.wait(4)
    with pytest.raises(AuthenticationUnavailable):
        await bench.token()
    bench.wait(1)
    assert await bench.token() == "one"


async def test_a_caller_that_gives_up_leaves_the_fetch_to_the_others(bench: Bench) -> None:
    bench.source.gate = asyncio.Event()
    first, second = asyncio.create_task(bench.token()), asyncio.create_task(bench.token())
    async with asyncio.timeout(DEADLINE_S):
        await bench.source.running.wait()
    first.cancel()
    bench.source.gate.set()
    async with asyncio.timeout(DEADLINE_S):
        assert await second == "one"
    assert bench.source.runs == 1


@pytest.mark.parametrize("refused", [False, True])
async def test_a_fetch_goes_on_although_each_of_its_callers_gives_up(bench: Bench, refused: bool) -> None:
    bench.source.gate = asyncio.Event()
    for _ in range(3):
        caller: asyncio.Task[object] = asyncio.create_task(bench.identity.renew(1.0) if refused else bench.token())
        async with asyncio.timeout(DEADLINE_S):
            await bench.source.running.wait()
        caller.cancel()
        await asyncio.wait({caller})
        bench.wait(10)
    bench.source.gate.set()
    async with asyncio.timeout(DEADLINE_S):
        assert await bench.token() == "one"
    assert bench.source.runs == 1


async def test_a_good_credential_is_used_beside_a_slow_renewal_and_the_new_one_as_soon_as_it_is_there(
    bench: Bench,
) -> None:
    bench.source.expires_at_s = 1000 + 900
    await bench.token()
    bench.source.gate = asyncio.Event()
    bench.source.token, bench.source.expires_at_s = "two", 1000 + 1800
    for seconds in (841, 30, 28):
        bench.wait(seconds)
        async with asyncio.timeout(DEADLINE_S):
            assert await bench.token() == "one"
    bench.wait(1)
    late = asyncio.create_task(bench.token())
    bench.source.gate.set()
    async with asyncio.timeout(DEADLINE_S):
        assert await late == "two"
    assert bench.source.runs == 2


async def test_a_failure_while_the_old_one_lives_keeps_it_and_warns_once(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.source.expires_at_s = 1000 + 900
    await bench.token()
    bench.source.fault = "the plugin is broken"
    bench.wait(850)
    assert await bench.token() == "one"
    bench.wait(10)
    assert await bench.token() == "one"
    assert [record.message for record in caplog.records] == [
        "Going on with the last good credential: the plugin is broken"
    ]
    bench.wait(40)
    with pytest.raises(AuthenticationUnavailable, match="the plugin is broken"):
        await bench.token()


async def test_a_credential_that_comes_expired_is_a_failure_with_a_remedy(bench: Bench) -> None:
    bench.source.expires_at_s = 999.0
    for _ in range(2):
        with pytest.raises(AuthenticationUnavailable, match=r"the source gave an expired credential; log in again"):
            await bench.token()
    assert bench.source.runs == 1


async def test_a_401_fetches_again_what_is_older_than_the_failed_request(bench: Bench) -> None:
    await bench.token()
    bench.wait(10)
    failed_since = bench.clock.now
    bench.source.token = "two"
    bench.wait(1)
    assert await bench.identity.renew(failed_since)
    assert await bench.token() == "two"
    assert bench.source.runs == 2


async def test_a_401_to_a_request_with_the_older_token_keeps_the_newer_one(bench: Bench) -> None:
    await bench.token()
    slow_request = bench.clock.now
    bench.wait(10)
    bench.source.token = "two"
    assert await bench.identity.renew(slow_request)
    # Requests that began before the renewal were refused for the old token: no reason to drop the new one.
    assert await bench.identity.renew(slow_request + 5)
    assert bench.source.runs == 2


async def test_a_401_that_brings_the_same_token_is_no_reason_to_try_again(bench: Bench) -> None:
    await bench.token()
    bench.wait(10)
    failed_since = bench.clock.now
    bench.wait(1)
    assert not await bench.identity.renew(failed_since)
    assert not await bench.identity.renew(failed_since)
    assert bench.source.runs == 2


async def test_nothing_can_be_renewed_about_a_token_in_the_configuration() -> None:
    credentials = ClusterCredentials(StaticIdentity(bearer("t")), None)
    assert await credentials.headers() == {"Authorization": "Bearer t"}
    assert not await credentials.refresh(1.0)
    assert credentials.ssl_context() is None
    assert credentials.ssl_generation == 0


async def test_an_unreadable_or_emptied_token_file_keeps_the_last_good_token(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("  one \n")
    bench = Bench(token_file(path, "mount it"), max_age_s=60)
    assert await bench.token() == "one"
    path.unlink()
    bench.wait(60)
    assert await bench.token() == "one"
    path.write_text("")
    bench.wait(60)
    assert await bench.token() == "one"
    path.write_text("two")
    bench.wait(5)
    assert await bench.token() == "two"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read (No such file or directory): mount it"),
        (b" \n", "is empty: mount it"),
        (SECRET.encode() + b"\nX-Injected: 1", "holds something other than one token: mount it"),
        (SECRET.encode() + b"\xff", "holds something other than one token: mount it"),
    ],
)
async def test_a_first_token_that_cannot_be_used_names_the_file_and_the_remedy(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(AuthenticationUnavailable) as failure:
        await Bench(token_file(path, "mount it"), max_age_s=60).token()
    assert str(failure.value) == f"token file {path} {said}"


async def test_a_401_reads_a_rotated_client_certificate_before_its_time(tmp_path: Path) -> None:
    authority = make_authority()
    for name, content in zip(("crt", "key"), _pair(authority.issue("jane")), strict=True):
        (tmp_path / name).write_bytes(content)
    clock = FakeClock()
    tls = Tls(
        clock=clock,
        certificate=Pem("client-certificate", path=tmp_path / "crt"),
        key=Pem("client-key", path=tmp_path / "key"),
    )
    credentials = ClusterCredentials(StaticIdentity({}), tls)
    await credentials.headers()
    clock.advance(1)
    assert not await credentials.refresh(clock.now)
    clock.advance(1)
    for name, content in zip(("crt", "key"), _pair(authority.issue("jane")), strict=True):
        (tmp_path / name).write_bytes(content)
    generation = credentials.ssl_generation
    clock.advance(1)
    assert await credentials.refresh(clock.now - 0.5)
    assert credentials.ssl_generation == generation + 1


def _pair(certificate: ClientCertificate) -> tuple[bytes, bytes]:
    return certificate.chain, certificate.key


def test_basic_credentials_are_utf8_in_base64() -> None:
    assert basic("jané", "p:w") == {"Authorization": "Basic amFuw6k6cDp3"}


def test_no_repr_shows_a_credential(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    identity = Identity(bearer(SECRET), make_authority().issue("jane"))
    access = ClusterAccess(
        "https://a", None, "context a", ClusterCredentials(StaticIdentity(bearer(SECRET)), None), f"http://u:{SECRET}@p"
    )
    for value in (identity, identity.certificate, access, access.credentials, Pem("key", SECRET.encode())):
        assert SECRET not in repr(value)
        assert "PRIVATE" not in repr(value)
