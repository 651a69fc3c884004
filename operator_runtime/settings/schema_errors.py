"""Mistakes in an author's settings, found before any of them is used, and reported all at once.

Nothing here is a user's doing: that is `schema.SettingsError`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, get_args, get_origin

import msgspec

from operator_runtime.settings.setting import Field, NotAllowedError, Option, Setting

# Of `Setting`, by what they name.
_PARAMETERS = {"flag": "flags", "variable": "variable"}
# What every program has already.
_FLAGS_OF_ALL = ("-h", "--help", "--version")


def mistakes_of(fields: Sequence[Field], prefix: str) -> tuple[str, ...]:
    """A sentence for each thing that keeps a field from being an option, with the field's name and what to write."""
    names = [field.name for field in fields]
    mistakes = [f"the setting {field.name}{mistake}" for field in fields for mistake in _mistakes(field, names)]
    return (*mistakes, *_duplicates(fields, prefix))


def _mistakes(field: Field, names: Iterable[str]) -> Iterator[str]:
    if field.default is msgspec.NODEFAULT:
        yield (
            " has no default: write `= VALUE` behind its type; or make that `TYPE | None`, the default None, "
            "and say in unset= of its Setting what happens then"
        )
    setting = field.setting
    if setting is None:
        yield (
            " has no Setting; a whole one reads "
            f"{field.name}: Annotated[TYPE, Setting(GROUP, help=..., why=..., metavar=...)] = DEFAULT"
        )
        return
    if not setting.help:
        yield " has no description: give its Setting help=, a sentence"
    if field.default is None and not setting.unset:
        yield " has the default None: say in unset= of its Setting what happens without a value"
    try:
        setting.unset.format_map(dict.fromkeys(names, ""))
    except (KeyError, ValueError, IndexError) as error:
        yield f": unset= of its Setting is {setting.unset!r}, and {{}} in it holds no setting's name ({error!r})"
    for flag in _flags(field, setting):
        if not re.fullmatch(r"-[^-\s=]|--[^-\s=][^\s=]*", flag):
            yield f" has the flag {flag!r}: write --WORD, or - and one letter"
    if not setting.allowed:
        yield from _untold_by_type(field)
    if (get_origin(field.plain) or field.plain) in (list, tuple, set, frozenset, dict) and setting.read is None:
        yield " is given as one text: give its Setting read=, which makes its items of that"


def _untold_by_type(field: Field) -> Iterator[str]:
    """Yield what keeps the type from showing which values are allowed."""
    if field.plain is bool:
        return
    if get_origin(field.plain) is Literal:
        if not all(isinstance(value, str) for value in get_args(field.plain)):
            yield " is given as text: make the values of its Literal texts"
    elif field.plain not in (int, float):
        yield " does not say what is allowed: give its Setting allowed=, to follow 'must be'"
    elif field.limit("ge") is None or field.limit("le") is None:
        yield " is a number and has no limits: annotate it with msgspec.Meta(ge=..., le=...)"


def _flags(field: Field, setting: Setting) -> tuple[str, ...]:
    """List all of a setting's flags, those of its switches too."""
    return (*field.flags, *(flag for switch in setting.switches for flag in switch.flags))


def _duplicates(fields: Iterable[Field], prefix: str) -> Iterator[str]:
    """Flags and variables that stand for more than one setting."""
    takers: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for flag in _FLAGS_OF_ALL:
        takers["flag", flag].append("every program")
    for field in fields:
        if field.setting is None:
            continue
        for flag in _flags(field, field.setting):
            takers["flag", flag].append(field.name)
        takers["variable", field.variable(prefix)].append(field.name)
    for (what, name), names in takers.items():
        if len(names) > 1:
            # The last one is the author's: a subclass's own fields come after those that it inherits.
            yield (
                f"the {what} {name} of the setting {names[-1]} is taken by {names[0]}: "
                f"give its Setting another one with {_PARAMETERS[what]}="
            )


def wrong_defaults(
    model: type[msgspec.Struct], options: Iterable[Option], defaults: Mapping[str, object]
) -> tuple[str, ...]:
    """A sentence for each default that the settings forbid themselves."""
    mistakes, values = [], {}
    for option in options:
        default = defaults[option.name]
        try:
            values[option.name] = option.value_of(default)
        except NotAllowedError:
            mistakes.append(
                f"the setting {option.name} has the default {default!r}, which it does not allow itself: "
                f"it must be {option.allowed}"
            )
    if mistakes:
        return tuple(mistakes)
    try:
        model(**values)
    except ValueError as error:
        return tuple(f"the defaults of {model.__name__} do not fit: {line}" for line in str(error).splitlines())
    return ()
