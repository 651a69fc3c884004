from __future__ import annotations

from typing import Any, cast

import pytest

from operator_runtime.cache.reflector import Reflector
from operator_runtime.cache.store import Store
from operator_runtime.client.errors import Forbidden
from operator_runtime.client.resources import DEPLOYMENTS, PODS, Resource
from operator_runtime.client.watch_ends import Cause, Listed
from operator_runtime.telemetry.metrics import client_families, stream_families
from operator_runtime.testing.clock import START_S, FakeClock
from tests.unit.operator_runtime.series import series
from tests.unit.things import Thing, decode


def reflector(resource: Resource = PODS, namespace: str | None = None, version: str = "") -> Reflector[Thing]:
    """One that does not run, at a version."""
    made: Reflector[Thing] = Reflector(
        cast("Any", None), resource, decode, Store(), namespace=namespace, clock=FakeClock()
    )
    made._watch._state = Listed(version)
    return made


def test_each_stream_is_shown_with_its_scope() -> None:
    pods = reflector(namespace="shop", version="1234")
    pods.relists, pods.unreadable_objects = 2, 1
    pods.last_byte_s, pods.last_event_s = START_S - 3.0, START_S - 5.0
    for number in range(7):
        pods.put(Thing("shop", f"pod-{number}"))
    found = series(stream_families([pods, reflector(DEPLOYMENTS)]))
    one, other = ("pods", "shop"), ("deployments.apps", "")
    assert found["watch_stream_last_byte_age_seconds"] == {one: 3.0, other: 0.0}
    assert found["watch_stream_last_event_age_seconds"] == {one: 5.0, other: 0.0}
    assert found["watch_stream_relists_total"] == {one: 2, other: 0}
    assert found["watch_stream_unreadable_objects_total"] == {one: 1, other: 0}
    assert found["watch_stream_cached_objects"] == {one: 7, other: 0}
    assert found["watch_stream_resource_version"] == {one: 1234.0}, "none before the first list"


def test_restarts_are_shown_by_every_cause_from_the_first_scrape() -> None:
    stream = reflector()
    stream.restarts[Cause.EXPIRED] = 3
    found = series(stream_families([stream]))["watch_stream_restarts_total"]
    assert found == {("pods", "", cause.value): 3 if cause is Cause.EXPIRED else 0 for cause in Cause}


@pytest.mark.parametrize(("optional", "alarming"), [(True, False), (False, True)])
def test_of_a_watch_that_may_be_refused_only_the_refusals_are_shown_so_that_nobody_is_alarmed(
    optional: bool, alarming: bool
) -> None:
    stream = reflector()
    stream.optional, stream.refusal = optional, Forbidden(403, "Forbidden", "no")
    stream.restarts[Cause.FORBIDDEN] = 3
    found = series(stream_families([stream]))
    assert found["watch_stream_restarts_total"]["pods", "", "forbidden"] == 3
    for name in ("watch_stream_last_byte_age_seconds", "watch_stream_relists_total"):
        assert (("pods", "") in found.get(name, {})) is alarming, name
    stream.refusal = None
    assert ("pods", "") in series(stream_families([stream]))["watch_stream_relists_total"], "as soon as it is granted"


@pytest.mark.parametrize("version", ["", "abc", "-1", "٣"])
def test_a_version_that_is_no_number_is_not_shown(version: str) -> None:
    assert "watch_stream_resource_version" not in series(stream_families([reflector(version=version)]))


def test_requests_are_named_as_client_go_names_them_and_expected_writes_are_there_before_the_first() -> None:
    expected = [("pods", "create"), ("pods", "patch")]
    answered, writes = {(418, "GET"): 3, (0, "PATCH"): 1}, {("pods", "create"): 2}
    found = series(client_families("10.0.0.1:443", answered, writes, expected))
    requests = found["rest_client_requests_total"]
    assert {labels: value for labels, value in requests.items() if value} == {
        ("418", "GET", "10.0.0.1:443"): 3,
        ("<error>", "PATCH", "10.0.0.1:443"): 1,
    }
    assert requests["403", "PATCH", "10.0.0.1:443"] == 0, "or the first one would be no increase"
    assert found["api_writes_total"] == {("pods", "create"): 2, ("pods", "patch"): 0}
