"""A tiny operator as an author would write it: a Greeting becomes a ConfigMap with its words."""

from __future__ import annotations

import msgspec
from pydantic import BaseModel, Field

from operator_runtime import (
    CustomResource,
    Kind,
    Object,
    ObjectKey,
    Operator,
    PlainObject,
    Result,
    RuntimeSettings,
    owner_reference,
    plain,
    typed,
)

API_VERSION = "greetings.example.org/v1"


class Greeting(BaseModel):
    name: str = Field(description="Who is greeted.", min_length=1)


class GreetingStatus(BaseModel):
    words: str = Field("", description="What is said.")


CRD = CustomResource(
    group="greetings.example.org",
    version="v1",
    kind="Greeting",
    plural="greetings",
    singular="greeting",
    description="Greets somebody.",
    spec=Greeting,
    status=GreetingStatus,
)


class Spec(msgspec.Struct, frozen=True):
    name: str


class Status(msgspec.Struct, frozen=True):
    words: str = ""


GREETINGS: Kind[Object[Spec, Status]] = typed(API_VERSION, "Greeting", "greetings", spec=Spec, status=Status)
CONFIG_MAPS: Kind[PlainObject] = plain("v1", "ConfigMap", "configmaps")


class Greeter:
    """Makes the ConfigMap of a Greeting, and says so in its status."""

    def __init__(self, operator: Operator) -> None:
        self._client = operator.client
        self._greetings = operator.informer(GREETINGS)

    async def reconcile(self, key: ObjectKey) -> Result:
        greeting = self._greetings.get(key)
        if greeting is None:
            return Result()
        words = f"Hello, {greeting.spec.name}!"
        metadata = {
            "name": key.name,
            "namespace": key.namespace,
            "ownerReferences": [owner_reference(GREETINGS, greeting)],
        }
        await self._client.apply(CONFIG_MAPS, {"metadata": metadata, "data": {"words": words}})
        await self._client.patch_status(GREETINGS, greeting, Status(words))
        return Result()


def set_up(operator: Operator, settings: RuntimeSettings) -> None:
    operator.controller("greeting", GREETINGS, Greeter(operator).reconcile).owns(CONFIG_MAPS)
