"""Kubernetes' quantities: the numbers that they stand for, and the form in which the API server writes them back."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from memcached_operator.api.quantities import canonical, kibibytes, mebibytes, value
from memcached_operator.api.v1alpha1 import QUANTITY

FORMS: list[tuple[str | int, str, str]] = [
    ("1024Mi", "1073741824", "1Gi"),
    ("1.5Gi", "1610612736", "1536Mi"),
    ("0.5Ki", "512", "512"),
    ("0.1Ki", "102.4", "102400m"),
    (".5", "0.5", "500m"),
    ("1000m", "1", "1"),
    ("1500m", "1.5", "1500m"),
    (0, "0", "0"),
    ("100k", "100000", "100k"),
    ("1e3", "1000", "1e3"),
    ("1e4", "10000", "10e3"),
    ("100n", "1e-7", "100n"),
]


@pytest.mark.parametrize(("text", "number", "form"), FORMS)
def test_a_quantity_is_a_number_that_the_api_server_writes_in_one_way(text: str | int, number: str, form: str) -> None:
    assert value(text) == Decimal(number)
    assert canonical(text) == form


@pytest.mark.parametrize(
    "text", ["", ".", "Mi", "-1", "1 Mi", "1mi", "1e", "e3", "+1", "1e123", "1Mi\n", "٣", True, "9" * 65, 2**64]
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    for read in (value, canonical, mebibytes, kibibytes):
        with pytest.raises(ValueError, match="not a quantity of 0 or more"):
            read(text)


def test_bytes_are_counted_in_whole_mi_and_ki() -> None:
    assert (mebibytes("1Gi"), mebibytes("1.5Mi"), mebibytes("1e9"), mebibytes("100k")) == (1024, 1, 953, 0)
    assert (kibibytes("1Mi"), kibibytes("1.5Ki"), kibibytes(1024)) == (1024, 1, 1)


@given(st.from_regex(QUANTITY, fullmatch=True))
def test_the_form_stands_for_the_same_number_and_is_its_own_form(text: str) -> None:
    form = canonical(text)
    assert value(form) == value(text)
    assert canonical(form) == form
