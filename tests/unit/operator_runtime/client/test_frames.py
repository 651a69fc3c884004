"""Lines and pages as they are read from the wire; what a watch makes of them is tried with its rules."""

from __future__ import annotations

import json

import msgspec
import pytest

from operator_runtime.client.errors import Expired, KubeError, MalformedAnswer, ServerError
from operator_runtime.client.frames import (
    FrameMetadata,
    bookmark_of,
    frame_of,
    metadata_of,
    object_of,
    page_of,
    refusal_of,
)
from tests.unit.operator_runtime.client.watch_support import HTML, bookmark, event, page, status
from tests.unit.things import thing


def test_a_line_gives_its_type_and_leaves_its_object_raw() -> None:
    frame = frame_of(b'{"type":"ADDED","object":{"spec": [1, 2]}}')
    assert (frame.type, bytes(frame.object)) == ("ADDED", b'{"spec": [1, 2]}')


@pytest.mark.parametrize("line", [HTML, b"", b"[]", b'"ADDED"', b'{"type":7}', b'{"type":"ADDED"', b"\xff"])
def test_a_line_that_is_no_frame_is_malformed(line: bytes) -> None:
    with pytest.raises(MalformedAnswer, match="not a watch event: '"):
        frame_of(line)


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


def test_a_page_gives_its_objects_raw_its_version_and_where_it_goes_on() -> None:
    found = page_of(page("7", "a", "b", more="token"))
    assert [metadata_of(item).name for item in found.items or ()] == ["a", "b"]
    assert (found.metadata.resourceVersion, found.metadata.continue_) == ("7", "token")


@pytest.mark.parametrize(
    ("body", "words"),
    [(HTML, "not a list of objects: '<html>"), (page(""), "without a resourceVersion"), (b"[]", "not a list")],
)
def test_a_page_that_is_no_list_is_malformed(body: bytes, words: str) -> None:
    with pytest.raises(MalformedAnswer, match=words):
        page_of(body)


@pytest.mark.parametrize(("end", "ends"), [("true", True), ("false", False), (None, False)])
def test_a_bookmark_tells_its_version_and_whether_the_snapshot_ends(end: object, ends: bool) -> None:
    found = bookmark_of(frame_of(bookmark(7, end=end)).object)
    assert (found.resourceVersion, found.ends_snapshot) == ("7", ends)


@pytest.mark.parametrize("object_", [b"{}", b"[]", b'{"metadata":{"resourceVersion":7}}'])
def test_a_bookmark_without_a_version_is_no_bookmark(object_: bytes) -> None:
    with pytest.raises(MalformedAnswer, match="a bookmark without"):
        bookmark_of(msgspec.Raw(object_))


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


def test_an_answer_that_is_one_object_is_decoded() -> None:
    assert object_of(_sized, b'{"metadata":{"name":"a"},"size":3}').size == 3


@pytest.mark.parametrize(
    "answer", [b'{"metadata":{"name":"a"},"si', b'{"error":"log in first"}', b"{}", b'{"a":"\xff"}']
)
def test_an_answer_that_is_no_object_is_malformed(answer: bytes) -> None:
    with pytest.raises(MalformedAnswer, match="not an object of the API: "):
        object_of(_sized, answer)


def test_an_object_that_its_kind_cannot_read_is_the_objects_own_affair() -> None:
    with pytest.raises(msgspec.ValidationError, match="Expected `int`"):
        object_of(_sized, b'{"metadata":{"name":"a"},"size":"large"}')
