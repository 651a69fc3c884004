"""Lines and pages as they are read from the wire; what a watch makes of them is tried with its rules."""

from __future__ import annotations

import json

import msgspec
import pytest

from operator_runtime.client.errors import Expired, KubeError, MalformedAnswer, ServerError
from operator_runtime.client.frames import FrameMetadata, frame_of, metadata_of, object_of, page_of, refusal_of
from tests.unit.operator_runtime.client.watch_support import event, status
from tests.unit.things import thing


def test_what_was_sent_is_quoted_in_part_also_when_it_is_no_text() -> None:
    with pytest.raises(MalformedAnswer) as caught:
        frame_of(b"\xff" * 1_000_000)
    assert str(caught.value) == "not a watch event: '" + "\N{REPLACEMENT CHARACTER}" * 80 + "'"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (event("ERROR", status(410, "Expired")), Expired),
        (event("ERROR", {"kind": "Thing"}), ServerError),
        (json.dumps(status(410, "Expired")).encode(), Expired),
        (event("RENAMED", thing("a", 1)), MalformedAnswer),
        (b"{}", MalformedAnswer),
    ],
    ids=["an error", "an error of no known shape", "a bare status", "an unknown type", "nothing"],
)
def test_a_line_without_an_object_says_what_is_wrong(line: bytes, kind: type[KubeError]) -> None:
    assert type(refusal_of(frame_of(line), line)) is kind


@pytest.mark.parametrize("object_", [b"", b"[]", b'{"metadata":{"name":7}}'])
def test_of_an_object_without_readable_metadata_nothing_is_told(object_: bytes) -> None:
    assert metadata_of(msgspec.Raw(object_)) == FrameMetadata()


def test_an_object_that_is_nested_deeper_than_a_stack_goes_leaves_all_others_readable() -> None:
    deep = '{"a":' * 10_000 + "1" + "}" * 10_000
    object_ = json.dumps(thing("deep", "7")).replace('"metadata"', f'"deep": {deep}, "metadata"')
    frame = frame_of(f'{{"type": "ADDED", "object": {object_}}}'.encode())
    assert (frame.type, metadata_of(frame.object).name) == ("ADDED", "deep")
    body = f'{{"metadata": {{"resourceVersion": "9"}}, "items": [{object_}, {json.dumps(thing("other", "8"))}]}}'
    items = page_of(body.encode()).items
    assert items is not None
    assert [metadata_of(item).name for item in items] == ["deep", "other"]
    assert metadata_of(msgspec.Raw(object_.encode())).name == "deep"


class Sized(msgspec.Struct):
    metadata: FrameMetadata
    size: int


_sized = msgspec.json.Decoder(Sized).decode


@pytest.mark.parametrize(
    "answer", [b'{"metadata":{"name":"a"},"si', b'{"error":"log in first"}', b"{}", b'{"a":"\xff"}']
)
def test_what_is_no_object_is_malformed_and_what_its_kind_cannot_read_is_the_objects_affair(answer: bytes) -> None:
    with pytest.raises(MalformedAnswer, match="not an object of the API: "):
        object_of(_sized, answer)
    with pytest.raises(msgspec.ValidationError, match="Expected `int`"):
        object_of(_sized, b'{"metadata":{"name":"a"},"size":"large"}')
