"""Amounts, and the one form of each."""

from __future__ import annotations

from decimal import Decimal

import pytest

from kube_simulator.kinds.quantities import amount, canonical


@pytest.mark.parametrize(
    ("given", "form"),
    [
        ("1000m", "1"),
        ("0.5", "500m"),
        (0.5, "500m"),
        (2, "2"),
        ("100m", "100m"),
        ("1024Mi", "1Gi"),
        ("0.5Gi", "512Mi"),
        ("1500Mi", "1500Mi"),
        ("1e3", "1e3"),
        ("1000", "1k"),
        ("1000k", "1M"),
        ("100000m", "100"),
        ("0", "0"),
        ("0Mi", "0"),
        ("-1", "-1"),
        ("12E", "12E"),
        ("1.5k", "1500"),
        ("1n", "1n"),
        ("no amount", "no amount"),
    ],
)
def test_an_amount_has_one_form(given: object, form: object) -> None:
    assert canonical(given) == form
    assert canonical(form) == form


def test_amounts_can_be_compared() -> None:
    assert amount("1Gi") == 1024 * Decimal(2**20)
    assert amount("500m") == Decimal("0.5")
    assert amount("1e3") == amount("1k") == 1000
    assert amount("0.1n") == Decimal("1e-9"), "rounded up to the billionth"
    assert [amount(each) for each in ("", "x", "1x", "--1", ".", None, True)] == [None] * 7
