"""The whole program around an operator: from its command line to its exit code.

    def set_up(operator: Operator, config: RuntimeConfig) -> None:
        operator.controller("myownshell", SHELLS, ShellReconciler(operator).reconcile).owns(DEPLOYMENTS)

    if __name__ == "__main__":
        sys.exit(run("my-own-shell", set_up, version="0.1.0"))

Only the process that validates the settings loads what that takes; see process.py.
"""

from __future__ import annotations

import logging
import os
import pkgutil
import sys
from collections.abc import Callable, Sequence
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from operator_runtime.config import RuntimeConfig
from operator_runtime.identity import Program
from operator_runtime.process import process

if TYPE_CHECKING:
    from operator_runtime.operator import Operator
    from operator_runtime.process.settings import RuntimeSettings

logger = logging.getLogger(__name__)

C = TypeVar("C", bound=RuntimeConfig)


@overload
def run(
    name: str,
    set_up: Callable[[Operator, RuntimeConfig], None],
    *,
    version: str,
    description: str = ...,
    leader_election_id: str | None = ...,
    argv: Sequence[str] | None = ...,
) -> int: ...


@overload
def run(
    name: str,
    set_up: Callable[[Operator, C], None],
    *,
    version: str,
    description: str = ...,
    leader_election_id: str | None = ...,
    settings: str | type[RuntimeSettings],
    config: type[C],
    argv: Sequence[str] | None = ...,
) -> int: ...


def run(
    name: str,
    set_up: Callable[[Operator, Any], None],
    *,
    version: str,
    description: str = "",
    leader_election_id: str | None = None,
    settings: str | type[RuntimeSettings] | None = None,
    config: type[RuntimeConfig] = RuntimeConfig,
    argv: Sequence[str] | None = None,
) -> int:
    """Do what the command line says, which without `--help` or `--version` is to run the operator until it is stopped.

    This replaces the process by a leaner one with the same command line, so that everything before the call happens
    twice. Log lines of the package that `set_up` is in, and of the one that was started, are the operator's own.

    Args:
        name: what a shell calls the program: my-own-shell. Its variables begin with MY_OWN_SHELL_.
        set_up: adds controllers and whatever else to an operator that does not run yet.
        version: of the program.
        description: a sentence for its help.
        leader_election_id: the default name of the lock of its leader; None for the operator's name and `-lock`.
        settings: a subclass of RuntimeSettings, where the operator has settings of its own; as text
            (`my_own_shell.settings:Settings`) it is loaded only where it is needed, which saves 15 MiB.
        config: the same settings as `set_up` gets them: a subclass of RuntimeConfig with the same fields.
        argv: the arguments; None for the process's own.

    Returns:
        The exit code: 2 for wrong usage, 130 after Ctrl-C before it ran, 1 where it cannot run or came to an end by a
        fault, else 0.

    Raises:
        TypeError, ValueError: the program's author gave something that does not fit; the message says what.
    """
    if iscoroutinefunction(set_up):
        raise TypeError("set_up must be a plain function: it puts parts together, and nothing runs yet (async def)")
    program = Program(name, version, description, leader_election_id)
    validated = process.validated_settings(program)
    if validated is not None:
        from operator_runtime.operator import serve

        return process.operate(
            program,
            validated,
            config,
            lambda config: serve(config, program, set_up),
            own_packages=packages_of(set_up),
        )

    from operator_runtime.process import flags

    arguments = list(sys.argv[1:] if argv is None else argv)
    if "--version" in arguments:
        return flags.printed(f"{name} {version}\n")
    return flags.answered(name, lambda: _command(program, _model(program, settings, config), arguments))


def _command(program: Program, model: type[RuntimeSettings], arguments: Sequence[str]) -> int:
    from argparse import SUPPRESS

    from operator_runtime.process import flags
    from operator_runtime.process.knobs import options_of, reference

    if list(arguments) == ["settings-reference"]:  # for who keeps the page among the program's documents
        origin = f"Made by `{program.name} settings-reference`; do not edit."
        return flags.printed(reference(model, title="Settings", origin=origin))
    parser = flags.Parser(
        prog=program.name,
        usage=f"{program.name} [flags]",
        description=f"{program.description}\n{VARIABLES_IN_WORDS}".lstrip(),
    )
    parser.add_argument("--version", action="store_const", const="yes", default=SUPPRESS, help="print the version")
    flags.add_settings(parser, options_of(model))
    if flags.asks_for_help(arguments):
        return flags.printed(parser.format_help())
    return start(program, flags.settings_from(model, flags.parse(parser, arguments)))


VARIABLES_IN_WORDS = "In parentheses: the environment variable, which a flag overrides, and the default."


def start(program: Program, settings: RuntimeSettings) -> NoReturn:
    """Become the operator with these settings; variables that set nothing are warned of before."""
    from operator_runtime.process import logs
    from operator_runtime.process.knobs import options_of, unknown_variables

    logs.configure(log_format=settings.log_format, level=settings.log_level, current_reconcile=lambda: None)
    for sentence in unknown_variables(options_of(type(settings)), program.variable_prefix, os.environ):
        logger.warning("%s", sentence)
    process.become_operator(program, settings.model_dump_json())


def _model(
    program: Program, settings: str | type[RuntimeSettings] | None, config: type[RuntimeConfig]
) -> type[RuntimeSettings]:
    """The settings of this program.

    Raises:
        TypeError: there are none, or they are not those that the operator's process takes; a line for each mistake.
    """
    from operator_runtime.process.author_mistakes import refuse_mistakes
    from operator_runtime.process.settings import RuntimeSettings, settings_of

    try:
        found = pkgutil.resolve_name(settings) if isinstance(settings, str) else settings or RuntimeSettings
    except (ImportError, AttributeError, ValueError) as error:
        raise TypeError(
            f"settings={settings!r} names nothing that can be loaded ({error}): "
            "write MODULE:CLASS, such as 'my_own_shell.settings:Settings'"
        ) from error
    refuse_mistakes(found, config)
    model: type[RuntimeSettings] = settings_of(found, program)
    return model


def packages_of(set_up: Callable[..., object]) -> tuple[str, ...]:
    """The packages whose log lines are the operator's: the one that was started, and the one that `set_up` is in."""
    started = sys.modules["__main__"].__package__
    module = sys.modules.get(set_up.__module__)
    own = (module.__package__ or module.__name__) if module else None
    return tuple(dict.fromkeys(name for name in ("__main__", started, own) if name))
