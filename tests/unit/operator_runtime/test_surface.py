"""What `operator_runtime` exports."""

from __future__ import annotations

import subprocess
import sys

import pytest

import operator_runtime as runtime


@pytest.mark.parametrize("name", runtime.__all__)
def test_each_name_is_there_and_says_what_it_is_for(name: str) -> None:
    value = getattr(runtime, name)
    assert value is vars(sys.modules[runtime._MODULES[name]])[name]
    if callable(value) and getattr(value, "__module__", "").startswith("operator_runtime"):
        assert value.__doc__


def test_a_name_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(AttributeError, match="has no 'Contoller'; it has ApiObject, "):
        getattr(runtime, "Contoller")  # noqa: B009 -- a type checker would find it


@pytest.mark.parametrize(
    ("code", "left_out"),
    [
        ("import operator_runtime", ("pydantic", "aiohttp", "operator_runtime.operator")),
        ("import memcached_operator.operator", ("cryptography", "aiohttp.web_server")),
        (
            "from operator_runtime import RuntimeSettings, operator;"
            " operator.election_of(RuntimeSettings(), None, {}, user_agent='', field_manager='')",
            ("operator_runtime.election.lea",),
        ),
        (
            "import operator_runtime.testing.waiting, operator_runtime.testing.clock",
            ("pytest", "pydantic", "kube_simulator"),
        ),
    ],
    ids=["its import", "what signs certificates", "no election", "waiting and the clock"],
)
def test_what_is_costly_is_not_loaded_before_it_is_needed(code: str, left_out: tuple[str, ...]) -> None:
    program = f"import sys; {code}; print([name for name in sys.modules if name.startswith({left_out!r})])"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert answer.stdout.strip() == "[]"
