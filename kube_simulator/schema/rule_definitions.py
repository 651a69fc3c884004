"""What is wrong with the rules (`x-kubernetes-validations`) that a CRD's schema has.

Differs from Kubernetes: only unknown names, unknown fields and bad syntax are found before a rule is run, and what the
simulator cannot read is answered with 501, for it may be good. Costs are not estimated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from kube_simulator.errors import Cause, not_implemented
from kube_simulator.schema import causes, rules
from kube_simulator.schema.node import Node, of_schema
from kube_simulator.values import Json

_REASONS: Final = tuple(f"FieldValue{each}" for each in ("Duplicate", "Forbidden", "Invalid", "Required"))
_NAMES: Final = ("name", "generateName")


def rule_definition_problems(schema: Json, path: str) -> list[Cause]:
    """What is wrong with the rules of the schema of a whole object. Raises ApiError: 501 for what cannot be read."""
    return list(_rule_problems(schema, path, "", root=True))


def children(schema: Json) -> Iterator[tuple[str, Json, str]]:
    """The schemas right beneath one, each with its part of the path and the level at which it stands."""
    if isinstance(schema.get("items"), dict):
        yield "items", schema["items"], "items"
    for name, child in (schema.get("properties") or {}).items():
        yield f"properties[{name}]", child, "field"
    if isinstance(schema.get("additionalProperties"), dict):
        yield "additionalProperties", schema["additionalProperties"], "field"


def default_rule_problems(schema: Json, path: str) -> Iterator[Cause]:
    """Defaults that break the rules where they stand; the rules have been found to be good."""
    if (value := schema.get("default")) is not None:
        for cause in rules.rule_problems(of_schema(schema), value, None):
            beneath = f".{cause.field}" if cause.field != causes.NO_FIELD else ""
            yield replace(cause, field=f"{path}.default{beneath}")
    for key, child, _ in children(schema):
        yield from default_rule_problems(child, f"{path}.{key}")


def _rule_problems(schema: Json, path: str, uncorrelated: str, *, root: bool = False) -> Iterator[Cause]:
    """`uncorrelated` is the path of the part around of which nothing inside can be told from what was there before."""
    said = schema.get("x-kubernetes-validations") or ()
    node = _whole(schema) if root or schema.get("x-kubernetes-embedded-resource") else of_schema(schema)
    for index, rule in enumerate(said):
        at = f"{path}.x-kubernetes-validations[{index}]"
        words = list(_wording_problems(rule, at))
        yield from words or _expression_problems(rule, node, at, uncorrelated)
        where = rule.get("fieldPath")
        if where and not words and rules.field_path(node, where) is None:
            yield causes.invalid(f"{at}.fieldPath", where, "must be a valid path")
    atomic = schema.get("x-kubernetes-map-type") == "atomic"
    keyless = schema.get("x-kubernetes-list-type") != "map"
    for key, child, level in children(schema):
        apart = path if atomic or (keyless and level == "items") else ""
        yield from _rule_problems(child, f"{path}.{key}", uncorrelated or apart)


def _wording_problems(rule: Json, at: str) -> Iterator[Cause]:
    text, message = rule.get("rule") or "", rule.get("message") or ""
    if not text.strip():
        yield causes.required(f"{at}.rule", "rule is not specified")
    elif message and not message.strip():
        yield causes.invalid(f"{at}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip():
        yield causes.invalid(f"{at}.message", message, "must not contain line breaks")
    elif "\n" in text.strip() and not message:
        yield causes.required(f"{at}.message", "message must be specified if rule contains line breaks")
    expression = rule.get("messageExpression") or ""
    if expression and not expression.strip():
        yield causes.required(f"{at}.messageExpression", "messageExpression must be non-empty if specified")
    if rule.get("reason") is not None and rule["reason"] not in _REASONS:
        yield causes.not_supported(f"{at}.reason", rule["reason"], _REASONS)


def _expression_problems(rule: Json, node: Node, at: str, uncorrelated: str) -> Iterator[Cause]:
    for key, prefix in (("rule", ""), ("messageExpression", "messageExpression ")):
        text = (rule.get(key) or "").strip()
        if not text:
            continue
        if unknown := rules.undefined_field(node, text):
            name, column = unknown
            line = text.count("\n", 0, column) + 1
            start = text.rfind("\n", 0, column) + 1
            shown = text.splitlines()[line - 1]
            error = f"ERROR: <input>:{line}:{column - start + 1}: undefined field '{name}'\n | {shown}\n | "
            yield _not_compiled(rule, f"{at}.{key}", f"{prefix}compilation failed: {error}{'.' * (column - start)}^")
            return
        try:
            expression = rules.expression_of(text)
        except rules.SyntaxProblem as problem:
            yield _not_compiled(rule, f"{at}.{key}", f"{prefix}compilation failed: {problem}")
            return
        except rules.InstantiationProblem as problem:
            yield _not_compiled(rule, f"{at}.{key}", f"{prefix}program instantiation failed: {problem}")
            return
        except rules.CompileError as error:
            raise not_implemented(f"the {key} {json.dumps(text)} at {at}: {error}") from error
        transition = "oldSelf" in expression.variables
        if key == "rule" and transition and uncorrelated:
            why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
            yield causes.invalid(f"{at}.rule", rule["rule"], why)
        if key == "rule" and rule.get("optionalOldSelf") is not None and not transition:
            why = "may not be set if oldSelf is not used in rule"
            yield causes.invalid(f"{at}.optionalOldSelf", rule["optionalOldSelf"], why)


def _not_compiled(rule: Json, at: str, why: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {_shown(rule)}: {why}", at)


def _whole(schema: Json) -> Node:
    """A whole object as its rules see it: with apiVersion, kind, and of the metadata the names."""
    text = {"type": "string"}
    metadata = {"type": "object", "properties": dict.fromkeys(_NAMES, text)}
    own = {"apiVersion": text, "kind": text, "metadata": metadata}
    return of_schema({**schema, "properties": {**(schema.get("properties") or {}), **own}})


def _shown(rule: Json) -> str:
    """A rule in the order of Kubernetes' own type, whose names are those of Go."""
    keys = ("Rule", "Message", "MessageExpression", "Reason", "FieldPath", "OptionalOldSelf")
    empty = {"Reason": None, "OptionalOldSelf": None}
    own = {key: rule.get(key[0].lower() + key[1:], empty.get(key, "")) for key in keys}
    return causes.json_text(own, sort_keys=False)
