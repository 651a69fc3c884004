"""Who may scrape, against an API server that answers reviews as the test says."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from memcached_operator.kube.errors import Forbidden, Unreachable
from memcached_operator.runtime.serving.http_messages import HttpRequest
from memcached_operator.runtime.serving.scrape_access import (
    ACCOUNT_S,
    ALLOWED_S,
    DENIED_S,
    MAX_REMEMBERED,
    Remembered,
    ReviewedAccess,
)
from memcached_operator.testing.clock import FakeClock

USER = {"username": "system:serviceaccount:monitoring:prometheus", "uid": "u-1", "groups": ["a", "b"],
        "extra": {"key": ["value"]}}  # fmt: skip


@dataclass
class Reviews:
    """Knows one token, and whether its account may."""

    token: str = "good"
    allowed: bool = True
    error: Exception | None = None
    asked: list[tuple[str, Any]] = field(default_factory=list)

    async def request(self, method: str, path: str, *, body: bytes) -> bytes:
        assert method == "POST"
        await asyncio.sleep(0)
        question = msgspec.json.decode(body)
        assert path.endswith(f"/{question['kind'].lower()}s")
        assert path.startswith(f"/apis/{question['apiVersion']}/")
        self.asked.append((question["kind"], question["spec"]))
        if self.error is not None:
            raise self.error
        if question["kind"] == "TokenReview":
            known = question["spec"]["token"] == self.token
            status: object = {"authenticated": True, "user": USER} if known else {"user": {}, "error": "unknown"}
        else:
            status = {"allowed": self.allowed}
        return msgspec.json.encode({"kind": question["kind"], "status": status})

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.asked]


@pytest.fixture
def reviews() -> Reviews:
    return Reviews()


@pytest.fixture
def access(reviews: Reviews, clock: FakeClock) -> ReviewedAccess:
    return ReviewedAccess(reviews, clock=clock)


async def status_of(access: ReviewedAccess, authorization: str | None, path: str = "/metrics") -> int:
    """What is answered in place of what is there, 200 for that itself."""
    headers = {} if authorization is None else {"authorization": authorization}
    refusal = await access.refusal(HttpRequest("GET", path, headers=headers), path)
    return 200 if refusal is None else refusal.status


@pytest.mark.parametrize("authorization", [None, "", "Basic Zm9v", "Bearer", "Bearer "])
async def test_without_a_token_nobody_is_asked(
    access: ReviewedAccess, reviews: Reviews, authorization: str | None
) -> None:
    assert await status_of(access, authorization) == 401
    assert not reviews.asked


async def test_who_may_get_the_metrics_sees_them(access: ReviewedAccess, reviews: Reviews) -> None:
    assert await status_of(access, "Bearer good") == 200
    user = USER["username"]
    resource = {"path": "/metrics", "verb": "get"}
    assert reviews.asked == [
        ("TokenReview", {"token": "good"}),
        (
            "SubjectAccessReview",
            {"user": user, "nonResourceAttributes": resource, **{key: USER[key] for key in ("uid", "groups", "extra")}},
        ),
    ]


async def test_each_path_takes_a_right_of_its_own(access: ReviewedAccess, reviews: Reviews) -> None:
    assert await status_of(access, "Bearer good") == 200
    reviews.allowed = False
    assert await status_of(access, "Bearer good", "/debug/queue") == 403
    assert reviews.asked[-1][1]["nonResourceAttributes"] == {"path": "/debug/queue", "verb": "get"}
    assert await status_of(access, "Bearer good") == 200, "remembered"


async def test_who_may_not_is_told_so(access: ReviewedAccess, reviews: Reviews) -> None:
    reviews.allowed = False
    assert await status_of(access, "bearer good") == 403


async def test_a_token_that_the_api_server_does_not_know_is_nobodys(access: ReviewedAccess, reviews: Reviews) -> None:
    assert await status_of(access, "Bearer bad") == 401
    assert reviews.kinds() == ["TokenReview"]


async def test_answers_are_remembered_each_for_its_time(
    access: ReviewedAccess, reviews: Reviews, clock: FakeClock
) -> None:
    began = clock.now
    for after_s, asked in (
        (0.0, ["TokenReview", "SubjectAccessReview"]),
        (ACCOUNT_S - 1, []),
        (ACCOUNT_S, ["TokenReview"]),
        (2 * ACCOUNT_S, ["TokenReview"]),
        (ALLOWED_S, ["TokenReview", "SubjectAccessReview"]),
    ):
        clock.advance_to(began + after_s)
        reviews.asked.clear()
        assert await status_of(access, "Bearer good") == 200
        assert reviews.kinds() == asked, f"after {after_s} s"


async def test_a_right_that_was_granted_counts_after_half_a_minute(
    access: ReviewedAccess, reviews: Reviews, clock: FakeClock
) -> None:
    reviews.allowed = False
    assert await status_of(access, "Bearer good") == 403
    reviews.allowed = True
    clock.advance(DENIED_S - 1)
    assert await status_of(access, "Bearer good") == 403
    clock.advance(1)
    assert await status_of(access, "Bearer good") == 200


async def test_scrapes_at_the_same_time_ask_once(access: ReviewedAccess, reviews: Reviews) -> None:
    assert await asyncio.gather(*(status_of(access, "Bearer good") for _ in range(5))) == [200] * 5
    assert reviews.kinds() == ["TokenReview", "SubjectAccessReview"]


async def test_while_the_api_server_cannot_be_asked_nobody_may_and_the_log_says_so_once(
    access: ReviewedAccess, reviews: Reviews, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    reviews.error = Unreachable("refused.")
    for _ in range(3):
        assert await status_of(access, "Bearer good") == 503
    assert caplog.messages == ["cannot ask the API server who may scrape, so nobody may: refused."]
    reviews.error = None
    assert await status_of(access, "Bearer good") == 200


async def test_a_missing_right_of_ours_is_named(
    access: ReviewedAccess, reviews: Reviews, caplog: pytest.LogCaptureFixture
) -> None:
    reviews.error = Forbidden(403, "Forbidden", "no")
    assert await status_of(access, "Bearer good") == 503
    assert "Grant the operator's account create on tokenreviews.authentication.k8s.io" in caplog.text


def test_no_more_is_remembered_than_is_bearable() -> None:
    answers = Remembered[bool](FakeClock())
    for number in range(MAX_REMEMBERED + 1):
        answers.put(str(number).encode(), True, 60.0)
    assert answers.get(b"0") is None
    assert answers.get(b"1") is True
    assert answers.get(str(MAX_REMEMBERED).encode()) is True
