"""Answers scrapes: who may, and what there is to see."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.openmetrics.exposition import (
    CONTENT_TYPE_LATEST as OPENMETRICS,
    generate_latest as generate_openmetrics,
)
from prometheus_client.registry import Collector

from operator_runtime.diagnostics.callback_errors import CallbackErrors
from operator_runtime.serving.responses import HttpResponse, text_response
from operator_runtime.telemetry.metrics import Given, Metrics

if TYPE_CHECKING:
    from aiohttp import web

PATH = "/metrics"

# Of a scraper's Accept header only the format is read: Prometheus takes 0.0.4 and 1.0.0 whatever else it can read,
# and the library's own choice stumbles over versions that it does not know.
_OPENMETRICS = "application/openmetrics-text"
_openmetrics: Callable[[Collector], bytes] = generate_openmetrics

# Samples that are written on the event loop, at 10 us each; more go to a thread.
_AT_ONCE = 500


Refusal = Callable[["web.BaseRequest"], Awaitable[HttpResponse | None]]
"""What to answer to a client that may not see the metrics; None to one that may."""


class Scrapes:
    """Answers GET of each path that has metrics, one scrape at a time.

    A client that comes while a scrape is being written waits for the next one, and shares it with all that do: many
    scrapers take no more time and memory than two.

    Invariant: `_next` has, for each path and content type, the scrape that waits for its turn, if one does.
    """

    def __init__(self, metrics: Mapping[str, Metrics], refusal: Refusal | None = None) -> None:
        self._metrics = metrics
        self._refusal = refusal
        self._callback_errors = CallbackErrors()
        self._writing = asyncio.Lock()
        self._next: dict[tuple[str, str], asyncio.Task[HttpResponse]] = {}

    async def answer(self, request: web.BaseRequest) -> HttpResponse:
        """The metrics, or a refusal. A client that may not see them learns nothing else either."""
        if self._refusal is not None and (refusal := await self._refusal(request)) is not None:
            return refusal
        path = request.path
        if path not in self._metrics:
            return text_response(404, f"there is {' and '.join(self._metrics)} here\n")
        format = content_type(",".join(request.headers.getall("Accept", ())))
        if (path, format) not in self._next:
            self._next[path, format] = asyncio.create_task(self._scrape(path, format))
        # One who goes away leaves the scrape to those who share it.
        return await asyncio.shield(self._next[path, format])

    async def _scrape(self, path: str, format: str) -> HttpResponse:
        async with self._writing:
            del self._next[path, format]
            families = list(self._metrics[path].collect())
            # Counted as far as it matters: samples may be made as they are read.
            if any(number > _AT_ONCE for number in accumulate(len(each.samples) for each in families)):
                # Read here, where nothing changes meanwhile, and written elsewhere.
                body = await asyncio.to_thread(self._text, families, format)
            else:
                body = self._text(families, format)
            return HttpResponse(200, body, format)

    def _text(self, families: Sequence[Metric], format: str) -> bytes:
        """The body. It goes without families that cannot be written, such as one with a label that is no text."""
        write = _openmetrics if format == OPENMETRICS else generate_latest
        try:
            return write(Given(lambda: families))
        except Exception:
            writable = [each for each in families if self._is_writable(each, write)]
            return write(Given(lambda: writable))

    def _is_writable(self, family: Metric, write: Callable[[Collector], bytes]) -> bool:
        try:
            write(Given(lambda: [family]))
        except Exception as error:
            self._callback_errors.report(write, f"the metric {family.name}", "It is missing.", error)
            return False
        return True


def content_type(accept: str) -> str:
    accepted = {each.partition(";")[0].strip() for each in accept.split(",")}
    return OPENMETRICS if _OPENMETRICS in accepted else CONTENT_TYPE_PLAIN_0_0_4
