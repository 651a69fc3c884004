import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lab import audit


def _record(audit_id: str) -> str:
    """A line of the log, of a request that is received now."""
    record = {
        "auditID": audit_id,
        "stage": "ResponseComplete",
        "verb": "list",
        "user": {"username": "operator"},
        "requestURI": "/api/v1/pods",
        "requestReceivedTimestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    return json.dumps(record) + "\n"


@pytest.mark.parametrize("written", [0.0, 0.5, 1.0], ids=["not at all", "in half", "as a whole"])
def test_what_was_received_before_the_mark_is_left_out_however_far_its_line_is_written_then(
    tmp_path: Path, written: float
) -> None:
    log = tmp_path / "audit.log"
    earlier = _record("a")
    half = int(written * len(earlier))
    log.write_text(earlier[:half])
    mark = audit.mark(log)
    with log.open("a") as file:
        file.write(earlier[half:] + _record("b"))
    assert [event.audit_id for event in audit.read(log, mark)] == ["b"]
    assert [event.audit_id for event in audit.read(log)] == ["a", "b"]


def test_the_policy_for_no_user_writes_nothing() -> None:
    # A rule without users would match everybody.
    assert json.loads(audit.policy([]))["rules"] == [{"level": "None"}]
