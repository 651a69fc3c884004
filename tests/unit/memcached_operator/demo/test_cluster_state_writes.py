"""The operator's writes out of an audit log that grows while it is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memcached_operator.demo.cluster_state import AuditTail, ObservedWrite, parsed


def line(
    verb: str = "patch", agent: str = "memcached-operator/1.0", stage: str = "ResponseComplete", **to: str
) -> bytes:
    target = {"resource": "memcacheds", "name": "shop", **to}
    record = {"stage": stage, "verb": verb, "userAgent": agent, "objectRef": target, "responseStatus": {"code": 200}}
    return json.dumps(record).encode() + b"\n"


def test_a_write_says_what_was_done_to_what_and_how_it_was_answered() -> None:
    assert parsed(line(subresource="status")) == ObservedWrite("patch", "memcacheds/status shop", 200)


@pytest.mark.parametrize("other", [line("get"), line(agent="memcached-operator-demo/1"), line(stage="ResponseStarted")])
def test_reads_and_what_others_do_are_left_out(other: bytes) -> None:
    assert parsed(other) is None


def test_each_write_is_told_once_and_a_half_written_line_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    assert AuditTail(path).writes() == [], "it is not there yet"
    path.write_bytes(line(name="before"))
    tail = AuditTail(path)
    assert tail.writes() == []
    new = line(name="new")
    with path.open("ab") as log:
        log.write(line(name="first") + new[:20])
        log.flush()
        assert [write.what for write in tail.writes()] == ["memcacheds first"]
        log.write(new[20:])
    assert [write.what for write in tail.writes()] == ["memcacheds new"]
    assert tail.writes() == []
