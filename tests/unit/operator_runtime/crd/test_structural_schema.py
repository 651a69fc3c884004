"""The schemas of models, field by field, and what no structural schema can hold."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta
from pydantic import BaseModel, ConfigDict, Field, create_model

from operator_runtime.crd.structural_schema import SchemaError, structural_schema
from operator_runtime.objects.conditions import Conditions


class Colour(StrEnum):
    """What the paint looks like."""

    RED = "red"
    BLUE = "blue"


class Port(BaseModel):
    """One port
    of the widget.

    Numbers are unique.
    """

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": [{"rule": "self.number != 22"}]})

    number: Annotated[int, Field(ge=1, le=65535, json_schema_extra={"format": "int32"})] = Field(description="Number.")
    name: str = Field(default="main", description="Name.")
    title: str | None = Field(default=None, description="A field by the name of a keyword.")


class WidgetSpec(BaseModel):
    """Everything that a schema may hold."""

    colour: Colour = Colour.RED
    finish: Literal["matt", "gloss"] = Field(default="matt", description="Finish.")
    unit: Literal["mm"] = Field(default="mm", description="Unit.")
    weight: Annotated[float, Field(gt=0, lt=10)] = Field(default=1.5, description="Weight in kg.")
    count: Annotated[int, Field(ge=0, le=2**31 - 1, json_schema_extra={"format": "int32"})] = Field(
        default=3, description="Count."
    )
    main: Port | None = Field(
        default=None,
        description="Its own description wins.",
        json_schema_extra={"x-kubernetes-validations": [{"rule": "self.name != 'x'"}]},
    )
    spare: Port = Port(number=80)
    ports: list[Port] = Field(
        default_factory=list,
        max_length=9,
        description="Ports.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["number"]},
    )
    tags: set[str] = Field(default_factory=set, description="Tags.")
    labels: dict[str, Annotated[str, Field(max_length=63)]] = Field(default_factory=dict, description="Labels.")
    by_name: dict[str, Port] = Field(default_factory=dict, description="Ports by name.")
    extra: dict[str, Any] = Field(default_factory=dict, description="Whatever.")
    target: int | str | None = Field(
        default=None, description="Number or name.", json_schema_extra={"x-kubernetes-int-or-string": True}
    )
    since: datetime | None = Field(default=None, description="Since when.", examples=["2020-01-01T00:00:00Z"])


SCHEMA: dict[str, Any] = structural_schema(WidgetSpec, "spec")
PROPERTIES: dict[str, Any] = SCHEMA["properties"]


def shape_of(annotation: Any, default: Any = ..., **extra: Any) -> Any:
    """The schema of a field of this type."""
    schema: Any = structural_schema(model_with(annotation, default, **extra), "spec")
    return schema["properties"]["shape"]


def model_with(annotation: Any, default: Any = ..., **extra: Any) -> type[BaseModel]:
    """A model whose one field, `shape`, is of this type."""
    described = Field(default=default, description="Shape.", json_schema_extra=extra or None)
    return create_model("Model", shape=(annotation, described))


# Fields


@pytest.mark.parametrize(
    ("name", "expected", "description"),
    [
        ("colour", {"type": "string", "enum": ["red", "blue"], "default": "red"}, "What the paint looks like."),
        ("finish", {"type": "string", "enum": ["matt", "gloss"], "default": "matt"}, "Finish."),
        ("unit", {"type": "string", "enum": ["mm"], "default": "mm"}, "Unit."),
        (
            "weight",
            {"type": "number", "minimum": 0, "maximum": 10, "default": 1.5}
            | {"exclusiveMinimum": True, "exclusiveMaximum": True},
            "Weight in kg.",
        ),
        # A bound that the format states is not stated twice.
        ("count", {"type": "integer", "format": "int32", "minimum": 0, "default": 3}, "Count."),
        ("tags", {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}, "Tags."),
        ("labels", {"type": "object", "additionalProperties": {"type": "string", "maxLength": 63}}, "Labels."),
        ("extra", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, "Whatever."),
        ("target", {"x-kubernetes-int-or-string": True}, "Number or name."),
        ("since", {"type": "string", "format": "date-time"}, "Since when."),
    ],
)
def test_a_field_becomes_its_structural_form(name: str, expected: dict[str, Any], description: str) -> None:
    assert PROPERTIES[name] == expected | {"description": description}


def test_a_nested_model_is_written_out_where_it_stands_with_the_rules_of_field_and_model() -> None:
    main = PROPERTIES["main"]
    assert main["type"] == "object"
    assert main["description"] == "Its own description wins."
    assert main["x-kubernetes-validations"] == [{"rule": "self.number != 22"}, {"rule": "self.name != 'x'"}]
    assert main["required"] == ["number"]
    assert set(main["properties"]) == {"number", "name", "title"}
    assert main["properties"]["number"]["maximum"] == 65535
    assert "default" not in main
    assert "default" not in main["properties"]["title"]


def test_a_docstring_describes_by_its_paragraphs_and_a_default_object_leaves_out_what_is_none() -> None:
    assert PROPERTIES["spare"]["description"] == "One port of the widget.\n\nNumbers are unique."
    assert PROPERTIES["spare"]["default"] == {"number": 80, "name": "main"}


def test_a_list_map_and_a_map_of_models_hold_the_models_schema() -> None:
    ports = PROPERTIES["ports"]
    assert ports["items"]["properties"] == PROPERTIES["main"]["properties"]
    assert ports["maxItems"] == 9
    assert (ports["x-kubernetes-list-type"], ports["x-kubernetes-list-map-keys"]) == ("map", ["number"])
    assert PROPERTIES["by_name"]["additionalProperties"]["properties"] == PROPERTIES["main"]["properties"]


# What is refused


class Tree(BaseModel):
    """Itself again."""

    children: list[Tree] = Field(default_factory=list, description="Children.")


class Open(BaseModel):
    """Further fields of one type."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int]

    known: int = Field(description="Known.")


