"""The operator's own process: started lean, by the process that validated the settings.

What validates settings (pydantic, argparse) is needed for a moment and would stay resident for months: 15 MiB of about
50. So a program validates, then replaces itself by a fresh interpreter with the same command line and the same process
id, which finds the validated settings in its environment and loads only what the operator needs. Nothing is imported
here before it is known which of the two this process is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, NoReturn, TypeVar

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from operator_runtime.config import RuntimeConfig
    from operator_runtime.identity import Program

    C = TypeVar("C", bound=RuntimeConfig)

# 130 is what a shell reports of a program that Ctrl-C ended.
FAILED, INTERRUPTED = 1, 130


def validated_settings(program: Program) -> str | None:
    """The settings that the process before us validated, as JSON; None in a process that a user started."""
    return os.environ.pop(_variable(program), None)


def become_operator(program: Program, settings_json: str) -> NoReturn:
    """Replace this process by the operator with these settings, as JSON.

    The command line is the interpreter's own, so that it works for `python -m`, for a file and for a console script.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, sys.orig_argv, {**os.environ, _variable(program): settings_json})


def _variable(program: Program) -> str:
    # Of its own for each program: one operator may start another.
    return f"_{program.variable_prefix}VALIDATED_SETTINGS"


def operate(
    program: Program,
    settings_json: str,
    config_type: type[C],
    serve: Callable[[C], Awaitable[int]],
    *,
    own_packages: Iterable[str] = (),
) -> int:
    """Set up logging and run the operator; the exit code.

    Args:
        program: which one it is.
        settings_json: as `become_operator` got it.
        config_type: what the settings become.
        serve: runs until it is told to stop.
        own_packages: whose log lines are the operator's besides the runtime's.
    """
    import msgspec

    from operator_runtime.controller.controller import current_reconcile
    from operator_runtime.process import logs

    config = msgspec.json.decode(settings_json, type=config_type)
    logs.configure(
        log_format=config.log_format,
        level=config.log_level,
        current_reconcile=lambda: current_reconcile.get(None),
        own_packages=own_packages,
    )
    return run_to_the_end(program, serve, config)


def run_to_the_end(program: Program, serve: Callable[[C], Awaitable[int]], config: C) -> int:
    """Run on the fastest event loop there is; what keeps it from starting becomes one plain line."""
    import asyncio
    import logging

    from operator_runtime.client.errors import KubeError
    from operator_runtime.process.logs import escape
    from operator_runtime.serving.http_server import ServingError

    logger = logging.getLogger(__name__)

    async def until_done() -> int:
        return await serve(config)

    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(until_done())
    except KeyboardInterrupt:  # before the operator has its own handlers
        return INTERRUPTED
    except SystemExit as error:
        logger.critical("ended by sys.exit(%r) in its midst: raise an error instead", error.code, exc_info=True)
        raise
    except (KubeError, ServingError) as error:
        if config.log_format == "json":
            logger.critical("%s", error)
        else:
            print(escape(f"{program.name}: {error}"), file=sys.stderr)
    except Exception:
        logger.critical("ended by a fault of its own", exc_info=True)
    return FAILED


def _loop_factory() -> Callable[[], AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # not there for every platform; asyncio's own loop does the same, slower
        return None
    return uvloop.new_event_loop
