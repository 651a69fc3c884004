import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lab import audit


def _record(audit_id: str, stage: str, code: int | None = None, **more: object) -> str:
    status = {} if code is None else {"responseStatus": {"code": code}}
    record = {
        "auditID": audit_id,
        "stage": stage,
        "verb": "watch",
        "user": {"username": "operator"},
        "requestURI": "/api/v1/pods?watch=1",
        "requestReceivedTimestamp": "2026-01-01T00:00:00Z",
        "objectRef": {"resource": "pods"},
    }
    return json.dumps(record | status | more) + "\n"


def test_a_request_counts_once_at_its_latest_stage(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(
        _record("a", "ResponseStarted", 200)
        + _record("b", "ResponseStarted", 200)
        + _record("a", "ResponseComplete", 410)
    )
    assert [(event.audit_id, event.stage, event.code) for event in audit.read(log)] == [
        ("a", "ResponseComplete", 410),
        ("b", "ResponseStarted", 200),
    ]


def _at(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@pytest.mark.parametrize("written", [0.0, 0.5, 1.0], ids=["not at all", "in half", "as a whole"])
def test_what_was_received_before_the_mark_is_left_out_however_far_its_line_is_written_then(
    tmp_path: Path, written: float
) -> None:
    log = tmp_path / "audit.log"
    earlier = _record("a", "ResponseComplete", 200, requestReceivedTimestamp=_at(datetime.now(UTC)))
    half = int(written * len(earlier))
    log.write_text(earlier[:half])
    mark = audit.mark(log)
    with log.open("a") as file:
        file.write(earlier[half:])
        file.write(_record("b", "ResponseComplete", 200, requestReceivedTimestamp=_at(datetime.now(UTC))))
    assert [event.audit_id for event in audit.read(log, mark)] == ["b"]
    assert [event.audit_id for event in audit.read(log)] == ["a", "b"]


def test_the_policy_for_no_user_writes_nothing() -> None:
    # A rule without users would match everybody.
    assert json.loads(audit.policy([]))["rules"] == [{"level": "None"}]
