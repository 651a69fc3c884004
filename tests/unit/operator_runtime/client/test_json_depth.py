"""What a decoder is given instead of JSON that goes too deep."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from operator_runtime.client.json_depth import LEVELS, decode_nested, shallow

DEEP = 10_000  # as many as the API server takes


def nested(levels: int, opening: str = '{"a":', closing: str = "}") -> bytes:
    return (opening * levels + "1" + closing * levels).encode()


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=25,
)


def cut(value: Any, levels: int) -> Any:
    """The obvious way to say it."""
    if not isinstance(value, list | dict):
        return value
    if levels == 0:
        return None
    if isinstance(value, list):
        return [cut(each, levels - 1) for each in value]
    return {key: cut(each, levels - 1) for key, each in value.items()}


@given(values, st.integers(1, 4), st.booleans())
def test_what_lies_deeper_is_null_and_nothing_else_changes(value: object, levels: int, ascii_only: bool) -> None:
    body = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert json.loads(shallow(body, levels)) == cut(value, levels)
    assert shallow(body) is body, "what is no deeper stays byte for byte"


@pytest.mark.parametrize("text", ["[[[", "}}}", '"', '{"a": [', "no JSON", '{"a": "[[[["}', '"\\"[[[["'])
def test_text_that_is_no_json_stays_for_the_decoder_to_refuse(text: str) -> None:
    assert shallow(text.encode(), 1) == text.encode()
    with pytest.raises(msgspec.DecodeError):
        decode_nested(msgspec.json.decode, b"[")


@pytest.mark.parametrize("opening", ['{"a":', "["])
def test_a_decoder_that_gives_up_is_given_what_it_can_take(opening: str) -> None:
    body = nested(DEEP, opening=opening, closing="}" if opening[0] == "{" else "]")
    with pytest.raises(RecursionError):
        msgspec.json.decode(body)
    decoded, levels = decode_nested(msgspec.json.decode, body), 0
    while decoded is not None:
        (decoded,) = decoded.values() if isinstance(decoded, dict) else decoded
        levels += 1
    assert levels == LEVELS
