"""The endpoint's answers, and the clients' own parsers."""

from __future__ import annotations

import pytest

from memcached_operator.discovery.discovery_protocol import answer, version_of

SERVERS = b"1700000000\nshop-0.shop.default.svc|10.0.0.1|11211 shop-1.shop.default.svc|fd00::2|11211\n"
NONE = b"1700000001\n\n"
LENGTH = len(SERVERS)
BODY = SERVERS + b"\r\nEND\r\n"


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (b"config get cluster", b"CONFIG cluster 0 %d\r\n%b" % (LENGTH, BODY)),
        (b"  config  get cluster ", b"CONFIG cluster 0 %d\r\n%b" % (LENGTH, BODY)),
        (b"get AmazonElastiCache:cluster", b"VALUE AmazonElastiCache:cluster 0 %d\r\n%b" % (LENGTH, BODY)),
        (b"gets AmazonElastiCache:cluster", b"VALUE AmazonElastiCache:cluster 0 %d 1700000000\r\n%b" % (LENGTH, BODY)),
        (b"version", b"VERSION 1.4.14\r\n"),
        (b"stats", b"STAT version 1.4.14\r\nEND\r\n"),
        (b"quit", None),
        (b"", b"ERROR\r\n"),
        (b"config get other", b"ERROR\r\n"),
        (b"config set cluster 0 0 1", b"ERROR\r\n"),
        (b"get key", b"ERROR\r\n"),
        (b"get AmazonElastiCache:cluster key", b"ERROR\r\n"),
        (b"stats items", b"ERROR\r\n"),
        (b"CONFIG GET CLUSTER", b"ERROR\r\n"),
    ],
)
def test_each_request_has_its_answer(request_: bytes, expected: bytes | None) -> None:
    assert answer(request_, SERVERS) == expected


@pytest.mark.parametrize("servers", [b"", NONE])
@pytest.mark.parametrize("request_", [b"config get cluster", b"get AmazonElastiCache:cluster"])
def test_a_list_of_no_servers_has_no_answer_so_that_clients_keep_theirs(request_: bytes, servers: bytes) -> None:
    assert answer(request_, servers) is None
    assert answer(b"version", servers) == b"VERSION 1.4.14\r\n"


@pytest.mark.parametrize(
    ("servers", "version"),
    [(SERVERS, 1_700_000_000), (NONE, 1_700_000_001), (b"", 0), (b"x\n", 0), (b"-1\n", 0), (b"9" * 5000, 0)],
)
def test_the_first_line_is_the_version(servers: bytes, version: int) -> None:
    assert version_of(servers) == version