class Undescribed(BaseModel):
    shape: int


EITHER = {"x-kubernetes-int-or-string": True}


def list_map(**keys: list[str]) -> type[BaseModel]:
    named = {f"x-kubernetes-list-map-{name}": value for name, value in keys.items()}
    return model_with(list[Port], **{"x-kubernetes-list-type": "map"}, **named)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (model_with(int | str), r"spec\.shape: is a union; use one type"),
        (model_with(int | str | None, None), r"spec\.shape: is a union"),
        (model_with(int | float, **EITHER), r"spec\.shape: x-kubernetes-int-or-string is for int \| str alone"),
        (model_with(Literal[1] | str, **EITHER), r"spec\.shape: const would hold .*; use a bound or a pattern"),
        (model_with(list[Port | Colour]), r"spec\.shape\[\]: is a union"),
        (model_with(dict[str, int | str]), r"spec\.shape\[\*\]: is a union"),
        (model_with(int | None), r"spec\.shape: cannot be null here; give a field the default None"),
        (model_with(None), r"spec\.shape: a structural schema has no type null"),
        (model_with(Any), r"spec\.shape: has no single type"),
        (model_with(Literal["a", 1]), r"spec\.shape: has no single type"),
        (model_with(list), r"spec\.shape\[\]: has no single type"),
        (model_with(tuple[int, str]), r"spec\.shape: a structural schema has no prefixItems"),
        (model_with(dict[Annotated[str, Field(pattern="^a")], int]), r"spec\.shape: a structural schema has no p"),
        (model_with(timedelta), r"spec\.shape: to the API server the format duration means"),
        (Tree, r"spec\.children\[\]: Tree holds itself"),
        (Open, r"spec: has named fields and others"),
        (Undescribed, r"spec\.shape: has no description; give the field Field\(description=…\)"),
        (model_with(list[Undescribed]), r"spec\.shape\[\]\.shape: has no description"),
        (list_map(), r"spec\.shape: a list of type map needs x-kubernetes-list-map-keys"),
        (list_map(keys=["size"]), r"spec\.shape: a list of type map needs x-kubernetes-list-map-keys"),
        (list_map(keys=["title"]), r"spec\.shape: title is a key of this list: make it required, or give it a default"),
    ],
)
def test_what_a_structural_schema_cannot_hold_is_refused_by_path_and_remedy(
    model: type[BaseModel], message: str
) -> None:
    with pytest.raises(SchemaError, match=f"^{message}"):
        structural_schema(model, "spec")


def test_a_field_of_two_types_has_the_rules_of_both() -> None:
    number, share = Annotated[int, Field(ge=0, lt=9)], Annotated[str, Field(pattern="^[0-9]+%$", max_length=4)]
    either = Annotated[number | share, Field(json_schema_extra=EITHER)]  # type: ignore[valid-type]
    numbers = {"minimum": 0, "maximum": 9, "exclusiveMaximum": True}
    for shape in (shape_of(number | share, **EITHER), shape_of(either | None, None)):
        assert shape == EITHER | numbers | {"description": "Shape.", "pattern": "^[0-9]+%$", "maxLength": 4}


def test_a_list_or_map_of_objects_of_any_fields_keeps_them() -> None:
    kept = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert shape_of(list[dict[str, Any]])["items"] == kept
    assert shape_of(dict[str, dict[str, Any]])["additionalProperties"] == kept


class GadgetStatus(msgspec.Struct):
    """What was seen."""

    nodes: Annotated[tuple[str, ...], Meta(description="Names.")] = ()
    ready: Annotated[int, Meta(ge=0, description="Count.", extra_json_schema={"format": "int32"})] = 1
    note: Annotated[str, Meta(description="Note.")] | None = None
    conditions: Conditions = ()


def test_a_struct_is_a_model_as_well() -> None:
    schema: Any = structural_schema(GadgetStatus, "status")
    ready = {"type": "integer", "description": "Count.", "default": 1, "minimum": 0, "format": "int32"}
    assert schema["description"] == "What was seen."
    assert schema["properties"]["ready"] == ready
    assert schema["properties"]["note"] == {"type": "string", "description": "Note."}
    assert schema["properties"]["conditions"]["x-kubernetes-list-map-keys"] == ["type"]


def test_a_struct_reads_what_is_absent_as_empty_and_the_api_server_writes_nothing_there() -> None:
    properties: Any = structural_schema(GadgetStatus, "status")["properties"]
    assert properties["nodes"] == {"type": "array", "description": "Names.", "items": {"type": "string"}}
    assert "default" not in properties["conditions"]
    assert all("default" not in each for each in properties["conditions"]["items"]["properties"].values())
