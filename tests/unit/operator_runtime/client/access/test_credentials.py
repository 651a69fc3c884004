"""The rules by which credentials age: period, expiry, single flight, 401, failures; and that nothing shows them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from operator_runtime.client.access.credentials import (
    CachedIdentity,
    ClusterAccess,
    Credentials,
    Identity,
    bearer,
    token_file,
)
from operator_runtime.client.access.tls import ClientTls, Pem
from operator_runtime.client.errors import AuthenticationUnavailable
from operator_runtime.testing.clock import FakeClock
from tests.unit.operator_runtime.client.access.auth_support import Authority

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


T = TypeVar("T")


async def in_time(awaited: Awaitable[T]) -> T:
    async with asyncio.timeout(DEADLINE_S):
        return await awaited


@pytest.mark.parametrize(("lives_s", "kept_s"), [(900, 839), (30, 26)])
async def test_a_credential_is_renewed_a_minute_before_it_expires_and_a_short_one_at_a_tenth(
    bench: Bench, lives_s: float, kept_s: float
) -> None:
    bench.source.expires_at_s = 1000 + lives_s
    await bench.token()
    bench.source.token, bench.source.expires_at_s = "two", 3000
    bench.wait(kept_s)
    assert await bench.token() == "one"
    assert bench.source.runs == 1
    bench.wait(1)
    assert await bench.token() == "two"


async def test_many_callers_share_one_failure_and_the_next_fetch_waits(bench: Bench) -> None:
    bench.source.fault = "the plugin is broken"
    outcomes = await in_time(asyncio.gather(*(bench.token() for _ in range(8)), return_exceptions=True))
    assert {str(outcome) for outcome in outcomes} == {"the plugin is broken"}
    assert bench.source.runs == 1
    bench.source.fault = None
    bench.wait(4)
    with pytest.raises(AuthenticationUnavailable):
        await bench.token()
    bench.wait(1)
    assert await bench.token() == "one"


@pytest.mark.parametrize("refused", [False, True])
async def test_a_fetch_goes_on_although_each_of_its_callers_gives_up(bench: Bench, refused: bool) -> None:
    bench.source.gate = asyncio.Event()
    for _ in range(3):
        caller: asyncio.Task[object] = asyncio.create_task(bench.identity.renew(1.0) if refused else bench.token())
        await in_time(bench.source.running.wait())
        caller.cancel()
        await asyncio.wait({caller})
        bench.wait(10)
    bench.source.gate.set()
    assert await in_time(bench.token()) == "one"
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
        assert await in_time(bench.token()) == "one"
    bench.wait(1)
    late = asyncio.create_task(bench.token())
    bench.source.gate.set()
    assert await in_time(late) == "two"
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
    assert caplog.messages == ["Using the last valid credential: the plugin is broken"]
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
    slow_request = bench.clock.now
    bench.wait(10)
    failed_since = bench.clock.now
    bench.source.token = "two"
    bench.wait(1)
    assert await bench.identity.renew(failed_since)
    assert await bench.token() == "two"
    # Requests that began before the renewal were refused for the old token: no reason to drop the new one.
    for began in (slow_request, slow_request + 5):
        assert await bench.identity.renew(began)
    assert bench.source.runs == 2


async def test_a_401_that_brings_the_same_token_is_no_reason_to_try_again(bench: Bench) -> None:
    await bench.token()
    bench.wait(10)
    failed_since = bench.clock.now
    bench.wait(1)
    assert not await bench.identity.renew(failed_since)
    assert not await bench.identity.renew(failed_since)
    assert bench.source.runs == 2


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
    ("content", "message"),
    [
        (None, "cannot be read (No such file or directory): mount it"),
        (b" \n", "is empty: mount it"),
        (SECRET.encode() + b"\nX-Injected: 1", "holds something other than one token: mount it"),
        (SECRET.encode() + b"\xff", "holds something other than one token: mount it"),
    ],
)
async def test_a_first_token_that_cannot_be_used_names_the_file_and_the_remedy(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(AuthenticationUnavailable) as failure:
        await Bench(token_file(path, "mount it"), max_age_s=60).token()
    assert str(failure.value) == f"token file {path} {message}"


async def test_a_401_reads_a_rotated_client_certificate_before_its_time(tmp_path: Path) -> None:
    authority = Authority()
    certificate, key = (Pem(f"client-{name}", path=tmp_path / name) for name in ("crt", "key"))

    def rotate() -> None:
        pair = authority.issue("jane")
        (tmp_path / "crt").write_bytes(pair.chain)
        (tmp_path / "key").write_bytes(pair.key)

    rotate()
    clock = FakeClock()
    credentials = Credentials(Identity(), ClientTls(clock=clock, certificate=certificate, key=key))
    await credentials.headers()
    clock.advance(1)
    assert not await credentials.refresh(clock.now)
    rotate()
    before = credentials.ssl_context()
    clock.advance(2)
    assert await credentials.refresh(clock.now - 0.5)
    assert credentials.ssl_context() is not before


async def test_nothing_can_be_renewed_about_a_token_in_the_configuration_and_no_repr_shows_a_credential() -> None:
    identity = Identity(bearer(SECRET), Authority().issue("jane"))
    credentials = Credentials(Identity(bearer(SECRET)), None)
    assert await credentials.headers() == {"Authorization": f"Bearer {SECRET}"}
    assert not await credentials.refresh(1.0)
    assert credentials.ssl_context() is None
    access = ClusterAccess("https://a", None, "context a", credentials, f"http://u:{SECRET}@p")
    for value in (identity, identity.certificate, access, credentials, Pem("key", SECRET.encode())):
        assert SECRET not in repr(value)
        assert "PRIVATE" not in repr(value)
