"""What is written beside a setting, and what is made of it: variables, words for messages, the reference.

Knows no particular setting. A settings model annotates each field with a `Knob`; its `env_prefix` names the variables
that have no name of their own.
"""

import difflib
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import BeforeValidator, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticUndefined
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

S = TypeVar("S", bound=BaseSettings)


@dataclass(frozen=True, slots=True)
class Switch:
    """Flags that take no value and stand for one value of a knob. The knob's own flags exclude them."""

    flags: tuple[str, ...]
    value: str
    help: str


@dataclass(frozen=True, slots=True)
class Knob:
    """What a field's type cannot say of a setting.

    Attributes:
        group: heading under which help and reference show it.
        why: why the default is what it is, for people who think of changing it.
        metavar: the word that stands for the value in the help.
        flags: the long form that messages use comes first; () means `--` and the field's name.
        variable: None means the prefix and the field's name.
        variable_read_elsewhere: the variable is documented here and read by the module that knows its format.
        empty_counts: an empty variable is a value. For other knobs it means "not set", as templates produce it.
        repeatable: the flag may be given several times; the values are joined by commas.
        switches: flags for single values.
        allowed: the allowed values in words, to follow "must be", where the type does not tell them.
        unset: what happens without a value, where the default is None. `{workers}` in it stands for the default of the
            field `workers`.
    """

    group: str
    why: str
    metavar: str
    flags: tuple[str, ...] = ()
    variable: str | None = None
    variable_read_elsewhere: bool = False
    empty_counts: bool = False
    repeatable: bool = False
    switches: tuple[Switch, ...] = ()
    allowed: str = ""
    unset: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """A field and its knob with everything worked out.

    Attributes:
        name: the field's name in the model.
        flags: at least one.
        default: in words.
        allowed: in words, to follow "must be".
        is_switch: true or false; the flag alone means true.
    """

    name: str
    knob: Knob
    flags: tuple[str, ...]
    variable: str
    help: str
    default: str
    allowed: str
    is_switch: bool = False


def options_of(model: type[BaseSettings]) -> tuple[Option, ...]:
    """The options of a model: group after group as they first occur, and in each in the model's order.

    Raises:
        TypeError: fields lack what an option needs; the message has a line for each mistake, with what to write.
    """
    if mistakes := mistakes_of(model):
        raise TypeError("\n".join(mistakes))
    prefix = model.model_config.get("env_prefix", "")
    defaults = {name: _in_words(field.default) for name, field in model.model_fields.items()}
    options = [_option(name, field, prefix, defaults) for name, field in model.model_fields.items()]
    groups = list(dict.fromkeys(option.knob.group for option in options))
    return tuple(sorted(options, key=lambda option: groups.index(option.knob.group)))


def mistakes_of(model: type[BaseSettings]) -> tuple[str, ...]:
    """A sentence for each thing that keeps a field from being an option, with the field's name and what to write."""
    fields = model.model_fields
    mistakes = [mistake for name, field in fields.items() for mistake in _mistakes(name, field, fields)]
    return (*mistakes, *_taken_twice(model))


# What every program has already.
_FLAGS_OF_ALL = ("-h", "--help", "--version")


def _mistakes(name: str, field: FieldInfo, fields: Mapping[str, object]) -> Iterator[str]:
    setting = f"the setting {name}"
    if field.default is PydanticUndefined:
        yield (
            f"{setting} has no default: write `= VALUE` behind its type; or make that `TYPE | None`, the default None, "
            "and say in unset= of its Knob what happens then"
        )
    knob = _knob_of(field)
    if knob is None:
        yield (
            f"{setting} has no Knob; a whole one reads "
            f"{name}: Annotated[TYPE, Field(description=...), Knob(GROUP, why=..., metavar=...)] = DEFAULT"
        )
        return
    if not field.description:
        yield f"{setting} has no description: give its Field description=, a sentence for the help"
    if field.default is None and not knob.unset:
        yield f"{setting} has the default None: say in unset= of its Knob what happens without a value"
    try:
        knob.unset.format_map(dict.fromkeys(fields, ""))
    except (KeyError, ValueError, IndexError) as error:
        yield f"{setting}: unset= of its Knob is {knob.unset!r}, and {{}} in it holds no setting's name ({error!r})"
    for flag in _flags(name, knob):
        if not re.fullmatch(r"-[^-\s=]|--[^-\s=][^\s=]*", flag):
            yield f"{setting} has the flag {flag!r}: write --WORD, or - and one letter"
    if not knob.allowed:
        yield from (f"{setting} {wrong}" for wrong in _untold_by_type(field))
    if get_origin(field.annotation) in (list, tuple, set, frozenset, dict) and not any(
        isinstance(item, BeforeValidator) for item in field.metadata
    ):
        yield f"{setting} is given as one text: annotate it with a BeforeValidator that makes its items of that"


