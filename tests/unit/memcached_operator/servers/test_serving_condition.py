"""What the condition Serving says, and which versions are told."""

from __future__ import annotations

import pytest

from memcached_operator.servers.certificates import Certificate, Shown
from memcached_operator.servers.serving_condition import NOT_QUERIED, serving_condition, versions
from memcached_operator.servers.stats_cache import AnswerVerdict, ServerHealth
from operator_runtime import Condition
from tests.unit.memcached_operator.servers.support import A, D, E, F, O, U
from tests.unit.memcached_operator.status_support import pods, reported_status

WAS_GOOD = Condition("Serving", "True", "Answering", "All answer.")
WAS_BAD = Condition("Serving", "False", "NotAnswering", "One does not.")
UNREACHABLE = Condition("Serving", "Unknown", "Unreachable", "It is so.")
LACKING = Condition("Serving", "Unknown", "CredentialsMissing", "It is so.")
FOREIGN = Condition("Serving", "True", "Somebodys", "Somebody wrote this.")


def servers(*verdicts: AnswerVerdict, why: str = "no answer") -> list[ServerHealth]:
    return [ServerHealth(f"c-{number}", verdict, why, "1.6.45") for number, verdict in enumerate(verdicts)]


SLOW = ServerHealth("c-1", A, version="1.6.45", disk="more than 50 requests wait for its disk")

JUDGED = [
    ([], WAS_GOOD, "Unknown", "NotQueried", "No server is ready"),
    (servers(A, A, A), WAS_BAD, "True", "Answering", "All ready servers answer."),
    (servers(A, F), WAS_GOOD, "False", "NotAnswering", "1 of 2 ready servers do not answer: c-1 (no answer)."),
    (servers(F, F, F, F, F), None, "False", "NotAnswering", "c-2 (no answer) and 2 more."),
    (servers(A, E), None, "False", "ConnectionsExhausted", "1 of 2 servers have reached spec.max"),
    (servers(F, E), None, "False", "NotAnswering", "turn connections away: c-1."),
    (
        [*servers(A), SLOW],
        None,
        "False",
        "DiskImpaired",
        "The disks of 1 of 2 servers are slow or damaged: c-1 (more than 50 requests wait for its disk).",
    ),
    ([*servers(F), SLOW], None, "False", "NotAnswering", "The disks of 1 of 2 servers"),
    ([*servers(E), SLOW], None, "False", "ConnectionsExhausted", "The disks of 1 of 2 servers"),
    (servers(O, O, U), WAS_GOOD, "Unknown", "Unreachable", "(no answer): the operator runs outside the pods' network"),
    (servers(O, F), None, "False", "NotAnswering", "c-1"),
    # As long as not all is known, nothing new is said.
    (servers(A, U), None, "Unknown", "NotQueried", "have not answered yet"),
    (servers(A, U), WAS_GOOD, "True", "Answering", "All answer."),
    (servers(A, U), WAS_BAD, "False", "NotAnswering", "One does not."),
    (servers(A, U), FOREIGN, "Unknown", "NotQueried", "have not answered yet"),
    # Nor is taken back what keeps the operator from asking, and what no server tells of is over.
    *((servers(U, U), each, "Unknown", each.reason, "It is so.") for each in (UNREACHABLE, LACKING)),
    *(
        (servers(A, U), each, "Unknown", "NotQueried", "have not answered yet")
        for each in (NOT_QUERIED, serving_condition([], None))
    ),
]


@pytest.mark.parametrize(("health", "last", "status", "reason", "words"), JUDGED)
def test_the_condition_follows_from_what_is_known_of_the_servers(
    health: list[ServerHealth], last: Condition | None, status: str, reason: str, words: str
) -> None:
    condition = serving_condition(health, last)
    assert (condition.type, condition.status, condition.reason) == ("Serving", status, reason)
    assert words in condition.message


def test_where_servers_are_not_queried_the_condition_names_the_flag() -> None:
    condition = reported_status(3, pods(3)).condition("Serving")
    assert condition is not None
    assert (condition.status, condition.reason) == ("Unknown", "NotQueried")
    assert "--server-stats-interval-s" in condition.message


VERSIONS = [
    ([], "1.6.44", "1.6.44"),
    (["1.6.45"], None, "1.6.45"),
    (["1.6.45", "1.6.44", "1.6.45"], "1.6.44", "1.6.44, 1.6.45"),
    (["1.6.45", ""], "1.6.44", "1.6.44"),
    ([f"1.{number}" for number in range(10, 30)], None, "1.10, 1.11, 1.12, 1.13, 1.14, 1.15, 1.16, 1.17"),
]


