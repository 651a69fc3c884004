"""Fields by their numbers; what is said of malformed ones is tested where a real API server was asked, in protobuf."""

import pytest

from kube_simulator.schema.wire_format import BYTES, FIXED32, FIXED64, VARINT, Expected, Malformed, read
from tests.unit.kube_simulator.schema.protobuf_messages import number, part, varint

FIELDS = {
    1: Expected("Count", VARINT),
    2: Expected("Name", BYTES),
    3: Expected("Ports", VARINT, repeated=True),
    4: Expected("Ratio", FIXED64),
    5: Expected("Weights", FIXED32, repeated=True),
}


def found(data: bytes) -> dict[int, list[object]]:
    return read("Thing", data, FIELDS)


def test_values_are_found_by_number_in_their_order() -> None:
    assert found(b"") == {}
    assert found(part(2, "a") + number(1, 300) + part(2, "")) == {1: [300], 2: [b"a", b""]}
    assert found(varint(4 << 3 | 1) + bytes(range(8))) == {4: [bytes(range(8))]}


@pytest.mark.parametrize("value", [0, 1, 127, 128, 2**32, 2**64 - 1])
def test_a_varint_has_64_bits_without_a_sign(value: int) -> None:
    assert found(number(1, value)) == {1: [value]}


def test_repeated_numbers_may_be_packed_and_others_not() -> None:
    assert found(part(3, varint(1) + varint(300)) + number(3, 7) + part(3, b"")) == {3: [1, 300, 7]}
    assert found(part(5, b"aaaabbbb")) == {5: [b"aaaa", b"bbbb"]}
    with pytest.raises(Malformed, match="proto: wrong wireType = 2 for field Count"):
        found(part(1, varint(1)))
    with pytest.raises(Malformed, match="unexpected EOF"):
        found(part(5, b"aaaabb"))


def test_a_group_is_passed_over_with_the_groups_in_it() -> None:
    start, end = varint(9 << 3 | 3), varint(9 << 3 | 4)
    inner = start + number(1, 1) + start + part(2, "deep") + end + end
    assert found(inner + number(1, 2)) == {1: [2]}
    with pytest.raises(Malformed, match="unexpected EOF"):
        found(start + number(1, 1))
    with pytest.raises(Malformed, match="proto: Thing: wiretype end group for non-group"):
        found(inner + end)


@pytest.mark.parametrize("whole", [number(1, 300), part(2, "abc"), varint(4 << 3 | 1) + bytes(8)])
def test_a_value_that_is_cut_off_is_malformed(whole: bytes) -> None:
    for length in range(1, len(whole)):
        with pytest.raises(Malformed, match="unexpected EOF"):
            found(whole[:length])


def test_no_field_has_a_number_below_one() -> None:
    with pytest.raises(Malformed, match=r"proto: Thing: illegal tag 0 \(wire type 0\)"):
        found(b"\x00\x00")
    with pytest.raises(Malformed, match=r"proto: Thing: illegal tag -1 \(wire type"):
        found(varint(0xFFFFFFFF << 3) + b"\x00")
