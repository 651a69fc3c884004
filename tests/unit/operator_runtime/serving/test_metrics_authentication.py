"""Who may scrape, against an API server that answers reviews as the test says."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Container
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec
import pytest

from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import Forbidden, Unreachable
from operator_runtime.serving.http_server import MAX_CONNECTIONS, HttpServer
from operator_runtime.serving.metrics_authentication import (
    ACCOUNT_S,
    ALLOWED_S,
    DENIED_S,
    MAX_REMEMBERED,
    MAX_UNKNOWN,
    MAX_UNKNOWN_OF_ADDRESS,
    MetricsAuthentication,
    RememberedAnswers,
)
from operator_runtime.serving.scrape import Scrapes
from operator_runtime.settings.listen_address import ListenAddress
from operator_runtime.telemetry.metrics import Metrics
from operator_runtime.testing.clock import FakeClock
from tests.unit.operator_runtime.http import connected, get, get_bytes
from tests.unit.operator_runtime.running import DEADLINE_S, settle

SHOPS = "/metrics/shops"

USER = {"uid": "u-1", "groups": ["a", "b"], "extra": {"key": ["value"]}}


@dataclass(eq=False)
class Reviews(ApiClient):
    """Knows one token, and whether its account may, by path if not everywhere."""

    token: str = "good"
    allowed: bool = True
    paths: Container[str] | None = None
    error: Exception | None = None
    expected: list[tuple[str, Any]] = field(default_factory=list)
    go_on: asyncio.Event | None = None  # what is asked about tokens that it does not know is answered only then

    async def request(self, method: str, path: str, **request: Any) -> bytes:
        assert method == "POST"
        await asyncio.sleep(0)
        question = msgspec.json.decode(request["body"])
        assert path.endswith(f"/{question['kind'].lower()}s")
        assert path.startswith(f"/apis/{question['apiVersion']}/")
        self.expected.append((question["kind"], question["spec"]))
        if self.error is not None:
            raise self.error
        if question["kind"] == "TokenReview":
            known = question["spec"]["token"] == self.token
            if not known and self.go_on is not None:
                await self.go_on.wait()
            user = USER | {"username": "prometheus"}
            status: object = {"authenticated": True, "user": user} if known else {"user": {}, "error": "unknown"}
        else:
            path = question["spec"]["nonResourceAttributes"]["path"]
            status = {"allowed": self.allowed and (self.paths is None or path in self.paths)}
        answer = msgspec.json.encode(question | {"status": status})
        request["expected"].check(answer)
        return answer

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.expected]


@pytest.fixture
def reviews() -> Reviews:
    return Reviews()


@pytest.fixture
def authentication(reviews: Reviews, clock: FakeClock) -> MetricsAuthentication:
    return MetricsAuthentication(reviews, paths=("/metrics", SHOPS), clock=clock)


async def status_of(
    authentication: MetricsAuthentication, authorization: str | None, peer: str = "10.0.0.1", path: str = "/metrics"
) -> int:
    """What is answered in place of what is there, 200 for that itself."""
    headers = {} if authorization is None else {"authorization": authorization}
    refusal = await authentication.refusal(get(path, peer=peer, **headers))
    return 200 if refusal is None else refusal.status


@pytest.mark.parametrize("authorization", [None, "", "Basic Zm9v", "Bearer", "Bearer ", "Bearer \u0142"])
async def test_without_a_token_nobody_is_asked(
    authentication: MetricsAuthentication, reviews: Reviews, authorization: str | None
) -> None:
    assert await status_of(authentication, authorization) == 401
    assert not reviews.expected


async def test_who_may_get_the_metrics_sees_them(authentication: MetricsAuthentication, reviews: Reviews) -> None:
    assert await status_of(authentication, "Bearer good") == 200
    resource = {"path": "/metrics", "verb": "get"}
    assert reviews.expected == [
        ("TokenReview", {"token": "good"}),
        ("SubjectAccessReview", USER | {"user": "prometheus", "nonResourceAttributes": resource}),
    ]


@pytest.mark.parametrize(
    ("may_get", "answers"),
    [
        ({"/metrics"}, {"/metrics": 200, SHOPS: 403, "/elsewhere": 200}),
        ({SHOPS}, {"/metrics": 403, SHOPS: 200, "/elsewhere": 403}),
        ({"/metrics", SHOPS}, {"/metrics": 200, SHOPS: 200, "/elsewhere": 200}),
        ({"/elsewhere"}, {"/metrics": 403, SHOPS: 403, "/elsewhere": 403}),
    ],
)
async def test_each_path_takes_its_own_permission_and_one_that_is_not_there_that_of_the_metrics(
    authentication: MetricsAuthentication, reviews: Reviews, may_get: set[str], answers: dict[str, int]
) -> None:
    reviews.paths = may_get
    for _ in range(2):  # asked, and remembered
        assert {path: await status_of(authentication, "Bearer good", path=path) for path in answers} == answers
    assert reviews.kinds() == ["TokenReview", *["SubjectAccessReview"] * 2]


async def test_answers_are_remembered_each_for_its_time(
    authentication: MetricsAuthentication, reviews: Reviews, clock: FakeClock
) -> None:
    began = clock.now
    for after_s, expected in (
        (0.0, ["TokenReview", "SubjectAccessReview"]),
        (ACCOUNT_S - 1, []),
        (ACCOUNT_S, ["TokenReview"]),
        (2 * ACCOUNT_S, ["TokenReview"]),
        (ALLOWED_S, ["TokenReview", "SubjectAccessReview"]),
    ):
        clock.advance_to(began + after_s)
        reviews.expected.clear()
        assert await status_of(authentication, "Bearer good") == 200
        assert reviews.kinds() == expected, f"after {after_s} s"


async def test_a_permission_that_was_granted_counts_after_half_a_minute(
    authentication: MetricsAuthentication, reviews: Reviews, clock: FakeClock
) -> None:
    reviews.allowed = False
    assert await status_of(authentication, "bearer good") == 403
    reviews.allowed = True
    clock.advance(DENIED_S - 1)
    assert await status_of(authentication, "Bearer good") == 403
    clock.advance(1)
    assert await status_of(authentication, "Bearer good") == 200


async def test_scrapes_at_the_same_time_ask_once(authentication: MetricsAuthentication, reviews: Reviews) -> None:
    assert await asyncio.gather(*(status_of(authentication, "Bearer good") for _ in range(5))) == [200] * 5
    assert reviews.kinds() == ["TokenReview", "SubjectAccessReview"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Unreachable("refused."), "so every scrape is refused: refused."),
        (Forbidden(403), "Grant the operator's account create on tokenreviews.authentication.k8s.io"),
    ],
)
async def test_while_the_api_server_cannot_be_asked_nobody_may_and_the_log_says_so_once(
    authentication: MetricsAuthentication,
    reviews: Reviews,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    reason: str,
) -> None:
    caplog.set_level(logging.INFO)
    reviews.error = error
    for _ in range(3):
        assert await status_of(authentication, "Bearer good") == 503
    (message,) = caplog.messages
    assert message.startswith("cannot review access to metrics, ")
    assert reason in message
    reviews.error = None
    assert await status_of(authentication, "Bearer good") == 200


# Strangers: tokens that nobody knows must not keep others out.

MALFORMED = "10.0.0.66"


class UnknownTokens:
    """Requests with bogus tokens, none of which the API server answers before it may."""

    def __init__(self, authentication: MetricsAuthentication, reviews: Reviews, *, addresses: int = 1) -> None:
        reviews.go_on = asyncio.Event()
        peers = [f"{MALFORMED}.{number % addresses}" for number in range(64)]
        expected = (status_of(authentication, f"Bearer bogus-{number}", peer=peer) for number, peer in enumerate(peers))
        self.tasks = [asyncio.create_task(each) for each in expected]
        self._reviews = reviews

    async def waiting(self) -> int:
        await settle()
        assert {task.result() for task in self.tasks if task.done()} <= {429}
        return sum(not task.done() for task in self.tasks)

    async def answered(self) -> set[int]:
        assert self._reviews.go_on is not None
        self._reviews.go_on.set()
        return set(await asyncio.gather(*self.tasks))


@pytest.mark.parametrize(("addresses", "wait"), [(1, MAX_UNKNOWN_OF_ADDRESS), (64, MAX_UNKNOWN)])
async def test_few_unknown_tokens_wait_and_the_others_are_told_to_come_again(
    authentication: MetricsAuthentication, reviews: Reviews, addresses: int, wait: int
) -> None:
    unknown = UnknownTokens(authentication, reviews, addresses=addresses)
    assert await unknown.waiting() == wait
    scrape = asyncio.create_task(status_of(authentication, "Bearer good", peer="10.0.0.1"))
    await settle()
    assert await unknown.answered() == {401, 429}
    assert await scrape == (200 if addresses == 1 else 429), "a new scraper gets its turn, among others' of one address"
    assert await status_of(authentication, "Bearer another", peer=f"{MALFORMED}.0") == 401, "there is room again"


async def test_who_is_known_is_not_forgotten_for_unknown_tokens(
    authentication: MetricsAuthentication, reviews: Reviews
) -> None:
    assert await status_of(authentication, "Bearer good") == 200
    for number in range(MAX_REMEMBERED + 1):
        assert await status_of(authentication, f"Bearer bogus-{number}") == 401
    reviews.expected.clear()
    assert await status_of(authentication, "Bearer good") == 200
    assert reviews.expected == []


async def test_a_token_that_was_revoked_is_unknown(
    authentication: MetricsAuthentication, reviews: Reviews, clock: FakeClock
) -> None:
    assert await status_of(authentication, "Bearer good") == 200
    clock.advance(ACCOUNT_S)
    reviews.token = "another"
    assert await status_of(authentication, "Bearer good") == 401
    clock.advance(ACCOUNT_S)
    unknown = UnknownTokens(authentication, reviews, addresses=64)
    await unknown.waiting()
    assert await status_of(authentication, "Bearer good") == 429
    await unknown.answered()


async def test_64_bogus_tokens_do_not_keep_a_scraper_from_the_server(
    authentication: MetricsAuthentication, reviews: Reviews, clock: FakeClock
) -> None:
    metrics = Scrapes({"/metrics": Metrics()}, authentication.refusal)
    server = HttpServer("metrics", "--flag", ListenAddress("127.0.0.1", 0), metrics.answer)

    async def scraped(token: str = "good") -> bytes:
        async with connected(server.url) as client:
            client.writer.write(get_bytes("/metrics", f"Authorization: Bearer {token}"))
            return await client.reader.readline()

    async with server, asyncio.timeout(DEADLINE_S):
        assert await scraped() == b"HTTP/1.1 200 OK\r\n"
        clock.advance(ALLOWED_S)
        reviews.go_on = asyncio.Event()
        status_lines = [asyncio.create_task(scraped(f"bogus-{number}")) for number in range(MAX_CONNECTIONS)]
        # Those that may not wait are told so, which shows that all were taken in.
        for each in islice(asyncio.as_completed(status_lines), MAX_CONNECTIONS - MAX_UNKNOWN_OF_ADDRESS):
            assert await each == b"HTTP/1.1 429 Too Many Requests\r\n"
        for _ in range(3):
            assert await scraped() == b"HTTP/1.1 200 OK\r\n"
        reviews.go_on.set()
        await asyncio.gather(*status_lines)


def test_no_more_is_remembered_than_is_bearable() -> None:
    answers = RememberedAnswers[bool](FakeClock())
    for number in range(MAX_REMEMBERED + 1):
        answers.put(str(number).encode(), True, 60.0)
    assert answers.get(b"0") is None
    assert answers.get(b"1") is True
    assert answers.get(str(MAX_REMEMBERED).encode()) is True
