"""The settings of a program as a page of Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from operator_runtime.settings.schema import Schema
from operator_runtime.settings.setting import Option


def reference(schema: Schema[Any], *, title: str, origin: str) -> str:
    """Write the reference of the settings: how they are read, a table of them, then a section for each."""
    options = schema.options
    empty = ", ".join(f"`{option.variable}`" for option in options if option.none_of_several)
    introduction = (
        "A flag overrides the environment variable, and the variable the default. A variable that is set to nothing "
        f"counts as not set{f', {empty} excepted' if empty else ''}. A wrong value ends the operator at once with exit "
        f"code 2 and a message that names it. An unknown variable with the prefix "
        f"`{schema.prefix}` is reported as a warning in the log."
    )
    lines = [f"# {title}", "", f"<!-- {origin} -->", "", introduction, ""]
    lines += ["| Flag | Variable | Default |", "|---|---|---|"]
    lines += [f"| `{option.flags[0]}` | `{option.variable}` | {_default(option)} |" for option in options]
    for option, previous in zip(options, (None, *options), strict=False):
        if previous is None or previous.group != option.group:
            lines += ["", f"## {option.group}"]
        value = f"[={option.metavar}]" if option.is_switch else f" {option.metavar}"
        lines += ["", f"### `{option.flags[0]}{value}`", "", option.help, ""]
        if option.flags[1:]:
            lines.append(f"- Also: {_quoted(option.flags[1:])}")
        if switch := option.none_of_several:
            lines.append(f"- {_quoted(switch.flags)}: {switch.help}")
        lines += [
            f"- Variable: `{option.variable}`",
            f"- Allowed: {option.allowed}",
            f"- Default: {_default(option)}",
            f"- Why: {option.why}",
        ]
    return "\n".join(lines) + "\n"


def _default(option: Option) -> str:
    return option.default if option.unset else f"`{option.default}`"


def _quoted(flags: Sequence[str]) -> str:
    return ", ".join(f"`{flag}`" for flag in flags)
