"""A CustomResourceDefinition as Markdown: every field with its type, default, rules and meaning.

It is made from the definition itself, the one that a cluster gets, so that it cannot differ. What is shown is
what `runtime.crd` can put there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

Schema = Mapping[str, Any]

# Those that every object has; people who write YAML know them.
_OF_EVERY_OBJECT: Final = ("apiVersion", "kind")
# Limits of an integer by its format (OpenAPI 3.0, data types).
_LARGEST: Final = {"int32": 2**31 - 1, "int64": 2**63 - 1}


@dataclass(frozen=True, slots=True)
class FieldOfKind:
    """One field of a kind: its path such as `status.conditions[].type`, and its schema."""

    path: str
    schema: Schema
    required: bool = False

    @property
    def type(self) -> str:
        """Type in words, such as "list of strings", "map of strings" or "integer (int32)"."""
        format_ = self.schema.get("format")
        return f"{_type(self.schema)} ({format_})" if format_ else _type(self.schema)

    @property
    def default(self) -> str:
        """Default as JSON in Markdown; empty without one."""
        return f"`{json.dumps(self.schema['default'])}`" if "default" in self.schema else ""

    def rules(self) -> Iterator[str]:
        """Yield the rules for a value, each in a few words of Markdown."""
        schema = self.schema
        if self.required:
            yield "required"
        if "enum" in schema:
            yield "one of " + ", ".join(f"`{value}`" for value in schema["enum"])
        either = bool(schema.get("x-kubernetes-int-or-string"))
        for limit in _limits(schema):
            yield f"an integer: {limit}" if either else limit
        if "pattern" in schema:
            yield ("a string: " if either else "") + f"matches `{schema['pattern']}`"
        if schema.get("x-kubernetes-list-type") == "map":
            keys = ", ".join(f"`{key}`" for key in schema["x-kubernetes-list-map-keys"])
            yield f"one entry for each {keys}"
        if schema.get("x-kubernetes-preserve-unknown-fields") and schema.get("type") == "object":
            yield "fields of any name are kept"
        if schema.get("items", {}).get("x-kubernetes-preserve-unknown-fields"):
            yield "in its entries, fields of any name are kept"
        if schema.get("nullable"):
            yield "may be `null`"
        for rule in schema.get("x-kubernetes-validations", ()):
            yield f"`{rule['rule']}`" + (f" ({rule['message']})" if "message" in rule else "")


def _type(schema: Schema, *, plural: bool = False) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "integers or strings" if plural else "integer or string"
    if "type" not in schema:
        return "values of any type" if plural else "anything"
    ending = "s" if plural else ""
    if schema["type"] == "array":
        return f"list{ending} of {_type(schema['items'], plural=True)}"
    if "additionalProperties" in schema:
        return f"map{ending} of {_type(schema['additionalProperties'], plural=True)}"
    return f"{schema['type']}{ending}"


def _limits(schema: Schema) -> Iterator[str]:
    if schema.get("type", "integer") == "integer":
        least, most = schema.get("minimum"), schema.get("maximum", _LARGEST.get(schema.get("format", "")))
        if least is not None or "maximum" in schema:
            yield _range(least, most, "")
    for word, kind in (("Length", "characters"), ("Items", "entries")):
        if f"min{word}" in schema or f"max{word}" in schema:
            yield _range(schema.get(f"min{word}"), schema.get(f"max{word}"), f" {kind}")


def _range(least: int | None, most: int | None, unit: str) -> str:
    match least, most:
        case None, _:
            return f"at most {most}{unit}"
        case _, None:
            return f"at least {least}{unit}"
        case _:
            return f"{least} to {most}{unit}"


def fields(crd: Mapping[str, object]) -> list[FieldOfKind]:
    """List every field of the kind's only version, a folder before what is in it."""
    return list(_below("", _version(crd)["schema"]["openAPIV3Schema"]))


def _below(path: str, schema: Schema) -> Iterator[FieldOfKind]:
    required = schema.get("required", ())
    for name, property_ in schema.get("properties", {}).items():
        if not path and name in _OF_EVERY_OBJECT:
            continue
        field = FieldOfKind(f"{path}.{name}".removeprefix("."), property_, name in required)
        yield field
        yield from _below(field.path, property_)
        for entries in ("items", "additionalProperties"):
            yield from _below(f"{field.path}[]", property_.get(entries, {}))


def crd_reference(crd: Mapping[str, object], *, descriptions: Mapping[str, str]) -> str:
    """The parts of a page, from second-level headings on: names, fields, columns of kubectl, subresources.

    Args:
        descriptions: of fields that have none in the schema, by their path. A field without one is left out.
    """
    described = [
        (field, description)
        for field in fields(crd)
        if (description := field.schema.get("description", descriptions.get(field.path)))
    ]
    lines = ["## Names", "", *_names(cast(Schema, crd["spec"])), "", "## Fields", ""]
    lines += _table(
        ("Field", "Type", "Default"),
        [(f"[`{field.path}`](#{anchor(field.path)})", field.type, field.default) for field, _ in described],
    )
    for field, description in described:
        lines += ["", f"### `{field.path}`", "", description, "", f"- Type: {field.type}"]
        lines += [f"- Default: {field.default}"] if field.default else []
        lines += [f"- Rule: {rule}" for rule in field.rules()]
    return "\n".join([*lines, "", *_columns(_version(crd)), "", *_subresources(_version(crd))]) + "\n"


def anchor(heading: str) -> str:
    """The anchor of a heading, by the rule of GitHub: only letters, digits and `_-` are left."""
    return "".join(character for character in heading.lower() if character.isalnum() or character in "-_")


def _version(crd: Mapping[str, object]) -> dict[str, Any]:
    (version,) = cast(Schema, crd["spec"])["versions"]
    return cast(dict[str, Any], version)


def _names(spec: Schema) -> list[str]:
    names = spec["names"]
    versions = ", ".join(f"`{spec['group']}/{version['name']}`" for version in spec["versions"])
    return [
        f"- `apiVersion`: {versions}",
        f"- `kind`: `{names['kind']}`; a list of them is a `{names['listKind']}`",
        "- for kubectl: "
        + ", ".join(f"`{name}`" for name in (names["plural"], names["singular"], *names["shortNames"])),
        f"- among `kubectl get {names['categories'][0]}`",
        f"- scope: {spec['scope']}",
    ]


def _columns(version: Schema) -> list[str]:
    rows = [
        (
            column["name"].upper() + (" (`-o wide`)" if column.get("priority") else ""),
            f"`{column['jsonPath']}`",
            column["description"],
        )
        for column in version["additionalPrinterColumns"]
    ]
    return ["## Columns of kubectl get", "", *_table(("Column", "From", "Meaning"), rows)]


def _subresources(version: Schema) -> list[str]:
    lines = ["## Subresources", ""]
    for name, paths in sorted(version["subresources"].items()):
        where = "; ".join(f"{key} `{path}`" for key, path in sorted(paths.items()))
        lines.append(f"- `/{name}`" + (f": {where}" if where else ""))
    return lines


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [line(header), "|" + "---|" * len(header), *map(line, rows)]
