"""What the reflector says to the operator on call: what keeps a watch from working, once, and what to do about it."""

from __future__ import annotations

import logging

import msgspec
import pytest

from operator_runtime.client.errors import (
    AuthenticationUnavailable,
    KubeError,
    MalformedAnswer,
    StreamStalled,
    Unreachable,
    classify,
)
from tests.unit.operator_runtime.cache.reflector_support import (
    EXPIRED_EVENT,
    FORBIDDEN,
    TEXT_404,
    Answer,
    Run,
    bookmark,
    end_mark,
    line,
    logged,
)
from tests.unit.things import thing


@pytest.fixture(autouse=True)
def _log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "operator_runtime.cache.reflector")


# Words for the operator on call.


async def test_a_missing_crd_is_said_once_with_the_remedy_and_so_is_its_return(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = await Run(*[TEXT_404] * 6, [end_mark(10)], crd_hint="Install the CRD.").to_the_end()
    assert logged(caplog) == [
        (
            "ERROR",
            "cannot watch things.example.com in namespace ns: 404 NotFound: 404 page not found. Install the CRD. "
            "The operator retries and recovers by itself.",
        ),
        ("INFO", "watching things.example.com in namespace ns again"),
    ]
    assert run.delays_s[:6] == [0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert run.reflector.synced.is_set()


CARTS = {"name": "carts", "kind": "Cart", "namespaced": True}


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        (
            [CARTS, {"name": "thingses", "kind": "Thing", "namespaced": True}],
            "The plural of Thing in example.com/v1 is",
        ),
        ([CARTS, {"name": "things", "kind": "Thing", "namespaced": False}], "The kind Thing is cluster-scoped: decl"),
        (
            [CARTS, {"name": "carts/status", "kind": "Cart", "namespaced": True}],
            "Install it. example.com/v1 has carts.",
        ),
        (None, "Install it. example.com/v1 has no kind at all."),
    ],
)
async def test_what_the_group_has_instead_of_a_missing_kind_is_asked_for_once_and_said(
    caplog: pytest.LogCaptureFixture, resources: object, words: str
) -> None:
    run = Run(*[TEXT_404] * 6, crd_hint="Install it.")
    run.server.discovery = msgspec.json.encode({"kind": "APIResourceList", "resources": resources})
    await run.to_the_end()
    ((_, message),) = logged(caplog)
    assert f"cannot watch things.example.com in namespace ns: 404 NotFound: 404 page not found. {words}" in message
    assert run.server.discoveries == 1


@pytest.mark.parametrize("answer", [b"<html>", b'{"resources": [{}]}', FORBIDDEN])
async def test_a_discovery_that_tells_nothing_changes_no_word(
    caplog: pytest.LogCaptureFixture, answer: bytes | KubeError
) -> None:
    run = Run(*[TEXT_404] * 6)
    run.server.discovery = answer
    await run.to_the_end()
    ((_, message),) = logged(caplog)
    assert (
        "The kind Thing is not served: install the definition (CRD) things.example.com. The operator retries" in message
    )


REFUSED, CUT = Unreachable("refused"), Unreachable("reset")
BOOTING: list[Answer] = [FORBIDDEN, classify(503, "", "", 5.0), classify(429, "", "storage is (re)initializing", 1.0)]
PASSING: list[Answer] = [CUT, [bookmark(11)]]
AGAIN = ("INFO", "watching things.example.com in namespace ns again")
LOGGED: dict[str, tuple[list[Answer], list[tuple[str, str]]]] = {
    "a booting API server": ([[end_mark(10), CUT], *BOOTING, [EXPIRED_EVENT], [end_mark(20)]], []),
    "an outage, and not its relist": (
        [[end_mark(10), CUT], *[REFUSED] * 5, FORBIDDEN, [EXPIRED_EVENT], [end_mark(20)]],
        [("ERROR", "cannot watch things.example.com in namespace ns: refused. Ch"), AGAIN],
    ),
    "causes that take turns": (
        [FORBIDDEN, REFUSED] * 3,
        [
            ("ERROR", "cannot watch things.example.com in namespace ns: 403 Forbidd"),
            ("ERROR", "cannot watch things.example.com in namespace ns: refused. Ch"),
        ],
    ),
    "single failures between healthy streams": ([[end_mark(10)], *PASSING * 5], []),
}


