"""Requests to what is served, without a connection."""

from __future__ import annotations

from aiohttp.test_utils import make_mocked_request
from aiohttp.web import BaseRequest


def get(path: str, *, peer: str = "", **headers: str) -> BaseRequest:
    """A GET of a path and its query, from that address."""
    return make_mocked_request("GET", path, headers).clone(remote=peer)
