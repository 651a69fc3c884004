"""The operator's process: what it runs on, and how it ends."""

from __future__ import annotations

import asyncio
import logging
import sys
from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable

from operator_runtime.client.errors import KubeError
from operator_runtime.identity import Program
from operator_runtime.process.logs import escape
from operator_runtime.serving.listening import ServingError
from operator_runtime.settings.runtime_settings import S

logger = logging.getLogger(__name__)

# 130 is what a shell reports of a program that Ctrl-C ended.
FAILED, INTERRUPTED = 1, 130


def run_to_the_end(program: Program, serve: Callable[[S], Awaitable[int]], settings: S) -> int:
    """Run on the fastest event loop there is; what keeps it from starting becomes one plain line."""

    async def until_done() -> int:
        return await serve(settings)

    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(until_done())
    except KeyboardInterrupt:  # before the operator has its own handlers
        return INTERRUPTED
    except SystemExit as error:
        logger.critical("ended by sys.exit(%r) in its midst: raise an error instead", error.code, exc_info=True)
        raise
    except (KubeError, ServingError) as error:
        if settings.log_format == "json":
            logger.critical("%s", error)
        else:
            print(escape(f"{program.name}: {error}"), file=sys.stderr)
    except Exception:
        logger.critical("ended by an internal error", exc_info=True)
    return FAILED


def _loop_factory() -> Callable[[], AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # not there for every platform; asyncio's own loop does the same, slower
        return None
    return uvloop.new_event_loop
