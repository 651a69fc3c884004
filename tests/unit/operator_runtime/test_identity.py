import re

import pytest

from operator_runtime.identity import Program


def test_variables_and_metrics_have_the_programs_name() -> None:
    program = Program("my-own-shell", "1.2.3")
    assert (program.variable_prefix, program.snake_name) == ("MY_OWN_SHELL_", "my_own_shell")


@pytest.mark.parametrize("name", ["", "My Shell", "my_own_shell", "shell.example", "-shell", "x" * 64])
def test_a_name_that_cannot_report_events_is_refused_with_one_that_can(name: str) -> None:
    with pytest.raises(ValueError, match=rf"such as my-own-shell; it is {re.escape(repr(name))}$"):
        Program(name, "1")
