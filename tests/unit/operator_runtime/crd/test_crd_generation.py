"""The generator on a made-up kind: it must work for any, and know nothing of Memcached."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from operator_runtime.crd.crd_generation import CustomResource, PrinterColumn, Scale, custom_resource_definition


class WidgetSpec(BaseModel):
    """What is desired, all of it optional."""

    count: int = Field(default=3, description="Count.")
    colour: str | None = Field(default=None, description="Colour.")


class NumberedSpec(BaseModel):
    """What is desired, with a field that is required."""

    number: int = Field(description="Number.")
    name: str = Field(default="main", description="Name.")


class WidgetStatus(BaseModel):
    """What is."""

    ready: bool = Field(description="Whether it is ready.")


def widget(**changes: Any) -> dict[str, Any]:
    """The CRD of a Widget; only what a test is about is named by it."""
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget", "group": "toys.example.com"}
    given: dict[str, Any] = names | {"version": "v1", "description": "A widget.", "spec": WidgetSpec} | changes
    return custom_resource_definition(CustomResource(**given))


def version_of(crd: Any) -> Any:
    (version,) = crd["spec"]["versions"]
    return version


def root_of(crd: Any) -> Any:
    return version_of(crd)["schema"]["openAPIV3Schema"]


def test_names_scope_and_version_stand_where_the_api_server_looks() -> None:
    crd = widget(short_names=("wi",), categories=("all", "toys"))
    assert (crd["apiVersion"], crd["kind"]) == ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    assert crd["metadata"] == {"name": "widgets.toys.example.com"}
    assert crd["spec"]["names"] == {
        "kind": "Widget",
        "listKind": "WidgetList",
        "plural": "widgets",
        "singular": "widget",
        "shortNames": ["wi"],
        "categories": ["all", "toys"],
    }
    assert crd["spec"]["scope"] == "Namespaced"
    version = version_of(crd)
    assert (version["name"], version["served"], version["storage"]) == ("v1", True, True)


def test_a_spec_may_be_left_out_where_all_its_fields_are_optional() -> None:
    root = root_of(widget())
    assert root["properties"]["spec"]["default"] == {}
    assert "required" not in root
    root = root_of(widget(spec=NumberedSpec))
    assert root["required"] == ["spec"]
    assert "default" not in root["properties"]["spec"]
    root = root_of(widget(status=WidgetStatus))
    assert root["description"] == "A widget."
    assert {name for name, node in root["properties"].items() if not node.get("description")} == {"metadata"}


def test_the_default_of_a_spec_with_rules_is_written_out_for_the_rules_to_hold_on_it() -> None:
    ruled = create_model(
        "Ruled",
        __config__=ConfigDict(json_schema_extra={"x-kubernetes-validations": [{"rule": "self.a <= self.b"}]}),
        a=(int, Field(default=1, description="A.")),
        b=(int, Field(default=2, description="B.")),
        c=(int | None, Field(default=None, description="C.")),
        d=(list[int], Field(default=[3], description="D.")),
    )
    assert root_of(widget(spec=ruled))["properties"]["spec"]["default"] == {"a": 1, "b": 2, "d": [3]}


def test_the_rules_of_the_name_stand_in_the_schema_of_metadata() -> None:
    root = root_of(widget(name_pattern="^w", name_max_length=9))
    name = {"type": "string", "maxLength": 9, "pattern": "^w"}
    assert root["properties"]["metadata"] == {"type": "object", "properties": {"name": name}}


def test_subresources_and_columns() -> None:
    count = PrinterColumn("Count", "integer", ".spec.count", "How many.")
    since = PrinterColumn("Since", "date", ".spec.since", "Since when.", priority=1)
    scale = Scale(".spec.count", ".status.count", ".status.selector")
    version = version_of(widget(status=WidgetStatus, scale=scale, columns=(count, since)))
    paths = {"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count"}
    assert version["subresources"] == {"status": {}, "scale": paths | {"labelSelectorPath": ".status.selector"}}
    column = {"name": "Count", "type": "integer", "jsonPath": ".spec.count", "description": "How many."}
    assert version["additionalPrinterColumns"][0] == column
    assert version["additionalPrinterColumns"][1]["priority"] == 1
    assert version_of(widget()).keys() == {"name", "served", "storage", "schema"}
