"""The list that a hand-over leads to while the specification cannot be read."""

from __future__ import annotations

import pytest

from memcached_operator.api.status import Status
from memcached_operator.api.v1alpha1 import HANDOVER_SECONDS
from memcached_operator.features.handover.situation import DesiredList, unchanged_list

LISTED = Status(workload="StatefulSet", serverList=("s-0.s.shop.svc:11211", "s-2.s.shop.svc:11211"))


@pytest.mark.parametrize(
    ("unreadable", "for_s"),
    [
        (b'{"size": 9, "handover": {"periodSeconds": 60}, "extraArgs": ["-M"]}', 60),
        (b'{"size": "x", "handover": {}}', HANDOVER_SECONDS),
        (b'{"size": "x"}', HANDOVER_SECONDS),
        (b'{"handover": null}', HANDOVER_SECONDS),
        (b'{"handover": {"periodSeconds": 1000000000000}}', HANDOVER_SECONDS),
        (b'{"handover": {"periodSeconds": -1}}', HANDOVER_SECONDS),
        (b'{"handover": {"periodSeconds": "long"}}', HANDOVER_SECONDS),
        (b"[]", HANDOVER_SECONDS),
        (b"", HANDOVER_SECONDS),
    ],
)
def test_the_list_stays_and_its_clients_have_the_time_that_can_be_read(unreadable: bytes, for_s: int) -> None:
    assert unchanged_list(unreadable, LISTED) == DesiredList(3, frozenset({0, 1, 2}), for_s)
