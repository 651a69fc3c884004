"""A tiny kind of an author's own, whose objects own ConfigMaps, and an operator that reconciles them."""

from __future__ import annotations

from pydantic import BaseModel, Field

from operator_runtime import CustomResource, Kind, ObjectKey, Operator, PlainObject, Result, RuntimeSettings, plain

API_VERSION = "greetings.example.org/v1"


class Greeting(BaseModel):
    name: str = Field(description="Who is greeted.", min_length=1)


CRD = CustomResource(
    group="greetings.example.org",
    version="v1",
    kind="Greeting",
    plural="greetings",
    singular="greeting",
    description="Greets somebody.",
    spec=Greeting,
)
GREETINGS: Kind[PlainObject] = plain(API_VERSION, "Greeting", "greetings")
CONFIG_MAPS: Kind[PlainObject] = plain("v1", "ConfigMap", "configmaps")


async def reconcile(key: ObjectKey) -> Result:
    return Result()


def set_up(operator: Operator, settings: RuntimeSettings) -> None:
    operator.controller("greeting", GREETINGS, reconcile).owns(CONFIG_MAPS)
