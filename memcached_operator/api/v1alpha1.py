"""`cache.example.com/v1alpha1`: the Memcached resource as a user writes and reads it.

The models are the source of the CustomResourceDefinition's schema, and of what the operator accepts: a specification
that the API server let through, say under an older schema, is checked here again before anything is done with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from memcached_operator.api.names import IMAGE_CHARACTERS, IMAGE_MAX_LENGTH, SIZE_MAX, InvalidSpec

SINGULAR: Final = "memcached"
SHORT_NAMES: Final = ("mc",)
CATEGORIES: Final = ("all",)

# The name is also the value of a label and fit to be a Service's: an RFC 1035 label, a letter first, at most 63
# characters. 11 of these ("-" and 10) are left for what a Deployment adds to name its ReplicaSets.
NAME_PATTERN: Final = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
NAME_MAX_LENGTH: Final = 52

# Longer values of a user are cut in messages, which end up in a condition and in a log line.
_SHOWN_LENGTH = 60

# What a person is told of a field that breaks its rule, whichever part of the rule it breaks.
_RULES: Final[Mapping[str, str]] = {
    "spec": 'must be an object such as {"size": 3}',
    "spec.size": f"must be a whole number from 0 to {SIZE_MAX}",
    "spec.image": "must be an image reference such as docker.io/library/memcached:1.6.45-alpine: 1 to "
    f"{IMAGE_MAX_LENGTH} letters, digits and characters of -_.:/@+[]",
}
_NAMES_OF_TYPES = {
    bool: "a boolean",
    dict: "an object",
    float: "a number with a decimal point",
    list: "a list",
    str: "a string",
}

_Count = Annotated[int, Field(ge=0, le=SIZE_MAX, json_schema_extra={"format": "int32"})]
_Image = Annotated[
    str,
    Field(
        min_length=1,
        max_length=IMAGE_MAX_LENGTH,
        # A CEL rule would say it in words, but a kind with one CEL rule has the API server add "some validation rules
        # were not checked" to each message about any other field.
        pattern=f"^{IMAGE_CHARACTERS}*$",
    ),
]
_Generation = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]


class _Model(BaseModel):
    # Strict: "3", 3.0 and true are not numbers, as they are not for the API server. Unknown fields are ignored: the
    # API server prunes them, and an older operator may meet an object of a newer schema.
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True)


class MemcachedSpec(_Model):
    """What is wanted: how many memcached servers, and of which image."""

    size: _Count = Field(default=1, description="How many memcached pods to run; 0 runs none. 1 where it is left out.")
    image: _Image | None = Field(
        default=None,
        description="Container image that the pods run, such as docker.io/library/memcached:1.6.45-alpine. "
        "Where it is left out, the operator's own setting decides, and may change with the operator.",
    )


class MemcachedCondition(_Model):
    """One aspect of the state: whether it holds, since when, and why."""

    type: Annotated[
        str,
        Field(
            max_length=316,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ),
    ] = Field(description="Which aspect: Available, Progressing, Degraded, or one that somebody else keeps here.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds: True, False or Unknown.")
    reason: Annotated[
        str, Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    ] = Field(description="Why, in one word for programs.")
    message: Annotated[str, Field(max_length=32768)] = Field(description="Why, in words for people; may be empty.")
    last_transition_time: datetime = Field(description="When status last changed.")
    observed_generation: _Generation | None = Field(
        default=None, description="The metadata.generation of the Memcached that this condition speaks of."
    )


class MemcachedStatus(_Model):
    """What the operator last saw; it alone writes this."""

    nodes: list[str] | None = Field(
        default=None, description="Sorted names of the memcached pods that are neither terminating nor finished."
    )
    replicas: _Count | None = Field(default=None, description="How many memcached pods there are.")
    ready_replicas: _Count | None = Field(
        default=None, description="How many of the memcached pods are ready to serve."
    )
    selector: str | None = Field(
        default=None,
        description="Label selector of the memcached pods, in the form of kubectl get pods --selector; "
        "a HorizontalPodAutoscaler finds them by it.",
    )
    image: str | None = Field(
        default=None,
        description="Container image that the memcached pods run, whoever decided it; while another one is rolled out, "
        "the one before.",
    )
    observed_generation: _Generation | None = Field(
        default=None, description="The metadata.generation that this status speaks of."
    )
    conditions: list[MemcachedCondition] | None = Field(
        default=None,
        description="Available: enough pods serve. Progressing: a change is being rolled out. "
        "Degraded: something needs a person.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )


def validate_spec(raw: object) -> MemcachedSpec:
    """The specification in `raw`, the value of `spec`: decoded, or bytes of JSON; None or b"" where it is absent.

    Raises:
        InvalidSpec: a field has the wrong type or is out of its limits.
    """
    if raw in (None, b"", b"null"):
        return MemcachedSpec()
    try:
        if isinstance(raw, bytes):
            return MemcachedSpec.model_validate_json(raw)
        return MemcachedSpec.model_validate(dict(raw) if isinstance(raw, Mapping) else raw)
    except ValidationError as error:
        raise InvalidSpec(_explained(error)) from None


def _explained(error: ValidationError) -> str:
    return "; ".join(
        _complaint(".".join(("spec", *map(str, problem["loc"]))), problem["input"])
        for problem in error.errors(include_url=False, include_context=False)
    )


def _complaint(path: str, value: object) -> str:
    shown = json.dumps(value, ensure_ascii=False, default=repr)
    if len(shown) > _SHOWN_LENGTH:
        shown = f"{shown[:_SHOWN_LENGTH]}…"
    name = _NAMES_OF_TYPES.get(type(value))
    return f"{path}: {_RULES[path]}, got {shown}" + (f" ({name})" if name else "")
