"""Answers scrapes: who may, and what there is to see."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from operator_runtime.serving.http_messages import HttpRequest, HttpResponse, text_response
from operator_runtime.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from operator_runtime.telemetry.exposition import Exposition

PATH = "/metrics"

# Samples that are written on the event loop, at 10 us each; more go to a thread.
_AT_ONCE = 500


class Gate(Protocol):
    """Decides who may scrape."""

    async def refusal(self, request: HttpRequest) -> HttpResponse | None:
        """What to answer instead, None to whoever may see the metrics."""


class Scrapes:
    """Answers GET /metrics, one scrape at a time.

    Whoever asks while a scrape is being written waits for the next one, and shares it with all who do: many scrapers
    take no more time and memory than two.

    Invariants:
        `_shared` has, for each content type, the number of the last answer and the answer, while somebody waits.
    """

    def __init__(self, metrics: Metrics, gate: Gate | None = None) -> None:
        """
        Args:
            metrics: what there is to see.
            gate: asked about each request before anything else; None lets everybody in.
        """
        self._metrics = metrics
        self._gate = gate
        self._exposition: Exposition | None = None
        self._writing = asyncio.Lock()
        self._waiting = 0
        self._begun = 0
        self._shared: dict[str, tuple[int, HttpResponse]] = {}

    async def answer(self, request: HttpRequest) -> HttpResponse:
        """The metrics, or a refusal. Whoever may not see them learns nothing else either."""
        if self._gate is not None and (refusal := await self._gate.refusal(request)) is not None:
            return refusal
        if request.path != PATH:
            return text_response(404, f"there is {PATH} here\n")
        asked_after = self._begun
        self._waiting += 1
        try:
            async with self._writing:
                exposition = await self._loaded()
                content_type = exposition.content_type(request.headers.get("accept", ""))
                number, shared = self._shared.get(content_type, (0, None))
                if shared is None or number <= asked_after:
                    self._begun += 1
                    shared = await self._written(exposition, content_type)
                    self._shared[content_type] = (self._begun, shared)
                return shared
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._shared.clear()

    async def _loaded(self) -> Exposition:
        if self._exposition is None:
            # Importing takes longer than watches, timers and probes should wait.
            await asyncio.to_thread(import_module, "operator_runtime.telemetry.exposition")
            from operator_runtime.telemetry.exposition import Exposition

            self._exposition = Exposition()
        return self._exposition

    async def _written(self, exposition: Exposition, content_type: str) -> HttpResponse:
        families = self._metrics.families()
        if sum(len(each.samples) for each in families) > _AT_ONCE:
            # Read here, where nothing changes meanwhile, and written elsewhere.
            body = await asyncio.to_thread(exposition.render, families, content_type)
        else:
            body = exposition.render(families, content_type)
        return HttpResponse(200, body, content_type)
