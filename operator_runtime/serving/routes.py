"""Routes of an author's own on the servers that an operator has anyway, such as `/debug/queue` beside `/metrics`."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Literal

from operator_runtime.serving.http_messages import HttpRequest, HttpResponse, text_response

logger = logging.getLogger(__name__)

ServerName = Literal["metrics", "probes"]
RouteHandler = Callable[[HttpRequest], HttpResponse | Awaitable[HttpResponse]]

# What the servers answer themselves, with everything below.
TAKEN: dict[ServerName, tuple[str, ...]] = {"metrics": ("/metrics",), "probes": ("/healthz", "/readyz")}
# As long as an answer may take to be taken (`http_server.WRITE_TIMEOUT_S`): a handler that waits for ever would hold
# one of the few connections for ever.
HANDLER_TIMEOUT_S = 30.0


def checked_path(path: str, taken: Collection[str]) -> str:
    """The path, if a handler can be put there.

    Args:
        path: such as `/debug/queue`.
        taken: the paths that have a handler.

    Raises:
        ValueError: it is not absolute, has what no request's path has, or is taken.
    """
    if not path.startswith("/"):
        raise ValueError(f"the path {path!r} is not absolute: write {'/' + path!r}")
    if any(each in "?#" or each.isspace() for each in path):
        raise ValueError(
            f"the path {path!r} has a query, a fragment or a space: the handler finds a query in its request"
        )
    if path in taken:
        raise ValueError(f"the path {path} has a handler already: choose another")
    return path


class Routes:
    """Paths and who answers them. Add at any time; a path is looked up when it is asked for.

    Only GET and HEAD arrive, and never a body: the servers are for looking. What takes bodies is a service of its own.
    `--metrics-secure` covers the metrics server's routes: they are shown to who may `get` the non-resource URL of that
    very path. The probe server lets everybody in.

        async def queue(request: HttpRequest) -> HttpResponse:
            return json_response(200, {"depth": len(backlog)})

        operator.routes.add("/debug/queue", queue)

    Attributes:
        urls: where each server listens, from when it does, such as `http://127.0.0.1:8080`: for tests that have the
            kernel choose a port.
    """

    def __init__(self, *, timeout_s: float = HANDLER_TIMEOUT_S) -> None:
        """
        Args:
            timeout_s: what a handler may take; then it is cancelled, and the answer is 504.
        """
        self.urls: dict[ServerName, str] = {}
        self._timeout_s = timeout_s
        self._handlers: dict[ServerName, dict[str, RouteHandler]] = {"metrics": {}, "probes": {}}

    def add(self, path: str, handler: RouteHandler, *, server: ServerName = "metrics") -> None:
        """Have `handler` answer requests for exactly that path.

        Args:
            path: absolute, without a query.
            handler: a coroutine function, or a plain function that is quick: it runs on the event loop. Whatever it
                raises is answered 500 and logged.
            server: `metrics`, at --metrics-bind-address, or `probes`, at --health-probe-bind-address.

        Raises:
            ValueError: the path is taken or not absolute, or there is no such server.
            TypeError: the handler cannot be called.
        """
        if server not in self._handlers:
            raise ValueError(f"there is no server {server!r} for {path}: it is one of {', '.join(self._handlers)}")
        handlers = self._handlers[server]
        checked_path(path, handlers)
        own = next((each for each in TAKEN[server] if path == each or path.startswith(f"{each}/")), None)
        if own is not None:
            raise ValueError(f"the path {path} is taken: the {server} server answers {own} itself; choose another")
        if not callable(handler):
            raise TypeError(f"the handler of {path} is a {type(handler).__name__}, which cannot be called")
        handlers[path] = handler

    def paths(self, server: ServerName) -> tuple[str, ...]:
        """What was added to a server."""
        return tuple(self._handlers[server])

    async def answer(self, server: ServerName, request: HttpRequest) -> HttpResponse | None:
        """A handler's answer; None where nobody was added for the path.

        Raises:
            TypeError: the handler gave back something else than an answer.
        """
        handler = self._handlers[server].get(request.path)
        if handler is None:
            return None
        timeout = asyncio.timeout(self._timeout_s)
        try:
            async with timeout:
                given = handler(request)
                response = await given if inspect.isawaitable(given) else given
        except TimeoutError:
            if not timeout.expired():
                raise
            logger.warning("the handler of %s has not answered for %g s: given up", request.path, self._timeout_s)
            return text_response(504, f"no answer within {self._timeout_s:g} s\n")
        if not isinstance(response, HttpResponse):
            given_back = type(response).__name__
            raise TypeError(
                f"the handler of {request.path} gave back a {given_back}: text_response and json_response make answers"
            )
        return response
