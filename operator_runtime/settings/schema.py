"""Settings of one program: its options, and the values that flags and variables give them.

Knows no particular setting: a model is a msgspec struct whose fields are annotated with a `Setting`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Generic, TypeVar

import msgspec

from operator_runtime.settings.schema_errors import mistakes_of, wrong_defaults
from operator_runtime.settings.setting import NotAllowedError, Option, fields_of, in_words, option_of

S = TypeVar("S", bound=msgspec.Struct)

# A Service whose name begins like the operator's puts such variables into every container of its namespace
# (https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables).
SERVICE_LINK: Final = re.compile(
    r"(_SERVICE_HOST|_SERVICE_PORT(_[A-Z0-9_]+)?|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$"
)


class SettingsError(ValueError):
    """Values that are not allowed. `problems` has one sentence each: the origin, the value and what is allowed."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Schema(Generic[S]):
    """The settings of one program.

    Attributes:
        model: the struct that holds the values.
        prefix: what the variables begin with that have no name of their own.
        options: group after group as they first occur, and in each in the model's order.
    """

    def __init__(self, model: type[S], prefix: str, defaults: Mapping[str, object] | None = None) -> None:
        """
        Args:
            model: has a default and a `Setting` for each field.
            prefix: of the variables.
            defaults: those that stand before the model's own.

        Raises:
            TypeError: the model lacks what settings need; the message has a line for each mistake, with what to write.
        """
        self.model = model
        self.prefix = prefix
        self._defaults = dict(defaults or {})
        fields = fields_of(model, self._defaults)
        if mistakes := mistakes_of(fields, prefix):
            raise TypeError("\n".join(mistakes))
        words = {field.name: in_words(field.default) for field in fields}
        groups = list(dict.fromkeys(field.setting.group for field in fields if field.setting is not None))
        options = [option_of(field, prefix, words) for field in fields]
        self.options = tuple(sorted(options, key=lambda option: groups.index(option.setting.group)))
        if mistakes := wrong_defaults(model, self.options, {field.name: field.default for field in fields}):
            raise TypeError("\n".join(mistakes))

    def load(self, given: Mapping[str, object], environ: Mapping[str, str]) -> S:
        """The settings that are given by their names (the flags, as text), else those of the variables, else defaults.

        Raises:
            SettingsError: naming each flag or variable that holds a wrong value, and each name that is no setting's.
        """
        values = dict(self._defaults)
        problems = [f"there is no setting {name}" for name in given.keys() - {option.name for option in self.options}]
        for option in self.options:
            if option.name in given:
                origin, value = option.flags[0], given[option.name]
            elif (text := _variable_of(option, environ)) is not None:
                origin, value = option.variable, text
            else:
                continue
            try:
                values[option.name] = option.value_of(value)
            except NotAllowedError as error:
                wrong = f"is not allowed, it must be {option.allowed}"
                problems += [f"{origin}: {each!r} {wrong}" for each in error.args]
        if problems:
            raise SettingsError(tuple(problems))
        try:
            return self.model(**values)
        except ValueError as error:  # values that do not fit together; the message names them
            raise SettingsError(tuple(str(error).splitlines())) from None

    def unknown_variables(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        """A sentence for each variable that has the prefix and sets nothing, with the nearest one that does.

        To be warned of rather than refused: a pod must still start when its image is rolled back to a release that
        does not know a newer variable.
        """
        known = {option.variable for option in self.options}
        unknown = [name for name in sorted(environ) if name.startswith(self.prefix) and name not in known]
        return tuple(self._unknown(name) for name in unknown if not SERVICE_LINK.search(name))

    def _unknown(self, name: str) -> str:
        from difflib import get_close_matches

        # Compared without the prefix, which would make everything look alike, and by the field's name, so that the
        # prefix before a variable that has none is recognised too.
        by_suffix = {option.name.upper(): option.variable for option in self.options}
        near = get_close_matches(name.removeprefix(self.prefix), by_suffix, n=1)
        hint = f"; did you mean {by_suffix[near[0]]}?" if near else ""
        return f"the environment variable {name} sets nothing{hint}"


def _variable_of(option: Option, environ: Mapping[str, str]) -> str | None:
    """The text of its variable; None where that sets nothing."""
    text = None if option.setting.variable_read_elsewhere else environ.get(option.variable)
    return text if text or option.setting.empty_counts else None