@pytest.mark.parametrize(("answers", "expected"), LOGGED.values(), ids=LOGGED)
async def test_what_goes_on_is_said_once_and_what_passes_not_at_all(
    caplog: pytest.LogCaptureFixture, answers: list[Answer], expected: list[tuple[str, str]]
) -> None:
    await Run(*answers).to_the_end()
    assert [(level, message[:60]) for level, message in logged(caplog)] == expected


async def test_a_watch_that_fell_silent_is_said_the_first_time_and_an_error_when_the_next_one_is_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stalled = StreamStalled("no byte for 70 s")
    await Run([end_mark(10), stalled], [bookmark(11)], [stalled], [stalled], [end_mark(12)]).to_the_end()
    things = "things.example.com in namespace ns"
    silent = (
        f"the watch of {things} was silent (no byte for 70 s) and is replaced; changes of that time "
        "arrive now. If it happens again, check what is between the operator and the API server."
    )
    assert logged(caplog) == [
        ("WARNING", silent),
        ("WARNING", silent),
        (
            "ERROR",
            f"cannot watch {things}: no byte for 70 s. Check what is between the operator and the API server: "
            "a proxy, a load balancer. The operator retries and recovers by itself.",
        ),
        ("INFO", f"watching {things} again"),
    ]


@pytest.mark.parametrize(
    "answer",
    [
        [EXPIRED_EVENT],
        [b"<html>Please log in</html>"],
        [line("ERROR", {"kind": "Status", "code": 403})],
        [line("ADDED", thing("a", 1)), Unreachable("reset")],
    ],
    ids=["410", "a proxy's page", "403", "half a snapshot"],
)
async def test_bytes_that_are_no_event_are_no_recovery(caplog: pytest.LogCaptureFixture, answer: Answer) -> None:
    await Run(*[answer] * 6).to_the_end()
    assert [level for level, _ in logged(caplog)] == ["ERROR"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (AuthenticationUnavailable("no token: log in again"), "no token: log in again. The operator retries"),
        (classify(401), "401 Unauthorized: no message. Give the operator a credential"),
        (classify(403, "", 'User "system:anonymous" cannot list'), "The request carried no credential"),
        (classify(500, "", "etcd is down."), "500 ServerError: etcd is down. See the API server's log."),
        (classify(400, "", "found '='"), "400 Invalid: found '='. Correct the selector 'app=x'"),
        (MalformedAnswer("a line is too long"), "a line is too long. Check what is between"),
        (Unreachable("refused"), "refused. Check that the API server runs"),
        ([], "the answers end without an event. Check what is between"),
    ],
)
async def test_each_trouble_has_words_and_a_remedy(
    caplog: pytest.LogCaptureFixture, answer: Answer, words: str
) -> None:
    await Run(answer, answer).to_the_end()
    ((_, message),) = logged(caplog)
    assert words in message


# What is told to those who wait for it.


@pytest.mark.parametrize("refused", [FORBIDDEN, TEXT_404])
async def test_a_first_list_that_is_refused_is_waited_for_unless_it_is_optional(refused: KubeError) -> None:
    run = Run(refused)
    run.reflector.optional = True
    await run.to_the_end()
    assert (run.reflector.refusal, run.reflector.settled.is_set()) == (refused, True)
    assert not run.reflector.synced.is_set()
    run.reflector.optional = False
    assert not run.reflector.settled.is_set()


async def test_a_first_list_that_merely_fails_is_waited_for_also_where_it_is_optional() -> None:
    run = Run(Unreachable("no route"), classify(503), classify(401), MalformedAnswer("half a line"))
    run.reflector.optional = True
    await run.to_the_end()
    assert (run.reflector.refusal, run.reflector.settled.is_set()) == (None, False)


async def test_a_list_that_comes_late_is_told_and_a_refusal_after_it_is_no_longer_one_of_the_first_list() -> None:
    late = []
    run = Run(FORBIDDEN, [line("ADDED", thing("a", 1)), end_mark(10)], FORBIDDEN, FORBIDDEN)
    run.reflector.when_late.append(lambda: late.append((sorted(run.sizes), run.reflector.refusal)))
    await run.to_the_end()
    assert late == [(["a"], None)]
    assert run.reflector.refusal is None
    never_refused = Run(Unreachable("no route"), [end_mark(10)])
    never_refused.reflector.when_late.append(lambda: late.append(([], None)))
    await never_refused.to_the_end()
    assert len(late) == 1
    assert never_refused.reflector.settled.is_set()
