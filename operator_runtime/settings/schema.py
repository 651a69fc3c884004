"""Settings of one program: its options, and the values that flags and variables give them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Generic

from operator_runtime.identity import Program
from operator_runtime.settings.runtime_settings import RuntimeSettings, S
from operator_runtime.settings.setting import NotAllowedError, Option, options_of

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
    """The settings of one program; `prefix` is what the variables begin with that have no name of their own.

    `options` come group after group as these first occur, and in each in the order of `model`.
    """

    def __init__(self, model: type[S], program: Program) -> None:
        """`program` gives the prefix, and the defaults of the operator's name and of its lock's.

        Raises TypeError where the model is no subclass of RuntimeSettings, or a field of it is not declared by
        `setting`.
        """
        if not (isinstance(model, type) and issubclass(model, RuntimeSettings)):  # type: ignore[redundant-expr]
            raise TypeError(f"settings={model!r} is no subclass of RuntimeSettings")
        self.model = model
        self.prefix = program.variable_prefix
        self._defaults = {"operator_name": program.name, "leader_elect_id": program.leader_election_id}
        options = list(options_of(model, self.prefix, self._defaults))
        groups = [option.group for option in options]
        self.options = tuple(sorted(options, key=lambda option: groups.index(option.group)))

    def load(self, given: Mapping[str, object], environ: Mapping[str, str]) -> S:
        """The settings that are given by their names, else those of the variables, else the defaults.

        `given` has texts, or lists of them, as flags have them, or values. Raises SettingsError, which names each flag
        or variable that holds a wrong value, and each name that is no setting's.
        """
        values: dict[str, Any] = dict(self._defaults)
        problems = [f"there is no setting {name}" for name in given.keys() - {option.name for option in self.options}]
        for option in self.options:
            if option.name in given:
                origin, value = option.flags[0], given[option.name]
            elif (variable := _variable_of(option, environ)) is not None:
                origin, value = option.variable, variable
            else:
                continue
            try:
                values[option.name] = option.value_of(",".join(value) if isinstance(value, list) else value)
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

        A warning, no error: a pod must still start when its image is rolled back to a release that does not know a
        variable.
        """
        from difflib import get_close_matches

        # Compared without the prefix, which would make everything look alike, and by the field's name, so that the
        # prefix before a variable that has none is recognised too.
        by_suffix = {option.name.upper(): option.variable for option in self.options}
        sentences = []
        for name in sorted(environ.keys() - set(by_suffix.values())):
            if name.startswith(self.prefix) and not SERVICE_LINK.search(name):
                near = get_close_matches(name.removeprefix(self.prefix), by_suffix, n=1)
                hint = f"; did you mean {by_suffix[near[0]]}?" if near else ""
                sentences.append(f"the environment variable {name} sets nothing{hint}")
        return tuple(sentences)


def _variable_of(option: Option, environ: Mapping[str, str]) -> str | None:
    """The text of its variable; None where that sets nothing."""
    text = None if option.variable_read_elsewhere else environ.get(option.variable)
    return text if text or option.none_of_several else None
