"""The operator's own process: started lean, by the process that validated the settings.

What validates settings (pydantic, argparse) is needed for a moment and would stay resident for months: 15 MiB of about
50. So `run` validates, then replaces itself by a fresh interpreter with the same command line and the same process id,
which finds the validated settings in its environment and loads only what the operator needs. Nothing is imported here
before it is known which of the two this process is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from memcached_operator.operator import OperatorConfig

# 130 is what a shell reports of a program that Ctrl-C ended.
FAILED, INTERRUPTED = 1, 130
_VALIDATED = "_MEMCACHED_OPERATOR_VALIDATED_SETTINGS"


def validated_settings() -> str | None:
    """The settings that the process before us validated, as JSON; None in a process that a user started."""
    return os.environ.pop(_VALIDATED, None)


def become_operator(settings_json: str) -> NoReturn:
    """Replace this process by the operator with these settings, as JSON."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, sys.orig_argv, {**os.environ, _VALIDATED: settings_json})


def operate(settings_json: str) -> int:
    """Set up logging and run the operator; the exit code."""
    from memcached_operator import operator
    from memcached_operator.runtime.controller import current_reconcile
    from memcached_operator.runtime.program import logs

    config = operator.decode_config(settings_json)
    logs.configure(
        log_format=config.log_format, level=config.log_level, current_reconcile=lambda: current_reconcile.get(None)
    )
    return run_to_the_end(operator.run, config)


def run_to_the_end(run: Callable[[OperatorConfig], Awaitable[int]], config: OperatorConfig) -> int:
    """Run on the fastest event loop there is; what keeps it from starting becomes one plain line."""
    import asyncio
    import logging

    from memcached_operator.kube.errors import KubeError
    from memcached_operator.runtime.program.logs import escape
    from memcached_operator.runtime.serving.http_server import ServingError

    logger = logging.getLogger(__name__)

    async def until_done() -> int:
        return await run(config)

    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(until_done())
    except KeyboardInterrupt:  # before the operator has its own handlers
        return INTERRUPTED
    except (KubeError, ServingError) as error:
        if config.log_format == "json":
            logger.critical("%s", error)
        else:
            print(escape(f"memcached-operator: {error}"), file=sys.stderr)
    except Exception:
        logger.critical("ended by a fault of its own", exc_info=True)
    return FAILED


def _loop_factory() -> Callable[[], AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # not there for every platform; asyncio's own loop does the same, slower
        return None
    return uvloop.new_event_loop
