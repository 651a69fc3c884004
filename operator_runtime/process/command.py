"""The whole program around an operator: from its command line to its exit code.

def set_up(operator: Operator, settings: RuntimeSettings) -> None:
    operator.controller("myownshell", SHELLS, ShellReconciler(operator).reconcile).owns(DEPLOYMENTS)

if __name__ == "__main__":
    sys.exit(run("my-own-shell", set_up, version="0.1.0"))
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine, Iterable, Sequence
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from operator_runtime.identity import Program
from operator_runtime.process import flags
from operator_runtime.settings.runtime_settings import RuntimeSettings, S
from operator_runtime.settings.schema import Schema

if TYPE_CHECKING:
    from operator_runtime.operator import Operator

logger = logging.getLogger(__name__)

FAILED = 1


def run(
    name: str,
    set_up: Callable[[Operator, S], None],
    *,
    version: str,
    description: str = "",
    leader_election_id: str | None = None,
    settings: type[S] | None = None,
    argv: Sequence[str] | None = None,
) -> int:
    """Run the command line, which without `--help` or `--version` is to run the operator until it is stopped.

    Log lines of the package that `set_up` is in, and of the one that was started, are the operator's own.

    Args:
        name: what a shell calls the program: my-own-shell. Its variables begin with MY_OWN_SHELL_.
        set_up: adds controllers and whatever else to an operator that does not run yet.
        description: a sentence for its help.
        leader_election_id: the default name of the lock of its leader; None for the operator's name and `-lock`.
        settings: a subclass of RuntimeSettings; None where the operator has no settings of its own.
        argv: the arguments; None for the process's own.

    Returns:
        The exit code: 2 for wrong usage, 130 after Ctrl-C before it ran, 1 where it cannot run or came to an end by a
        fault, else 0.

    Raises:
        TypeError, ValueError: the program's author gave something that does not fit; the message has what.
    """
    if iscoroutinefunction(set_up):
        raise TypeError("set_up must be a plain function: it puts parts together, and nothing runs yet (async def)")
    program = Program(name, version, description, leader_election_id)
    arguments = list(sys.argv[1:] if argv is None else argv)
    if "--version" in arguments:
        return flags.printed(f"{name} {version}\n")
    model: type[Any] = settings or RuntimeSettings
    return flags.answered(name, lambda: _command(program, Schema(model, program), set_up, arguments))


def _command(
    program: Program, schema: Schema[S], set_up: Callable[[Operator, S], None], arguments: Sequence[str]
) -> int:
    parser = flags.Parser(
        prog=program.name,
        usage=f"{program.name} [flags]",
        description=f"{program.description}\n{VARIABLES_IN_WORDS}".lstrip(),
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    flags.add_settings(parser, schema.options)
    if flags.asks_for_help(arguments):
        return flags.printed(parser.format_help())
    settings = schema.load(flags.parse(parser, arguments), os.environ)

    from operator_runtime.operator import serve

    own_packages = packages_of(set_up)
    return operate(program, schema, settings, lambda given: serve(given, program, set_up), own_packages=own_packages)


VARIABLES_IN_WORDS = "In parentheses: the environment variable, which a flag overrides, and the default."


def operate(
    program: Program,
    schema: Schema[S],
    settings: S,
    serve: Callable[[S], Coroutine[Any, Any, int]],
    *,
    own_packages: Iterable[str] = (),
) -> int:
    """Set up logging, warn of variables that set nothing, and run the operator; the exit code.

    It runs on the fastest event loop there is. What keeps it from starting becomes one plain line.
    """
    from operator_runtime.client.errors import KubeError
    from operator_runtime.process import logs
    from operator_runtime.serving.listening import ServingError

    logs.configure(log_format=settings.log_format, level=settings.log_level, own_packages=own_packages)
    for sentence in schema.unknown_variables(os.environ):
        logger.warning("%s", sentence)
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(serve(settings))
    except SystemExit as error:
        logger.critical("ended by sys.exit(%r) in its midst: raise an error instead", error.code, exc_info=True)
        raise
    except (KubeError, ServingError) as error:
        if settings.log_format == "json":
            logger.critical("%s", error)
        else:
            print(logs.escape(f"{program.name}: {error}"), file=sys.stderr)
    except Exception:
        logger.critical("ended by an internal error", exc_info=True)
    return FAILED


def _loop_factory() -> Callable[[], AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # not there for every platform; asyncio's own loop does the same, slower
        return None
    return uvloop.new_event_loop


def packages_of(set_up: Callable[..., object]) -> tuple[str, ...]:
    """The packages whose log lines are the operator's: the one that was started, and the one that `set_up` is in."""
    started = sys.modules["__main__"].__package__
    module = sys.modules.get(set_up.__module__)
    own = (module.__package__ or module.__name__) if module else None
    return tuple(dict.fromkeys(name for name in ("__main__", started, own) if name))
