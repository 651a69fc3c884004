"""Answers to what probes and scrapes request, as values: aiohttp's can be sent once, and are loaded by who serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class HttpResponse:
    status: int
    body: bytes = b""
    content_type: str = TEXT
    headers: Mapping[str, str] = field(default_factory=dict)


def text_response(status: int, text: str) -> HttpResponse:
    return HttpResponse(status, text.encode())
