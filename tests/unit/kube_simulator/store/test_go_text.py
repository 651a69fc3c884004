"""Numbers and quotations of the API server's words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kube_simulator.store.go_text import int64, int64_or_none, quoted, uint64


@pytest.mark.parametrize(
    ("read", "text", "number"),
    [
        (int64, "0", 0),
        (int64, "+2", 2),
        (int64, "-3", -3),
        (int64, "007", 7),
        (int64, "9223372036854775807", 2**63 - 1),
        (int64, "0" * 5000 + "1", 1),
        (uint64, "01", 1),
        (uint64, "18446744073709551615", 2**64 - 1),
    ],
)
def test_decimal_numbers_are_read(read: Callable[[str], int], text: str, number: int) -> None:
    assert read(text) == number


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (int64, "x", 'strconv.ParseInt: parsing "x": invalid syntax'),
        (int64, "", 'strconv.ParseInt: parsing "": invalid syntax'),
        (int64, " 1", 'strconv.ParseInt: parsing " 1": invalid syntax'),
        (int64, "1_0", 'strconv.ParseInt: parsing "1_0": invalid syntax'),
        (int64, "0x10", 'strconv.ParseInt: parsing "0x10": invalid syntax'),
        (int64, "٣", 'strconv.ParseInt: parsing "٣": invalid syntax'),
        (int64, "9223372036854775808", 'strconv.ParseInt: parsing "9223372036854775808": value out of range'),
        (uint64, "-1", 'strconv.ParseUint: parsing "-1": invalid syntax'),
        (uint64, "+1", 'strconv.ParseUint: parsing "+1": invalid syntax'),
        (uint64, "1.5", 'strconv.ParseUint: parsing "1.5": invalid syntax'),
        (uint64, "18446744073709551616", 'strconv.ParseUint: parsing "18446744073709551616": value out of range'),
    ],
)
def test_what_is_no_number_is_refused_in_go_s_words(read: Callable[[str], int], text: str, said: str) -> None:
    with pytest.raises(ValueError, match="strconv") as refused:
        read(text)
    assert str(refused.value) == said


def test_a_number_of_thousands_of_digits_is_out_of_range_too() -> None:
    with pytest.raises(ValueError, match="value out of range"):
        int64("9" * 5000)
    assert int64_or_none("9" * 5000) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a'b", '"a\'b"'),
        ('a"b\\', '"a\\"b\\\\"'),
        ("é", '"é"'),
        ("\n\t\r\v\a\b\f", '"\\n\\t\\r\\v\\a\\b\\f"'),
        ("\x00\x7f", '"\\x00\\x7f"'),
        ("\u00a0\u2003", '"\\u00a0\\u2003"'),
        ("\U000e0001", '"\\U000e0001"'),
    ],
)
def test_what_cannot_be_printed_is_escaped(text: str, expected: str) -> None:
    assert quoted(text) == expected
