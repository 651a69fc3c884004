"""Declaration of a setting, and what is made of it: flags, variable, words, and a value of text.

Knows no particular setting. The field of a settings class is one by its default:

    cups: int = setting(2, "Number of cups.", "Most drink two.", group="Tea", limits=(1, 6))
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from math import inf
from types import NoneType
from typing import Any, Final, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")

_UNITS: Final = {"s": "SECONDS", "ms": "MILLISECONDS"}
_TRUTHS: Final = {
    **dict.fromkeys(("true", "1", "yes", "on", "y", "t"), True),
    **dict.fromkeys(("false", "0", "no", "off", "n", "f"), False),
}


class Switch(NamedTuple):
    """Flags that take no value and stand for the empty one. The setting's own flags exclude them."""

    flags: tuple[str, ...]
    help: str


class NotAllowedError(ValueError):
    """Error of values that a setting may not have, which are its arguments."""


def setting(
    default: T,
    help: str,
    why: str,
    *,
    group: str = "",
    limits: tuple[float, float] | None = None,
    read: Callable[[str], object] | None = None,
    allowed: str = "",
    unset: str = "",
    metavar: str = "",
    flags: tuple[str, ...] = (),
    variable: str = "",
    variable_read_elsewhere: bool = False,
    none_of_several: Switch | None = None,
) -> T:
    """Declare a setting, as the default of a field of a settings class.

    Args:
        default: the value without a flag and a variable.
        help: a sentence.
        why: why the default is what it is, for people who think of changing it.
        group: heading under which help and reference show it; that of the field before it where it is left out.
        limits: the least and the greatest number.
        read: makes the value of its text, or for a number the text of a number; raises ValueError for what is not
            allowed. Only numbers, booleans and Literals of text need none; any other text is taken as it is.
        allowed: the allowed values in words, to follow "must be", where type and limits do not have them.
        unset: what happens without a value, where the default is None. `{workers}` in it stands for the default of the
            field `workers`.
        metavar: the word that stands for the value in the help, where name and type do not have a good one.
        flags: the long form that messages use comes first; () means `--` and the field's name.
        variable: the environment variable; "" means the prefix and the field's name.
        variable_read_elsewhere: the variable is documented here and read by the module that knows its format.
        none_of_several: the value is a list, joined by commas: the flag may be given several times, an empty text is a
            value, and these flags stand for it. For other settings an empty variable is none, as templates produce it.
    """
    metadata = {name: value for name, value in locals().items() if name != "default"}
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """A setting with everything worked out, `default` and `allowed` in words: see `setting`. `type` is without None."""

    name: str
    type: Any
    group: str
    help: str
    why: str
    default: str
    limits: tuple[float, float] | None
    read: Callable[[str], object] | None
    allowed: str
    unset: str
    metavar: str
    flags: tuple[str, ...]
    variable: str
    variable_read_elsewhere: bool
    none_of_several: Switch | None

    @property
    def is_switch(self) -> bool:
        """Report whether it is true or false, so that the flag alone means true."""
        return self.type is bool

    def value_of(self, given: object) -> object:
        """Read a text; of other values, which tests and programs give, only the limits are checked.

        Raises:
            NotAllowedError: it is not allowed; its arguments are the wrong ones, where a text has several values.
        """
        try:
            value = self.read(given) if self.read is not None and isinstance(given, str) else given
            value = self._typed(value) if isinstance(value, str) else value
        except NotAllowedError:
            raise
        except (ValueError, KeyError):
            raise NotAllowedError(given) from None
        least, greatest = self.limits or (-inf, inf)
        if isinstance(value, int | float) and not least <= value <= greatest:
            raise NotAllowedError(given)
        return value

    def _typed(self, text: str) -> object:
        if self.type is bool:
            return _TRUTHS[text.lower()]
        if get_origin(self.type) is Literal:
            words = get_args(self.type)
            return words[words.index(text.lower())]
        return self.type(text) if self.type in (int, float) else text


def options_of(model: type[Any], prefix: str, defaults: Mapping[str, object]) -> Iterator[Option]:
    """The options of a settings class; `defaults` stand before its own, `prefix` before most variables."""
    types = get_type_hints(model)
    values = {field.name: defaults.get(field.name, field.default) for field in dataclasses.fields(model)}
    words = {name: default_in_words(value) for name, value in values.items()}
    group = ""
    for field in dataclasses.fields(model):
        if not field.metadata:
            raise TypeError(f"the field {field.name} of {model.__name__} is no setting: declare it by setting()")
        given, name, type_ = dict(field.metadata), field.name, _without_none(types[field.name])
        group = given["group"] or group
        given |= {
            "name": name,
            "type": type_,
            "group": group,
            "default": given["unset"].format_map(words) if values[name] is None else words[name],
            "allowed": given["allowed"] or _allowed(type_, given["limits"]),
            "metavar": given["metavar"] or _metavar(name, type_),
            "flags": given["flags"] or ("--" + name.replace("_", "-"),),
            "variable": given["variable"] or prefix + name.upper(),
        }
        yield Option(**given)


def default_in_words(default: object) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, float) else str(default)


def _without_none(type_: Any) -> Any:
    others = [each for each in get_args(type_) if each is not NoneType]
    return others[0] if NoneType in get_args(type_) else type_


def _metavar(name: str, type_: Any) -> str:
    if type_ is bool:
        return "true|false"
    last = name.rpartition("_")[2]
    return _UNITS.get(last, "NUMBER" if type_ is int else last.upper())


def _allowed(type_: Any, limits: tuple[float, float] | None) -> str:
    if type_ is bool:
        return "true or false"
    if get_origin(type_) is Literal:
        *others, last = get_args(type_)
        return f"{', '.join(others)} or {last}"
    if type_ not in (int, float):
        return "a text"
    between = f" from {limits[0]} to {limits[1]}" if limits else ""
    return f"a {'whole ' if type_ is int else ''}number{between}"
