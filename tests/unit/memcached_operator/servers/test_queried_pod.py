"""How servers are spoken to without credentials, and what is said where these are lacking."""

from __future__ import annotations

import msgspec
import pytest

from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.servers.queried_pod import Resolved, without_credentials
from memcached_operator.servers.server_connection import Endpoint, ErrorKind, Failure
from memcached_operator.servers.transport import PLAIN, Transport
from tests.unit.memcached_operator.servers.support import server_pod

TLS, REQUIRE = Transport(tls=True), Transport(tls=True, client_certificate=True)


def pod(transport: Transport) -> PodRecord:
    return msgspec.structs.replace(server_pod(), transport=transport)


@pytest.mark.parametrize(
    "transport", [REQUIRE, Transport(passwords=True), msgspec.structs.replace(REQUIRE, passwords=True)]
)
async def test_who_may_read_no_secret_says_so(transport: Transport) -> None:
    resolved = await without_credentials(pod(transport))
    assert (resolved.endpoint.login, resolved.endpoint.has_certificate) == (None, False)
    assert resolved.lacks == "--server-credentials is off"


async def test_a_server_that_hands_over_is_asked_on_the_port_of_its_peers() -> None:
    ports = [(await without_credentials(pod(each))).endpoint.port for each in (PLAIN, Transport(peers_port=True), TLS)]
    assert ports == [11211, 11210, 11211]


FAILURES = [
    (Failure(ErrorKind.DENIED, "it requires a login"), "x is off", "it requires a login, and x is off"),
    (Failure(ErrorKind.DENIED, "it refuses the login of ann"), "", "it refuses the login of ann"),
    (Failure(ErrorKind.SILENT, "no answer"), "x is off", "no answer"),
]


@pytest.mark.parametrize(("failure", "lacks", "why"), FAILURES)
def test_who_is_denied_says_what_was_lacking(failure: Failure, lacks: str, why: str) -> None:
    assert Resolved(Endpoint(""), lacks).explained(failure) == (failure.kind, why)