def _untold_by_type(field: FieldInfo) -> Iterator[str]:
    """What keeps the type from telling which values are allowed."""
    if field.annotation is bool:
        return
    if get_origin(field.annotation) is Literal:
        if not all(isinstance(value, str) for value in get_args(field.annotation)):
            yield "is given as text: make the values of its Literal texts"
    elif field.annotation not in (int, float):
        yield "does not say what is allowed: give its Knob allowed=, to follow 'must be'"
    elif None in _limits(field):
        yield "is a number and has no limits: give its Field both ge= and le="


def _taken_twice(model: type[BaseSettings]) -> Iterator[str]:
    """Flags and variables that stand for more than one setting."""
    prefix = model.model_config.get("env_prefix", "")
    takers: defaultdict[str, list[str]] = defaultdict(list)
    for flag in _FLAGS_OF_ALL:
        takers[f"the flag {flag}"].append("every program")
    for name, field in model.model_fields.items():
        if (knob := _knob_of(field)) is None:
            continue
        for flag in _flags(name, knob):
            takers[f"the flag {flag}"].append(name)
        takers[f"the variable {_variable(name, knob, prefix)}"].append(name)
    for what, names in takers.items():
        if len(names) > 1:
            # The last one is the author's: a subclass's own fields come after those that it inherits.
            word = "flags" if what.startswith("the flag ") else "variable"
            yield f"{what} of the setting {names[-1]} is taken by {names[0]}: give its Knob another one with {word}="


def _option(name: str, field: FieldInfo, prefix: str, defaults: Mapping[str, str]) -> Option:
    knob = _knob(name, field)
    default = field.default
    return Option(
        name=name,
        knob=knob,
        flags=knob.flags or (_own_flag(name),),
        variable=_variable(name, knob, prefix),
        help=field.description or "",
        default=knob.unset.format_map(defaults) if default is None else _in_words(default),
        allowed=knob.allowed or _allowed_by_type(field),
        is_switch=field.annotation is bool,
    )


def _knob(name: str, field: FieldInfo) -> Knob:
    knob = _knob_of(field)
    if knob is None:
        raise TypeError(f"the setting {name} has no Knob")
    return knob


def _knob_of(field: FieldInfo) -> Knob | None:
    return next((item for item in field.metadata if isinstance(item, Knob)), None)


def _own_flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _flags(name: str, knob: Knob) -> tuple[str, ...]:
    """All of a setting's flags, those of its switches too."""
    return (*(knob.flags or (_own_flag(name),)), *(flag for switch in knob.switches for flag in switch.flags))


def _variable(name: str, knob: Knob, prefix: str) -> str:
    return knob.variable or prefix + name.upper()


def _in_words(default: object) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, float) else str(default)


def _allowed_by_type(field: FieldInfo) -> str:
    if field.annotation is bool:
        return "true or false"
    if get_origin(field.annotation) is Literal:
        *others, last = get_args(field.annotation)
        return f"{', '.join(others)} or {last}" if others else str(last)
    least, most = _limits(field)
    return f"a {'whole ' if field.annotation is int else ''}number from {least} to {most}"


def _limits(field: FieldInfo) -> tuple[object, object]:
    """The least and the greatest value, None where there is none."""
    least = next((item.ge for item in field.metadata if isinstance(item, Ge)), None)
    most = next((item.le for item in field.metadata if isinstance(item, Le)), None)
    return least, most


