"""Annotation of a setting's type, and what is made of both: flags, variable, words, and a value of text.

Knows no particular setting. The field of a msgspec struct is one by its annotation:

    cups: Annotated[int, Meta(ge=1, le=6), Setting("Tea", help="Cups.", why="Most drink two.", metavar="NUMBER")] = 2
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec


@dataclass(frozen=True, slots=True)
class Switch:
    """Flags that take no value and stand for one value of a setting. The setting's own flags exclude them."""

    flags: tuple[str, ...]
    value: str
    help: str


@dataclass(frozen=True, slots=True)
class Setting:
    """Properties of a setting that its field's type cannot express.

    Attributes:
        group: heading under which help and reference show it.
        help: a sentence.
        why: why the default is what it is, for people who think of changing it.
        metavar: the word that stands for the value in the help.
        flags: the long form that messages use comes first; () means `--` and the field's name.
        variable: None means the prefix and the field's name.
        variable_read_elsewhere: the variable is documented here and read by the module that knows its format.
        empty_counts: an empty variable is a value. For other settings it means "not set", as templates produce it.
        repeatable: the flag may be given several times; the values are joined by commas.
        switches: flags for single values.
        allowed: the allowed values in words, to follow "must be", where the type does not have them.
        unset: what happens without a value, where the default is None. `{workers}` in it stands for the default of the
            field `workers`.
        read: makes of the text what its type takes, or text again where that is a number or true or false; raises
            ValueError for what is not allowed.
    """

    group: str
    help: str
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
    read: Callable[[str], object] | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a settings model, taken apart.

    Attributes:
        name: in the model.
        type: as it is annotated.
        plain: the type without limits, and without None where that is a value too.
        limits: what msgspec holds the values to.
        setting: the annotation of the type, if there is one.
        default: msgspec.NODEFAULT where there is none.
    """

    name: str
    type: Any
    plain: Any
    limits: tuple[msgspec.Meta, ...]
    setting: Setting | None
    default: object

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of the setting; at least one."""
        return (self.setting and self.setting.flags) or ("--" + self.name.replace("_", "-"),)

    def variable(self, prefix: str) -> str:
        """The environment variable."""
        return (self.setting and self.setting.variable) or prefix + self.name.upper()

    def limit(self, name: Literal["ge", "le"]) -> float | None:
        """The least or the greatest value, None where there is none."""
        return next((limit for meta in self.limits if (limit := getattr(meta, name)) is not None), None)


def fields_of(model: type[msgspec.Struct], defaults: Mapping[str, object]) -> tuple[Field, ...]:
    """A model's fields, those of its bases first; `defaults` stand before the model's own."""
    types = get_type_hints(model, include_extras=True)
    fields = {field.name: field for field in msgspec.structs.fields(model)}
    return tuple(
        _field(name, type_, defaults[name] if name in defaults else _default(fields[name]))
        for name, type_ in types.items()
        if name in fields
    )


def _default(field: msgspec.structs.FieldInfo) -> object:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def _field(name: str, type_: Any, default: object) -> Field:
    plain, metadata = _unwrapped(type_)
    limits = tuple(each for each in metadata if isinstance(each, msgspec.Meta))
    setting = next((each for each in metadata if isinstance(each, Setting)), None)
    return Field(name, type_, plain, limits, setting, default)


def _unwrapped(type_: Any) -> tuple[Any, list[object]]:
    """A type without annotations and None, and the annotations."""
    if get_origin(type_) is Annotated:
        inner, *metadata = get_args(type_)
        plain, more = _unwrapped(inner)
        return plain, [*metadata, *more]
    if get_origin(type_) in (Union, UnionType):
        others = [each for each in get_args(type_) if each is not NoneType]
        if len(others) == 1:
            return _unwrapped(others[0])
    return type_, []


@dataclass(frozen=True, slots=True)
class Option:
    """A field that is a setting, with everything worked out.

    Attributes:
        name: the field's name in the model.
        type: as it is annotated.
        flags: at least one.
        default: in words.
        allowed: in words, to follow "must be".
        is_switch: true or false; the flag alone means true.
    """

    name: str
    type: Any
    setting: Setting
    flags: tuple[str, ...]
    variable: str
    default: str
    allowed: str
    is_switch: bool
    _of_text: Callable[[str], object]

    def value_of(self, given: object) -> object:
        """Convert what is given, as text or as a value, to the type.

        Raises:
            NotAllowedError: it is not allowed.
        """
        value = given
        try:
            if isinstance(value, str) and self.setting.read is not None:
                value = self.setting.read(value)
            if isinstance(value, str):
                value = self._of_text(value)
            return msgspec.convert(value, self.type)
        except (ValueError, msgspec.ValidationError):
            # Of several the wrong ones alone are named.
            several = value if isinstance(value, tuple | list) else ()
            raise NotAllowedError(*[each for each in several if not self._fits((each,))] or [given]) from None

    def _fits(self, value: object) -> bool:
        try:
            msgspec.convert(value, self.type)
        except msgspec.ValidationError:
            return False
        return True


class NotAllowedError(ValueError):
    """Error of values that a setting may not have, which are its arguments."""


def option_of(field: Field, prefix: str, defaults: Mapping[str, str]) -> Option:
    """The option that a field without mistakes is; `defaults` are those of all, in words."""
    setting = field.setting
    assert setting is not None
    return Option(
        name=field.name,
        type=field.type,
        setting=setting,
        flags=field.flags,
        variable=field.variable(prefix),
        default=setting.unset.format_map(defaults) if field.default is None else in_words(field.default),
        allowed=setting.allowed or _allowed_by_type(field),
        is_switch=field.plain is bool,
        _of_text=_OF_TEXT.get(field.plain, str),
    )


def in_words(default: object) -> str:
    """A default as it is shown."""
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, float) else str(default)


def _allowed_by_type(field: Field) -> str:
    if field.plain is bool:
        return "true or false"
    if get_origin(field.plain) is Literal:
        *others, last = get_args(field.plain)
        return f"{', '.join(others)} or {last}" if others else str(last)
    return f"a {'whole ' if field.plain is int else ''}number from {field.limit('ge')} to {field.limit('le')}"


def _truth(text: str) -> object:
    return _TRUTHS.get(text.lower(), text)


_TRUTHS = {
    **dict.fromkeys(("true", "1", "yes", "on", "y", "t"), True),
    **dict.fromkeys(("false", "0", "no", "off", "n", "f"), False),
}
_OF_TEXT: Mapping[Any, Callable[[str], object]] = {bool: _truth, int: int, float: float}
