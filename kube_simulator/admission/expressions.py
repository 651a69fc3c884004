"""CEL in admission: what a policy or a webhook's match condition may say of a request, and what it comes to.

Differs from Kubernetes: see `schema.expressions`; what the simulator's CEL has not is answered with 501 when the
expression is written, and what comes to no boolean is found out when it is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kube_simulator.errors import Cause, not_implemented
from kube_simulator.schema.expressions import CompileError, EvaluationError, compiled
from kube_simulator.store.go_text import quoted
from kube_simulator.values import Json

_VARIABLES = frozenset({"object", "oldObject", "request", "namespaceObject", "variables"})
# What Kubernetes has and the simulator has not; what else is not known, Kubernetes does not know either.
_MISSING = frozenset({"authorizer", "sets", "params"})
_UNDECLARED = re.compile(r"undeclared reference to '(\w+)'")


@dataclass(frozen=True, slots=True)
class Scope:
    """What expressions may name, and the named expressions (`variables`) that came to nothing."""

    values: Mapping[str, Any]
    failed: Mapping[str, str] = field(default_factory=dict)

    def evaluate(self, expression: str) -> Any:
        """What an expression comes to. Raises EvaluationError."""
        try:
            return compiled(expression, _VARIABLES).evaluate({"variables": {}, **self.values})
        except EvaluationError as error:
            name = str(error).removeprefix("no such key: ")
            if name in self.failed:
                why = f"composited variable {quoted(name)} fails to evaluate: {self.failed[name]}"
                raise EvaluationError(why) from None
            raise

    def is_true(self, expression: str) -> bool:
        """Whether an expression is true. Raises EvaluationError, which says which expression it was."""
        try:
            value = self.evaluate(expression)
            if not isinstance(value, bool):
                raise EvaluationError("must evaluate to bool")
        except EvaluationError as error:
            raise EvaluationError(f"expression '{expression}' resulted in error: {error}") from None
        return value

    def all_true(self, conditions: Sequence[Json]) -> bool:
        """Whether all `matchConditions` are true; one that is false counts more than any that fail.

        Raises:
            EvaluationError: none is false, and one failed.
        """
        failed: EvaluationError | None = None
        for condition in conditions:
            try:
                if not self.is_true(condition["expression"]):
                    return False
            except EvaluationError as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return True

    def with_variables(self, definitions: Sequence[Json]) -> Scope:
        """With named expressions, each of which may use those before it."""
        scope = self
        for definition in definitions:
            name = definition["name"]
            try:
                value = scope.evaluate(definition["expression"])
            except EvaluationError as error:
                scope = replace(scope, failed={**scope.failed, name: str(error)})
            else:
                known = {**scope.values.get("variables", {}), name: value}
                scope = replace(scope, values={**scope.values, "variables": known})
        return scope


def problems(expression: str, at: str) -> list[Cause]:
    """What is wrong with an expression that stands in this field.

    Raises:
        ApiError: 501, for what the simulator's CEL has not.
    """
    try:
        compiled(expression, _VARIABLES)
    except CompileError as error:
        why = _reason(expression, str(error))
        return [Cause("FieldValueInvalid", f"Invalid value: {quoted(expression)}: compilation failed: {why}", at)]
    return []


def _reason(expression: str, said: str) -> str:
    """In the words of Kubernetes' compiler."""
    if undeclared := _UNDECLARED.search(said):
        name = undeclared[1]
        if name in _MISSING:
            raise not_implemented(f"{name} in a CEL expression")
        found = re.search(rf"\b{name}\b", expression)
        return _pointed_at(expression, found.start() if found else 0, f"{said} (in container '')")
    if "ERROR:" not in said or "unsupported syntax" in said:
        raise not_implemented(f"the CEL expression {quoted(expression)} ({said.splitlines()[0]})")
    return said[said.index("ERROR:") :].replace("\n|", "\n |")


def _pointed_at(text: str, offset: int, why: str) -> str:
    before = text[:offset]
    column = offset - (before.rfind("\n") + 1)
    line = text.splitlines()[before.count("\n")]
    return f"ERROR: <input>:{before.count(chr(10)) + 1}:{column + 1}: {why}\n | {line}\n | {'.' * column}^"
