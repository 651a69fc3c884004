"""Conversion between the versions of a kind, as the API server asks for it."""

from __future__ import annotations

import msgspec
import pytest

from operator_runtime.serving.admission import Json, MalformedReview
from operator_runtime.serving.conversion import CannotConvert, converted

WANTED = "example.com/v2"


def review(*objects: Json) -> bytes:
    request = {"uid": "u-1", "desiredAPIVersion": WANTED, "objects": objects}
    return msgspec.json.encode(
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
    )


def cup(size: int) -> Json:
    return {"apiVersion": "example.com/v1", "spec": {"size": size}}


async def convert(body: Json, api_version: str) -> Json:
    if body["spec"]["size"] == 13:
        raise CannotConvert("13 has no form")
    return {"apiVersion": api_version, "spec": {"replicas": body["spec"]["size"]}}


async def response(*objects: Json) -> Json:
    written: Json = msgspec.json.decode(await converted(review(*objects), convert))
    assert (written["apiVersion"], written["kind"]) == ("apiextensions.k8s.io/v1", "ConversionReview")
    found: Json = written["response"]
    assert found.pop("uid") == "u-1"
    return found


async def test_objects_are_converted_in_their_order() -> None:
    assert await response(cup(1), cup(2)) == {
        "convertedObjects": [{"apiVersion": WANTED, "spec": {"replicas": size}} for size in (1, 2)],
        "result": {"status": "Success"},
    }


async def test_one_that_cannot_be_converted_fails_all_with_its_message() -> None:
    assert await response(cup(1), cup(13), cup(2)) == {
        "convertedObjects": [],
        "result": {"status": "Failure", "message": "13 has no form"},
    }


async def test_a_converter_that_gives_back_another_version_is_a_mistake() -> None:
    async def same(body: Json, api_version: str) -> Json:
        return body

    async def nothing(body: Json, api_version: str) -> Json:
        return None  # type: ignore[return-value]

    with pytest.raises(TypeError, match=r"gave back example\.com/v1, not a dict with apiVersion example\.com/v2"):
        await converted(review(cup(1)), same)
    with pytest.raises(TypeError, match="gave back NoneType, not a dict"):
        await converted(review(cup(1)), nothing)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"hello", "no ConversionReview: "),
        (b"{}", "kind '' of '', not a ConversionReview of apiextensions.k8s.io/v1"),
        (b'{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}', "a ConversionReview without a request"),
    ],
)
async def test_what_is_no_review_is_refused_with_the_reason(body: bytes, why: str) -> None:
    with pytest.raises(MalformedReview, match=f"^{why}"):
        await converted(body, convert)
