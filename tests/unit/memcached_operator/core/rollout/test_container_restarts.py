"""Servers that restart without a request are reported once each, with what that costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from memcached_operator.core.observed.memcacheds import memcached_record
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.rollout.container_restarts import report_restarts
from tests.unit.memcached_operator.support import pod_of

MEMCACHED = memcached_record(b'{"metadata":{"name":"cache","namespace":"shop","uid":"b","resourceVersion":"1"}}')


class Reports:
    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []
        self._known: Mapping[str, int] | None = None

    def record_event(self, _memcached: object, type_: str, reason: str, _action: str, note: str) -> None:
        self.events.append((type_, reason, note))

    def report(self, *pods: PodRecord) -> list[str]:
        """Those notes that were recorded for what is there now."""
        self.events.clear()
        self._known = report_restarts(self.record_event, MEMCACHED, pods, self._known)
        return [note for _, _, note in self.events]


def pod(restarts: int, *, name: str = "a", **more: Any) -> PodRecord:
    return msgspec.structs.replace(pod_of(name), **{"name": name, "restarts": restarts, **more})


def test_a_restart_is_reported_once_the_server_is_ready_again_and_once() -> None:
    reports = Reports()
    assert reports.report(pod(0), pod(0, name="b")) == []
    assert reports.report(pod(1, ready=False), pod(0, name="b")) == []
    (note,) = reports.report(pod(1), pod(0, name="b"))
    assert note == (
        "The container of the server a restarted, and its items are lost. `kubectl describe pod a` has the cause."
    )
    assert reports.events[0][:2] == ("Warning", "ServerRestarted")
    assert reports.report(pod(1), pod(0, name="b")) == []
    assert len(reports.report(pod(2), pod(1, name="b"))) == 2


def test_what_was_there_before_this_operator_is_no_news() -> None:
    reports = Reports()
    assert reports.report(pod(3)) == []
    assert reports.report(pod(3)) == []
    assert len(reports.report(pod(4))) == 1


def test_a_restart_that_was_requested_has_an_event_of_its_own() -> None:
    reports = Reports()
    reports.report(pod(0))
    assert reports.report(pod(0, in_place="x 0 1", ready=False)) == []
    assert reports.report(pod(1, in_place="x 0 1")) == []
    assert reports.report(pod(1)) == []


def test_of_a_warm_server_its_log_says_what_is_left() -> None:
    reports = Reports()
    reports.report(pod(0, restart_hash="fixed"))
    (note,) = reports.report(pod(1, restart_hash="fixed"))
    assert "it has its items only if it could write them out: see `kubectl logs a`." in note


def test_a_pod_that_takes_the_place_of_another_begins_anew() -> None:
    reports = Reports()
    reports.report(pod(2))
    assert reports.report(pod(0, uid="another")) == []
    assert len(reports.report(pod(1, uid="another"))) == 1
