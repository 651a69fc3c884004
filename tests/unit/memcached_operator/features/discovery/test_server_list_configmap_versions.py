"""The list of an endpoint: its version, and addresses that follow pods."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from memcached_operator.features.discovery.server_list_configmap import (
    NO_CLUSTER,
    ClusterList,
    ClusterServers,
    next_cluster,
    read_cluster,
)

NOW_S = 1_800_000_000
ZERO, ONE = "shop-0.shop.default.svc:11211", "shop-1.shop.default.svc:11211"
NODE_ZERO, NODE_ONE = "shop-0.shop.default.svc|10.0.0.1|11211", "shop-1.shop.default.svc|10.0.0.2|11211"
ADDRESSES = {"shop-0": "10.0.0.1", "shop-1": "10.0.0.2"}
BOTH = ClusterServers((ZERO, ONE), addresses=ADDRESSES, now_s=NOW_S)
FORMER = ClusterList(NOW_S - 100, (NODE_ZERO, NODE_ONE))


@pytest.mark.parametrize(
    ("former", "is_ours", "known", "expected"),
    [
        (NO_CLUSTER, False, BOTH, ClusterList(NOW_S, (NODE_ZERO, NODE_ONE))),
        (FORMER, True, BOTH, FORMER),
        # Another client has changed the ConfigMap, and endpoints may have shown that to clients.
        (FORMER, False, BOTH, ClusterList(NOW_S, FORMER.nodes)),
        (FORMER, True, BOTH._replace(servers=(ZERO,)), ClusterList(NOW_S, (NODE_ZERO,))),
        (FORMER, True, BOTH._replace(servers=(ONE, ZERO)), ClusterList(NOW_S, (NODE_ONE, NODE_ZERO))),
        (FORMER, True, BOTH._replace(servers=()), ClusterList(NOW_S, ())),
        # Pods without an address: being replaced, not there, and never there.
        (FORMER, True, BOTH._replace(addresses={"shop-0": "10.0.0.1"}), FORMER),
        (FORMER, True, BOTH._replace(addresses={}), FORMER),
        (
            NO_CLUSTER,
            True,
            BOTH._replace(servers=(ZERO,), addresses={}),
            ClusterList(NOW_S, ("shop-0.shop.default.svc|shop-0.shop.default.svc|11211",)),
        ),
        # A replaced pod, under the same name.
        (
            FORMER,
            True,
            BOTH._replace(addresses=ADDRESSES | {"shop-0": "fd00::9"}),
            ClusterList(NOW_S, ("shop-0.shop.default.svc|fd00:0:0:0:0:0:0:9|11211", NODE_ONE)),
        ),
        # A Deployment's servers are known by their addresses.
        (
            NO_CLUSTER,
            True,
            ClusterServers(("10.0.0.7:11211",), now_s=NOW_S),
            ClusterList(NOW_S, ("10.0.0.7|10.0.0.7|11211",)),
        ),
        (
            NO_CLUSTER,
            True,
            ClusterServers(("[fd00::70:7]:11211",), now_s=NOW_S),
            ClusterList(NOW_S, ("fd00::70:7|fd00:0:0:0:0:0:70:7|11211",)),
        ),
        # The clock has gone back, is not set, or is far ahead.
        (FORMER, True, BOTH._replace(servers=(ZERO,), now_s=5), ClusterList(FORMER.version + 1, (NODE_ZERO,))),
        (FORMER, True, BOTH._replace(servers=(ZERO,), now_s=0), ClusterList(FORMER.version + 1, (NODE_ZERO,))),
        (NO_CLUSTER, True, BOTH._replace(servers=(ZERO,), now_s=2**40), ClusterList(2**31 - 2, (NODE_ZERO,))),
        # Another client has written the greatest that there is.
        (ClusterList(2**31 - 1, ()), False, BOTH, ClusterList(2**31 - 1, (NODE_ZERO, NODE_ONE))),
    ],
)
def test_the_next_list(former: ClusterList, is_ours: bool, known: ClusterServers, expected: ClusterList) -> None:
    assert next_cluster(former, is_ours, known) == expected


@given(
    st.lists(
        st.tuples(st.sampled_from([(ZERO,), (ONE,), (ZERO, ONE), ()]), st.integers(0, 2**31 - 1000), st.booleans())
    )
)
def test_the_version_grows_with_each_change_and_never_falls(changes: list[Any]) -> None:
    former = ClusterList(NOW_S, ())
    for servers, now_s, is_ours in changes:
        now = next_cluster(former, is_ours, BOTH._replace(servers=servers, now_s=now_s))
        assert now == former if is_ours and now.nodes == former.nodes else former.version < now.version < 2**31
        former = read_cluster(str(now))
        assert former == now


@pytest.mark.parametrize("text", ["", "x\n", "-5\na|b|1\n", "2147483648\na|b|1\n", f"{'9' * 5000}\na|b|1\n", "²\n"])
def test_what_is_not_of_the_operators_making_has_no_version(text: str) -> None:
    assert read_cluster(text) == NO_CLUSTER


@pytest.mark.parametrize("written", [FORMER, ClusterList(1, ())])
def test_a_list_is_read_as_it_was_written(written: ClusterList) -> None:
    assert read_cluster(str(written)) == written
