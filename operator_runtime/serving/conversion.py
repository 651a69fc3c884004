"""Pure but for the handler that is awaited: conversion between a kind's versions, ConversionReview, v1."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from operator_runtime.client.errors import UNDECODABLE
from operator_runtime.serving.admission import Json, MalformedReview

REVIEW_VERSION = "apiextensions.k8s.io/v1"

# One object and the apiVersion that is wanted, to the object in that apiVersion.
Converter = Callable[[Json, str], Awaitable[Json]]


class CannotConvert(Exception):
    """An object has no form in the wanted version; whoever asked for it reads the message."""


class _Request(msgspec.Struct, frozen=True):
    uid: str
    objects: list[Json]
    desired_api_version: str = msgspec.field(name="desiredAPIVersion")


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: _Request | None = None


_decode = msgspec.json.Decoder(_Review).decode


async def converted(body: bytes, handler: Converter) -> bytes:
    """The answer to a ConversionReview, both as JSON. The objects keep their order.

    Raises:
        MalformedReview: it is none of `REVIEW_VERSION` with a request.
        TypeError: the handler gave back something else than an object of the wanted version.
    """
    try:
        review = _decode(body)
    except UNDECODABLE as error:
        raise MalformedReview(f"no ConversionReview: {error}") from None
    if (review.api_version, review.kind) != (REVIEW_VERSION, "ConversionReview"):
        raise MalformedReview(
            f"kind {review.kind!r} of {review.api_version!r}, not a ConversionReview of {REVIEW_VERSION}"
        )
    asked = review.request
    if asked is None:
        raise MalformedReview("a ConversionReview without a request")
    objects: list[Json] = []
    result: dict[str, object] = {"status": "Success"}
    try:
        for each in asked.objects:
            objects.append(_checked(await handler(each, asked.desired_api_version), asked.desired_api_version))
    except CannotConvert as error:
        # All or nothing: the API server takes no part of an answer.
        objects, result = [], {"status": "Failure", "message": str(error)}
    response = {"uid": asked.uid, "convertedObjects": objects, "result": result}
    return msgspec.json.encode({"apiVersion": REVIEW_VERSION, "kind": "ConversionReview", "response": response})


def _checked(body: object, wanted: str) -> Json:
    if isinstance(body, dict) and body.get("apiVersion") == wanted:
        return body
    found = body.get("apiVersion") if isinstance(body, dict) else type(body).__name__
    raise TypeError(f"the converter gave back {found}, not a dict with apiVersion {wanted}")
