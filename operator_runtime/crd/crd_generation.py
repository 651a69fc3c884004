"""A model -> a CustomResourceDefinition, for any kind; see `crd.structural_schema` for what a model may hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from operator_runtime.crd.structural_schema import structural_schema

if TYPE_CHECKING:
    from operator_runtime.crd.structural_schema import Model

_Schema = dict[str, Any]


class PrinterColumn(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One column of `kubectl get`.

    Attributes:
        name: heading; kubectl prints it in capitals.
        type: type of the cell; a "date" is printed as an age.
        json_path: where the value stands in the object, such as `.spec.size`.
        priority: 0 is always shown, more only with `-o wide`.
    """

    name: str
    type: Literal["integer", "number", "string", "boolean", "date"]
    json_path: str
    description: str
    priority: int = 0


class Scale(msgspec.Struct, frozen=True, rename="camel"):
    """Paths at which the scale subresource (`kubectl scale`, the HorizontalPodAutoscaler) finds its fields."""

    spec_replicas_path: str
    status_replicas_path: str
    label_selector_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomResource:
    """A kind in one version, as its CustomResourceDefinition describes it.

    Attributes:
        description: what `kubectl explain` shows of the kind.
        spec: model of `spec`; where none of its fields is required, `spec` itself may be left out.
        status: model of `status`; with one, the kind has the status subresource.
        unwritten_status: fields that the API server gives a status until the operator has written it.
        name_pattern, name_max_length: rules for `metadata.name` on top of the API server's. They stand in the schema
            because a rule there binds new objects only; a CEL rule on the root would also block every later write,
            removal of finalizers included, to objects that are older than the rule.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    description: str
    spec: Model
    status: Model | None = None
    unwritten_status: Mapping[str, object] = field(default_factory=dict)
    namespaced: bool = True
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    columns: Sequence[PrinterColumn] = ()
    scale: Scale | None = None
    name_pattern: str | None = None
    name_max_length: int | None = None


def custom_resource_definition(resource: CustomResource) -> dict[str, object]:
    """The CustomResourceDefinition (apiextensions.k8s.io/v1) of `resource`; SchemaError where a model cannot be one."""
    names: _Schema = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.singular,
        "shortNames": list(resource.short_names),
        "categories": list(resource.categories),
    }
    version: _Schema = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _object_schema(resource)},
        "additionalPrinterColumns": [msgspec.to_builtins(column) for column in resource.columns],
        "subresources": {
            **({"status": {}} if resource.status is not None else {}),
            **({"scale": msgspec.to_builtins(resource.scale)} if resource.scale is not None else {}),
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "names": {field: value for field, value in names.items() if value},
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [{field: value for field, value in version.items() if value}],
        },
    }


def to_yaml(document: Mapping[str, object], comment: str) -> str:
    """Return `document` as YAML below a line of `comment`: the same bytes for the same content, wherever it runs.

    No `---` follows the comment: programs that read the first document alone, as OLM does, would read the comment.
    """
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: object) -> bool:
            return True

    return f"# {comment}\n" + yaml.dump(document, Dumper=Dumper, width=110, allow_unicode=True)


def _object_schema(resource: CustomResource) -> _Schema:
    spec: _Schema = structural_schema(resource.spec, "spec")
    properties: _Schema = {
        "apiVersion": {
            "type": "string",
            "description": "Group and version of the API that this object is written in: "
            f"{resource.group}/{resource.version}.",
        },
        "kind": {"type": "string", "description": f"Kind of this object: {resource.kind}."},
        "metadata": {"type": "object"},
        "spec": spec,
    }
    # The API server allows a few rules here, and no description.
    name = {"maxLength": resource.name_max_length, "pattern": resource.name_pattern}
    if rules := {keyword: value for keyword, value in name.items() if value is not None}:
        properties["metadata"]["properties"] = {"name": {"type": "string", **rules}}
    if resource.status is not None:
        status: _Schema = structural_schema(resource.status, "status")
        properties["status"] = status
        if resource.unwritten_status:
            # The default of a field does not apply where there is no status to hold it.
            status["default"] = dict(resource.unwritten_status)
        for field_name, value in resource.unwritten_status.items():
            status["properties"][field_name]["default"] = value
    schema: _Schema = {"type": "object", "description": resource.description, "properties": properties}
    if "required" in spec:
        schema["required"] = ["spec"]
    else:
        # Without a default of its own, the defaults inside spec would not apply to an object that has no spec. Where
        # spec has rules, the API server tries them on this default as it stands, so it names every field that has one.
        fields = spec.get("properties", {}) if "x-kubernetes-validations" in spec else {}
        spec["default"] = {name: node["default"] for name, node in fields.items() if "default" in node}
    return schema
