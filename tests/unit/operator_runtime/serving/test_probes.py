"""Probes as kubelet and people ask them, in Kubernetes' own formats."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any, cast

import pytest

from operator_runtime.cache.reflector import Reflector
from operator_runtime.cache.store import Store
from operator_runtime.client.resources import PODS
from operator_runtime.serving.probes import RECONNECT_GRACE_S, Checks
from operator_runtime.serving.responses import HttpResponse
from operator_runtime.testing.clock import START_S, FakeClock
from tests.unit.operator_runtime.http import get
from tests.unit.things import Thing, decode


def checked(reasons: dict[str, str | None]) -> Checks:
    """Checks of /readyz of these names, each with what it complains of, which the test may change."""
    checks = Checks()
    for name in reasons:
        checks.add_ready(name, partial(reasons.get, name))
    return checks


def respond(checks: Checks, path: str) -> HttpResponse:
    return asyncio.run(checks.answer(get(path)))


def text(response: HttpResponse) -> tuple[int, str]:
    return response.status, response.body.decode()


def test_all_is_well_in_one_word_and_verbose_lists_the_checks() -> None:
    probe = checked({"watch/pods": None})
    assert text(respond(probe, "/readyz")) == text(respond(probe, "/readyz/")) == (200, "ok")
    assert text(respond(probe, "/readyz?verbose")) == (200, "[+]ping ok\n[+]watch/pods ok\nreadyz check passed\n")
    for path in ("/", "/metrics", "/readyzz"):
        assert text(respond(probe, path)) == (404, "there are /healthz and /readyz here\n")


def test_one_that_fails_fails_all_and_keeps_its_reason_unless_it_is_asked_alone() -> None:
    probe = checked({"watch/pods": "silent"})
    listed = "[+]ping ok\n[-]watch/pods failed: reason withheld\nreadyz check failed\n"
    assert text(respond(probe, "/readyz")) == (500, listed)
    assert text(respond(probe, "/readyz?verbose")) == (500, listed)
    assert text(respond(probe, "/readyz/watch/pods")) == (500, "internal server error: silent\n")
    assert text(respond(probe, "/readyz/ping")) == (200, "ok")
    assert respond(probe, "/readyz/nothing").status == 404


def test_a_check_that_raises_fails_and_the_log_has_its_traceback_once(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> str | None:
        raise KeyError("depth")

    probe = Checks()
    probe.add_ready("queue", broken)
    assert text(respond(probe, "/readyz")) == (
        500,
        "[+]ping ok\n[-]queue failed: reason withheld\nreadyz check failed\n",
    )
    reason = "internal server error: the check raised KeyError: 'depth'\n"
    assert text(respond(probe, "/readyz/queue")) == (500, reason)
    (record,) = [each for each in caplog.records if each.exc_info]
    assert record.getMessage() == "the check queue of readyz raised"


def test_checks_of_an_authors_own_have_names_of_their_own() -> None:
    async def wrong() -> str | None:
        return None

    checks = Checks()
    checks.add_health("disk", lambda: None)
    checks.add_ready("disk", lambda: "full")
    assert text(respond(checks, "/healthz/disk")) == (200, "ok")
    assert text(respond(checks, "/readyz/disk")) == (500, "internal server error: full\n")
    for name in ("", "disk", "ping"):
        with pytest.raises(ValueError, match=f"a check of readyz is named '{name}': give each a name of its own"):
            checks.add_ready(name, lambda: None)
    with pytest.raises(TypeError, match="the check other of healthz is a coroutine function"):
        checks.add_health("other", wrong)  # type: ignore[arg-type]


def test_an_excluded_check_is_not_asked_and_one_that_is_not_there_is_warned_of() -> None:
    def never() -> str | None:
        raise AssertionError("asked")

    probe = Checks()
    probe.add_ready("a/b", never)
    assert text(respond(probe, "/readyz?exclude=a/b")) == (200, "ok")
    shown = "[+]ping ok\n[+]a/b excluded: ok\nreadyz check passed\n"
    assert text(respond(probe, "/readyz?exclude=a/b&verbose")) == (200, shown)
    status, shown = text(respond(probe, "/readyz?exclude=a/b&exclude=d&exclude=c&exclude=&verbose"))
    assert status == 200
    assert 'warn: some health checks cannot be excluded: no matches for "c","d"\n' in shown


def test_the_log_says_once_what_begins_to_fail_and_once_that_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    reasons: dict[str, str | None] = {"pods": "not there yet", "nodes": None}
    probe = checked(reasons)
    respond(probe, "/readyz")
    assert not caplog.messages, "what is not there yet is no news"
    reasons["pods"] = None
    respond(probe, "/readyz")
    reasons["pods"] = "silent"
    for _ in range(3):
        respond(probe, "/readyz")
    reasons["nodes"] = "silent too"
    respond(probe, "/readyz?exclude=pods")  # somebody who looks at a part
    respond(probe, "/readyz")
    reasons.update(pods=None, nodes=None)
    for _ in range(2):
        respond(probe, "/readyz")
    assert caplog.messages == ["readyz fails: pods: silent", "readyz fails: nodes: silent too", "readyz passes again"]


@pytest.mark.parametrize(
    ("synced", "silent_s", "reason"),
    [
        (False, 1.0, "the first list of pods in all namespaces is not complete"),
        (True, 1.0, None),
        (True, 70.0 + RECONNECT_GRACE_S, None),
        (True, 71.0 + RECONNECT_GRACE_S, "the watch of pods in all namespaces has brought nothing for 76 s"),
    ],
)
def test_a_watch_is_live_while_bytes_come_or_a_new_one_may_still_be_opened(
    synced: bool, silent_s: float, reason: str | None
) -> None:
    pods: Reflector[Thing] = Reflector(
        cast("Any", None), PODS, decode, Store(), silence_limit_s=70.0, clock=FakeClock()
    )
    pods.last_byte_s = START_S - silent_s
    if synced:
        pods.synced.set()
    checks = Checks()
    checks.add_watch(pods)
    answer = (200, "ok") if reason is None else (500, f"internal server error: {reason}\n")
    assert text(respond(checks, "/readyz/watch/pods")) == answer
