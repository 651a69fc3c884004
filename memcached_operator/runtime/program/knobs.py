"""What is written beside a setting, and what is made of it: variables, words for messages, the reference.

Knows no particular setting. A settings model annotates each field with a `Knob`; its `env_prefix` names the variables
that have no name of their own.
"""

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args, get_origin

from annotated_types import Ge, Le
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource


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
        variable_read_elsewhere: the variable is documented here and read by the room that knows its format.
        empty_counts: an empty variable is a value. For other knobs it means "not set", as templates produce it.
        repeatable: the flag may be given several times; the values are joined by commas.
        switches: flags for single values.
        allowed: the allowed values in words, to follow "must be", where the type does not tell them.
        unset: what happens without a value, where the default is None.
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
    """The options of a model, in its order. Each field has one `Knob`, each number both limits."""
    prefix = model.model_config.get("env_prefix", "")
    return tuple(_option(name, field, prefix) for name, field in model.model_fields.items())


def _option(name: str, field: FieldInfo, prefix: str) -> Option:
    (knob,) = (item for item in field.metadata if isinstance(item, Knob))
    default = field.default
    return Option(
        name=name,
        knob=knob,
        flags=knob.flags or ("--" + name.replace("_", "-"),),
        variable=knob.variable or prefix + name.upper(),
        help=field.description or "",
        default=knob.unset if default is None else _in_words(default),
        allowed=knob.allowed or _allowed_by_type(field),
        is_switch=field.annotation is bool,
    )


def _in_words(default: object) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, float) else str(default)


def _allowed_by_type(field: FieldInfo) -> str:
    if field.annotation is bool:
        return "true or false"
    if get_origin(field.annotation) is Literal:
        *others, last = get_args(field.annotation)
        return f"{', '.join(others)} or {last}"
    (least,) = (item.ge for item in field.metadata if isinstance(item, Ge))
    (most,) = (item.le for item in field.metadata if isinstance(item, Le))
    return f"a {'whole ' if field.annotation is int else ''}number from {least} to {most}"


class KnobVariables(PydanticBaseSettingsSource):
    """The process's environment as a source of settings, read as the knobs say."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[str | None, str, bool]:
        option = _option(field_name, field, self.config.get("env_prefix", ""))
        value = None if option.knob.variable_read_elsewhere else os.environ.get(option.variable)
        if value == "" and not option.knob.empty_counts:
            value = None
        return value, field_name, False

    def __call__(self) -> dict[str, object]:
        fields = self.settings_cls.model_fields.items()
        values = {name: self.get_field_value(field, name)[0] for name, field in fields}
        return {name: value for name, value in values.items() if value is not None}


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


def reference(options: Sequence[Option], *, title: str, origin: str, introduction: str) -> str:
    """The options as a page of Markdown: a table to look up, then a section for each."""
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
