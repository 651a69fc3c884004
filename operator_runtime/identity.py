"""Name of a program, for all places where it is seen."""

from __future__ import annotations

from dataclasses import dataclass

from operator_runtime.client.dns_names import LABEL_IN_WORDS, is_label


@dataclass(frozen=True, slots=True)
class Program:
    """Identity of an operator. Settings, messages, metrics and the API server have its name from here.

    Attributes:
        name: what a shell calls it, such as my-own-shell. It is the default of the setting operator_name, and the field
            manager: server-side apply keeps under it which fields are owned. It never changes with a setting: a second
            name would leave the fields of the first owned by a manager that does not write them.
        version: its release, such as 0.1.0.
        description: a sentence for its help.
        leader_election_id: the default of the setting leader_elect_id; None for the operator's name and `-lock`.

    Raises:
        ValueError: the name is none that the API server would take as a reporter of events.
    """

    name: str
    version: str
    description: str = ""
    leader_election_id: str | None = None

    def __post_init__(self) -> None:
        if not is_label(self.name):
            raise ValueError(f"a program's name must be {LABEL_IN_WORDS}, such as my-own-shell; it is {self.name!r}")

    @property
    def snake_name(self) -> str:
        """The name as a metric or a module has it: my_own_shell."""
        return self.name.replace("-", "_")

    @property
    def variable_prefix(self) -> str:
        """Beginning of the environment variables that set something: MY_OWN_SHELL_."""
        return f"{self.snake_name.upper()}_"