class KnobVariables(PydanticBaseSettingsSource):
    """The process's environment as a source of settings, read as the knobs say."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[str | None, str, bool]:
        knob = _knob(field_name, field)
        variable = _variable(field_name, knob, self.config.get("env_prefix", ""))
        value = None if knob.variable_read_elsewhere else os.environ.get(variable)
        if value == "" and not knob.empty_counts:
            value = None
        return value, field_name, False

    def __call__(self) -> dict[str, object]:
        fields = self.settings_cls.model_fields.items()
        values = {name: self.get_field_value(field, name)[0] for name, field in fields}
        return {name: value for name, value in values.items() if value is not None}


class SettingsError(ValueError):
    """Values that are not allowed. `problems` has one sentence each: the origin, the value and what is allowed."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def load(model: type[S], flags: Mapping[str, str]) -> S:
    """The settings from the flags that were given (by field name, as text) and the environment.

    Raises:
        SettingsError: naming each flag or variable that holds a wrong value.
    """
    try:
        return model.model_validate(dict(flags))
    except ValidationError as error:
        by_name = {option.name: option for option in options_of(model)}
        problems = []
        for detail in error.errors(include_url=False):
            if not detail["loc"]:  # values that do not fit together; the message names them
                problems += misfit(detail)
                continue
            option = by_name[str(detail["loc"][0])]
            origin = option.flags[0] if option.name in flags else option.variable
            problems.append(f"{origin}: {detail['input']!r} is not allowed, it must be {option.allowed}")
        raise SettingsError(tuple(problems)) from None


def misfit(detail: ErrorDetails) -> list[str]:
    """What a validator of the whole model said of values that do not fit together, a sentence each."""
    return str(detail.get("ctx", {}).get("error", detail["msg"])).splitlines()


# A Service whose name begins like the operator's puts such variables into every container of its namespace
# (https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables).
SERVICE_LINK = re.compile(
    r"(_SERVICE_HOST|_SERVICE_PORT(_[A-Z0-9_]+)?|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$"
)


def unknown_variables(options: Sequence[Option], prefix: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """A sentence for each variable that has the prefix and sets nothing, with the nearest one that does.

    To be warned of rather than refused: a pod must still start when its image is rolled back to a release that does
    not know a newer variable.
    """
    known = {option.variable for option in options}
    # Compared without the prefix, which would make everything look alike, and by the field's name, so that the prefix
    # before a variable that has none is recognised too.
    by_suffix = {option.name.upper(): option.variable for option in options}
    sentences = []
    for name in sorted(environ):
        if not name.startswith(prefix) or name in known or SERVICE_LINK.search(name):
            continue
        near = difflib.get_close_matches(name.removeprefix(prefix), by_suffix, n=1)
        hint = f"; did you mean {by_suffix[near[0]]}?" if near else ""
        sentences.append(f"the environment variable {name} sets nothing{hint}")
    return tuple(sentences)


def reference(model: type[BaseSettings], *, title: str, origin: str) -> str:
    """The options of a model as a page of Markdown: how they are read, a table to look up, then a section for each.

    Args:
        model: the settings of one program.
        title: the page's heading.
        origin: how the page is made, for who would edit it.
    """
    options = options_of(model)
    empty = ", ".join(f"`{option.variable}`" for option in options if option.knob.empty_counts)
    introduction = (
        "A flag wins over the environment variable, the variable over the default. A variable that is set to nothing "
        f"counts as not set{f', {empty} excepted' if empty else ''}. A wrong value ends the operator at once with exit "
        "code 2 and a message that names it. An unknown variable with the prefix "
        f"`{model.model_config.get('env_prefix', '')}` is warned of in the log."
    )
    lines = [f"# {title}", "", f"<!-- {origin} -->", "", introduction, ""]
    lines += ["| Flag | Variable | Default |", "|---|---|---|"]
    lines += [f"| `{option.flags[0]}` | `{option.variable}` | {_default(option)} |" for option in options]
    for option, previous in zip(options, (None, *options), strict=False):
        if previous is None or previous.knob.group != option.knob.group:
            lines += ["", f"## {option.knob.group}"]
        value = f"[={option.knob.metavar}]" if option.is_switch else f" {option.knob.metavar}"
        lines += ["", f"### `{option.flags[0]}{value}`", "", option.help, ""]
        if option.flags[1:]:
            lines.append(f"- Also: {_quoted(option.flags[1:])}")
        lines += [f"- {_quoted(switch.flags)}: {switch.help}" for switch in option.knob.switches]
        lines += [
            f"- Variable: `{option.variable}`",
            f"- Allowed: {option.allowed}",
            f"- Default: {_default(option)}",
            f"- Why: {option.knob.why}",
        ]
    return "\n".join(lines) + "\n"


def _default(option: Option) -> str:
    return option.default if option.knob.unset else f"`{option.default}`"


def _quoted(flags: Sequence[str]) -> str:
    return ", ".join(f"`{flag}`" for flag in flags)
