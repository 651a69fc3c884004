"""Leases."""

from __future__ import annotations

import pytest

from tests.unit.kube_simulator.kinds.kinds_support import an, created, refused, resource

LEASES = resource("leases.coordination.k8s.io")


def test_times_are_kept_to_the_microsecond_and_in_utc() -> None:
    spec = {"renewTime": "2026-01-01T02:00:00.123456+02:00", "acquireTime": None, "holderIdentity": ""}
    assert created(LEASES, an(LEASES, spec=spec))["spec"] == {
        "renewTime": "2026-01-01T00:00:00.123456Z",
        "holderIdentity": "",
    }


def test_what_is_switched_off_by_default_is_dropped() -> None:
    stored = created(LEASES, an(LEASES, spec={"strategy": "x", "preferredHolder": "y", "leaseTransitions": 0}))
    assert stored["spec"] == {"leaseTransitions": 0}
    assert created(LEASES, an(LEASES))["spec"] == {}


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("leaseDurationSeconds", 0, "must be greater than 0"),
        ("leaseDurationSeconds", -1, "must be greater than 0"),
        ("leaseTransitions", -1, "must be greater than or equal to 0"),
    ],
)
def test_numbers_that_cannot_be_are_refused(field: str, value: int, why: str) -> None:
    assert refused(LEASES, spec={field: value}) == {f"spec.{field}: Invalid value: {value}: {why}"}


def test_a_lease_may_be_held_by_nobody_and_never_have_changed_hands() -> None:
    assert refused(LEASES, spec={"leaseDurationSeconds": 1, "leaseTransitions": 0, "holderIdentity": ""}) == set()
