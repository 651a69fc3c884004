"""Memcached's own knobs beside those of any operator, and what the program's name makes of all of them."""

from functools import cache
from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic_settings import SettingsConfigDict

from memcached_operator.about import PROGRAM
from memcached_operator.memcached.desired import USER_ID
from operator_runtime.process import knobs
from operator_runtime.process.knobs import Knob, Option
from operator_runtime.process.settings import OperatorName, RuntimeSettings

# What the API server takes for runAsUser.
_USER_ID_MAX = 2_147_483_647


def _none(value: object) -> object:
    """Takes the word "none" for no value."""
    return None if isinstance(value, str) and value.lower() == "none" else value


class Settings(RuntimeSettings):
    """The settings of this operator. Immutable; a value outside its limits cannot be made."""

    model_config = SettingsConfigDict(env_prefix=PROGRAM.variable_prefix)

    operator_name: OperatorName = PROGRAM.name
    memcached_image: Annotated[
        str,
        Field(
            pattern=r"^\S+$",
            description="Image of the memcached containers where a Memcached names none itself.",
        ),
        Knob(
            "What is made",
            why="A pinned release, so that an operator's restart never changes what runs.",
            metavar="IMAGE",
            variable="RELATED_IMAGE_MEMCACHED",
            allowed="an image's reference without spaces, for example docker.io/library/memcached:1.6.45-alpine",
        ),
    ] = "docker.io/library/memcached:1.6.45-alpine"
    memcached_user_id: Annotated[
        Annotated[int, Field(ge=1, le=_USER_ID_MAX)] | None,
        BeforeValidator(_none),
        Field(
            description="User and group of the memcached containers, by number; none names none. "
            "Changing it rolls out the servers of every Memcached.",
        ),
        Knob(
            "What is made",
            why="The official image makes a user of that number and names it by a word, which runAsNonRoot cannot "
            "judge. OpenShift gives each namespace numbers of its own and refuses others: say none there.",
            metavar="ID|none",
            allowed=f"a whole number from 1 to {_USER_ID_MAX}, or none",
        ),
    ] = USER_ID
    finalizer: Annotated[
        bool,
        Field(
            description="Put the finalizer finalizer.cache.example.com on each Memcached: a deleted one stays, and "
            "says what it waits for, until its pods are gone. One that carries it is released with the setting off, "
            "too."
        ),
        Knob(
            "What is made",
            why="The garbage collector cleans up without it, and an operator that is away blocks no deletion.",
            metavar="true|false",
        ),
    ] = False
    status_interval_ms: Annotated[
        int,
        Field(
            ge=0,
            le=60_000,
            description="How long the status of an unfinished change may be held back to join with the next, "
            "in milliseconds. 0 writes every one.",
        ),
        Knob(
            "How it works",
            why="Short enough to look immediate; long enough that pods starting together make one write.",
            metavar="MILLISECONDS",
        ),
    ] = 250
    metrics_per_object: Annotated[
        bool,
        Field(description="Also show the desired and the ready servers of each Memcached."),
        Knob(
            "Probes and metrics",
            why="Two series for each Memcached are more than some Prometheus servers were made for.",
            metavar="true|false",
        ),
    ] = False


@cache
def options() -> tuple[Option, ...]:
    """All knobs in the order in which they are documented."""
    return knobs.options_of(Settings)


def settings_reference() -> str:
    """docs/settings.md."""
    return knobs.reference(
        Settings,
        title="Settings",
        origin="Made by `./dev settings-docs` from memcached_operator/settings.py and "
        "operator_runtime/process/settings.py; do not edit.",
    )
