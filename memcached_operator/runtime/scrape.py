"""Answers scrapes: who may, and what there is to see."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from memcached_operator.runtime.http_messages import HttpRequest, HttpResponse, text_response
from memcached_operator.runtime.metrics import Metrics

if TYPE_CHECKING:
    from memcached_operator.runtime.exposition import Exposition

PATH = "/metrics"

# Samples that are written on the event loop, at 10 us each; more go to a thread.
_AT_ONCE = 500


class Gate(Protocol):
    """Decides who may scrape."""

    async def refusal(self, request: HttpRequest) -> HttpResponse | None:
        """What to answer instead, None to whoever may."""


class Scrapes:
    """Answers GET /metrics."""

    def __init__(self, metrics: Metrics, gate: Gate | None = None) -> None:
        """
        Args:
            metrics: what there is to see.
            gate: asked about each request before anything else; None lets everybody in.
        """
        self._metrics = metrics
        self._gate = gate
        self._exposition: Exposition | None = None

    async def answer(self, request: HttpRequest) -> HttpResponse:
        """The metrics, or a refusal. Whoever may not see them learns nothing else either."""
        if self._gate is not None and (refusal := await self._gate.refusal(request)) is not None:
            return refusal
        if request.path != PATH:
            return text_response(404, f"there is {PATH} here\n")
        if self._exposition is None:
            # Importing takes longer than watches, timers and probes should wait.
            await asyncio.to_thread(import_module, "memcached_operator.runtime.exposition")
            from memcached_operator.runtime.exposition import Exposition

            self._exposition = Exposition()
        families = self._metrics.families()
        accept = request.headers.get("accept", "")
        if sum(len(each.samples) for each in families) > _AT_ONCE:
            # Read here, where nothing changes meanwhile, and written elsewhere.
            body, content_type = await asyncio.to_thread(self._exposition.render, families, accept)
        else:
            body, content_type = self._exposition.render(families, accept)
        return HttpResponse(200, body, content_type)