@pytest.mark.parametrize(("known", "last", "reported"), VERSIONS)
def test_the_versions_are_told_when_all_are_known(known: list[str], last: str | None, reported: str | None) -> None:
    health = [ServerHealth("c", A, "", version) for version in known]
    assert versions(health, last) == reported


def test_without_servers_there_is_no_version() -> None:
    before = reported_status(3, pods(3), health=servers(A, A, A))
    assert reported_status(0, (), last=before, health=[]).version is None
    assert reported_status(3, pods(3), last=before).version is None, "they are queried no more"
    assert reported_status(3, pods(0, 3), last=before, health=[]).version == "1.6.45", "they are still starting"


DAY_S = 86_400.0
NOW_S = 1_000 * DAY_S
NAMES = ("cache.shop.svc", "cache-0.cache.shop.svc")
OLD = Certificate("old", NOW_S - 60 * DAY_S, NOW_S + 30 * DAY_S, NAMES)
NEWER = Certificate("newer", NOW_S - DAY_S, NOW_S + 89 * DAY_S, NAMES)
EXPIRED = Certificate("expired", NOW_S - 90 * DAY_S, NOW_S - DAY_S, NAMES)
FOR_ONE = Certificate("for one", NOW_S - DAY_S, NOW_S + DAY_S, ("cache.shop.svc",))
FOR_NONE = Certificate("for none", NOW_S - DAY_S, NOW_S + DAY_S)
WAS_STALE = Condition("Serving", "False", "CertificateStale", "One is late.")


def having(*shown: tuple[Certificate, float], verdict: AnswerVerdict = A, why: str = "") -> list[ServerHealth]:
    """Servers that have shown a certificate for so many seconds."""
    return [
        ServerHealth(f"c-{number}", verdict, why, shown=Shown(certificate, NOW_S - for_s))
        for number, (certificate, for_s) in enumerate(shown)
    ]


WITH_CERTIFICATES = [
    (having((NEWER, 9)), None, "True", "Answering", "All ready servers answer."),
    (having((EXPIRED, 9), (NEWER, 9)), None, "False", "CertificateExpired", "1 of 2 servers have expired: c-0 (on 19"),
    (having((EXPIRED, 9), verdict=D), None, "False", "CertificateExpired", "c-0"),
    (having((EXPIRED, 9), verdict=F, why="no answer"), None, "False", "NotAnswering", "c-0 (no answer)"),
    (having((EXPIRED, 9), verdict=E), None, "False", "ConnectionsExhausted", "c-0"),
    (having((OLD, 9e9), (NEWER, 599)), None, "True", "Answering", "All"),
    (having((OLD, 9e9), (NEWER, 600)), None, "False", "CertificateStale", "1 of 2 servers have served an older"),
    (having((OLD, 9e9), (NEWER, 5), (NEWER, 600)), None, "False", "CertificateStale", "c-0 (expires on 1972-10-27T"),
    # A new leader does not take back what it has not seen for long enough.
    (having((OLD, 9), (NEWER, 9)), WAS_STALE, "False", "CertificateStale", "c-0"),
    (having((NEWER, 9), (NEWER, 9)), WAS_STALE, "True", "Answering", "All"),
    (having((EXPIRED, 9e9), (OLD, 9e9), (NEWER, 900)), None, "False", "CertificateExpired", "c-0"),
    (
        having((OLD, 9), verdict=D, why="it requires a login"),
        None,
        "Unknown",
        "CredentialsMissing",
        "c-0 (it requires a login).",
    ),
    (having((FOR_ONE, 9)), None, "True", "Answering", "of c-0 lacks names that clients use: cache-0.cache.shop.svc."),
    (
        having((FOR_NONE, 9), verdict=D),
        None,
        "Unknown",
        "CredentialsMissing",
        "use: cache.shop.svc, cache-0.cache.shop.svc.",
    ),
]


@pytest.mark.parametrize(("health", "last", "status", "reason", "words"), WITH_CERTIFICATES)
def test_the_condition_follows_from_the_certificates_that_servers_show(
    health: list[ServerHealth], last: Condition | None, status: str, reason: str, words: str
) -> None:
    condition = serving_condition(health, last, NOW_S, NAMES)
    assert (condition.status, condition.reason) == (status, reason)
    assert words in condition.message


def test_while_servers_are_replaced_none_is_late() -> None:
    health = having((OLD, 9e9), (NEWER, 9e9))
    assert serving_condition(health, WAS_STALE, NOW_S, NAMES, rolling=True).reason == "Answering"
