"""A program's command line: flags from settings, and words for what is wrong with the arguments."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from operator_runtime.settings.setting import Option

# Exit codes: 2 is what shells and argparse use for wrong usage, 130 what a shell reports when Ctrl-C ended a program.
DONE, WRONG_USAGE, INTERRUPTED = 0, 2, 130

Flags = Mapping[str, Any]
"""What each flag that was given says, by its setting's name: a text, or a list of them where it may be repeated."""


class UsageError(Exception):
    """The arguments do not make sense. Each line of the message names one that does not, and what would."""


class Parser(argparse.ArgumentParser):
    """Raises instead of ending the process, and knows no abbreviations: they break when a flag is added."""

    def __init__(self, *, prog: str, description: str, usage: str | None = None) -> None:
        # Never wider than is comfortable to read; the 2 is the margin that argparse itself leaves.
        width = min(shutil.get_terminal_size().columns - 2, 100)
        super().__init__(
            prog=prog,
            usage=usage,
            description=description,
            argument_default=argparse.SUPPRESS,
            allow_abbrev=False,
            formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=8, width=width),
        )

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)

    def known_flags(self) -> list[str]:
        return [flag for action in self._actions for flag in action.option_strings]


def answered(program_name: str, work: Callable[[], int]) -> int:
    """The exit code of `work`. What is wrong with its arguments is printed on standard error, a line each."""
    try:
        return work()
    except (UsageError, ValueError) as error:
        from operator_runtime.settings.schema import SettingsError  # what has no settings does not load them

        if not isinstance(error, UsageError | SettingsError):
            raise
        for line in str(error).splitlines():
            print(f"{program_name}: {line}", file=sys.stderr)
        print(f"Try '{program_name} --help'.", file=sys.stderr)
        return WRONG_USAGE
    except KeyboardInterrupt:  # before the operator has its own handlers
        return INTERRUPTED


def add_settings(parser: Parser, options: Iterable[Option], shown: Collection[str] | None = None) -> None:
    """Add the flags of each setting, group by group; the help shows these, or all."""
    groups: dict[str, argparse._ArgumentGroup] = {}
    for option in options:
        hidden = shown is not None and option.name not in shown
        if not hidden and option.group not in groups:
            groups[option.group] = parser.add_argument_group(option.group)
        exclusive = (parser if hidden else groups[option.group]).add_mutually_exclusive_group()
        help_text = f"{option.help} ({option.variable}; default: {option.default})".replace("%", "%%")
        exclusive.add_argument(
            *option.flags,
            dest=option.name,
            action="append" if option.none_of_several else "store",
            nargs="?" if option.is_switch else None,
            const="true" if option.is_switch else None,
            metavar=option.metavar,
            help=argparse.SUPPRESS if hidden else help_text,
        )
        if switch := option.none_of_several:
            text = argparse.SUPPRESS if hidden else switch.help
            exclusive.add_argument(*switch.flags, dest=option.name, action="store_const", const="", help=text)


def asks_for_help(arguments: Sequence[str]) -> bool:
    return "-h" in arguments or "--help" in arguments


def parse(parser: Parser, arguments: Sequence[str]) -> Flags:
    """The flags that were given; UsageError where one is unknown, lacks its value or contradicts another."""
    given, unknown = parser.parse_known_args(arguments)
    if unknown:
        # The value of an unknown flag is left over too; the flag is what to speak of.
        word = next((word for word in unknown if word.startswith("-")), unknown[0]).partition("=")[0]
        kind = "flag" if word.startswith("-") else "argument"
        raise UsageError(f"unknown {kind} {word!r}{did_you_mean(word, parser.known_flags())}")
    return vars(given)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown word: the nearest known one, or nothing."""
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def printed(text: str) -> int:
    """Print to standard output. Its reader may leave early (`crd | head`), which is no fault."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # What stays in the buffer would fail again at exit, with a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return DONE
