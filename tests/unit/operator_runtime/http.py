"""Requests to what is served, and their answers, without a connection."""

from __future__ import annotations

from aiohttp.test_utils import make_mocked_request
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response


def get(path: str, *, peer: str = "", **headers: str) -> BaseRequest:
    """A GET of a path and its query, from that address."""
    return make_mocked_request("GET", path, headers).clone(remote=peer)


def body_of(response: Response) -> bytes:
    """All of an answer's body."""
    assert isinstance(response.body, bytes)
    return response.body
