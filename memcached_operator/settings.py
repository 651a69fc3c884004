"""Memcached's own settings beside those of any operator, and what the program's name makes of all of them."""

from typing import Annotated, Final

from msgspec import Meta

from memcached_operator.about import PROGRAM
from memcached_operator.memcached.wanted.pod_template import USER_ID
from operator_runtime.settings.runtime_settings import RuntimeSettings, schema_of
from operator_runtime.settings.setting import Setting

# What the API server takes for runAsUser.
_USER_ID_MAX = 2_147_483_647


def _none(text: str) -> str | None:
    """Takes the word "none" for no value."""
    return None if text.lower() == "none" else text


class Settings(RuntimeSettings, frozen=True):
    """The settings of this operator."""

    memcached_image: Annotated[
        str,
        Meta(pattern=r"^\S+\Z"),
        Setting(
            "What is made",
            help="Image of the memcached containers where a Memcached names none itself.",
            why="A pinned release, so that an operator's restart never changes what runs.",
            metavar="IMAGE",
            variable="RELATED_IMAGE_MEMCACHED",
            allowed="an image's reference without spaces, for example docker.io/library/memcached:1.6.45-alpine",
        ),
    ] = "docker.io/library/memcached:1.6.45-alpine"
    memcached_user_id: Annotated[
        Annotated[int, Meta(ge=1, le=_USER_ID_MAX)] | None,
        Setting(
            "What is made",
            help="User and group of the memcached containers, by number; none names none. "
            "Changing it rolls out the servers of every Memcached.",
            why="The official image makes a user of that number and names it by a word, which runAsNonRoot cannot "
            "judge. OpenShift gives each namespace numbers of its own and refuses others: say none there.",
            metavar="ID|none",
            allowed=f"a whole number from 1 to {_USER_ID_MAX}, or none",
            read=_none,
        ),
    ] = USER_ID
    finalizer: Annotated[
        bool,
        Setting(
            "What is made",
            help="Put the finalizer finalizer.cache.example.com on each Memcached: a deleted one stays, and "
            "says what it waits for, until its pods are gone. One that carries it is released with the setting off, "
            "too.",
            why="The garbage collector cleans up without it, and an operator that is away blocks no deletion.",
            metavar="true|false",
        ),
    ] = False
    status_interval_ms: Annotated[
        int,
        Meta(ge=0, le=60_000),
        Setting(
            "How it works",
            help="How long the status of an unfinished change may be held back to join with the next, "
            "in milliseconds. 0 writes every one.",
            why="Short enough to look immediate; long enough that pods starting together make one write.",
            metavar="MILLISECONDS",
        ),
    ] = 250
    server_stats_interval_s: Annotated[
        float,
        Meta(ge=0, le=3_600),
        Setting(
            "How it works",
            help="How often each memcached that is ready is asked how it does, in seconds: for the condition Serving, "
            "status.version and the metrics at /metrics/servers. 0 never asks.",
            why="As often as most Prometheus servers scrape; two failures in a row are told within a minute.",
            metavar="SECONDS",
        ),
    ] = 30.0
    server_credentials: Annotated[
        bool,
        Setting(
            "How it works",
            help="Read the Secrets that Memcacheds name, each by its name, for what their servers ask for before they "
            "answer: the first user of spec.auth, and the certificate of spec.tls where clientAuth is Require. It "
            "takes the permission to get them.",
            why="An operator that may read no Secret gives none away. Without it such servers run as well; they are "
            "not asked how they do.",
            metavar="true|false",
        ),
    ] = False
    metrics_per_object: Annotated[
        bool,
        Setting(
            "Probes and metrics",
            help="Also show the desired and the ready servers of each Memcached.",
            why="Two series for each Memcached are more than some Prometheus servers were made for.",
            metavar="true|false",
        ),
    ] = False


SCHEMA: Final = schema_of(Settings, PROGRAM)


def settings_reference() -> str:
    """docs/settings.md."""
    from operator_runtime.settings.reference import reference

    return reference(
        SCHEMA,
        title="Settings",
        origin="Made by `./dev settings-docs` from memcached_operator/settings.py and "
        "operator_runtime/settings/runtime_settings.py; do not edit.",
    )
