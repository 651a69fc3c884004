"""Memcached's own settings in addition to those of any operator."""

from typing import Annotated

from msgspec import Meta

from memcached_operator.memcached.desired.pod_template import USER_ID
from operator_runtime import RuntimeSettings, Setting

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
            "What is created",
            help="Image of the memcached containers where a Memcached names none itself.",
            why="A pinned release, so that a restart of the operator never changes what runs.",
            metavar="IMAGE",
            variable="RELATED_IMAGE_MEMCACHED",
            allowed="an image reference without spaces, for example docker.io/library/memcached:1.6.45-alpine",
        ),
    ] = "docker.io/library/memcached:1.6.45-alpine"
    memcached_user_id: Annotated[
        Annotated[int, Meta(ge=1, le=_USER_ID_MAX)] | None,
        Setting(
            "What is created",
            help=(
                "User and group of the memcached containers, by number; none sets none. A change rolls out the "
                "servers of every Memcached."
            ),
            why=(
                "The official image has a user with that number and names it by a word, which runAsNonRoot cannot "
                "verify. OpenShift assigns numbers to each namespace and refuses others: set none there."
            ),
            metavar="ID|none",
            allowed=f"a whole number from 1 to {_USER_ID_MAX}, or none",
            read=_none,
        ),
    ] = USER_ID
    finalizer: Annotated[
        bool,
        Setting(
            "What is created",
            help=(
                "Add the finalizer finalizer.cache.example.com on each Memcached: a deleted one stays, and its "
                "status says what it waits for, until its pods are gone. A Memcached that has the finalizer is also "
                "released with the setting off."
            ),
            why="The garbage collector cleans up without it, and an operator that is down blocks no deletion.",
            metavar="true|false",
        ),
    ] = False
    status_interval_ms: Annotated[
        int,
        Meta(ge=0, le=60_000),
        Setting(
            "How it works",
            help=(
                "How long to delay the status of an unfinished change to combine it with the next, in milliseconds. "
                "0 writes every one."
            ),
            why="Short enough to appear immediate; long enough that pods starting together make one write.",
            metavar="MILLISECONDS",
        ),
    ] = 250
    server_stats_interval_s: Annotated[
        float,
        Meta(ge=0, le=3_600),
        Setting(
            "How it works",
            help=(
                "How often to query the statistics of each ready memcached, in seconds: for the condition Serving, "
                "status.version and the metrics at /metrics/servers. 0 disables queries."
            ),
            why="As often as most Prometheus servers scrape; two failures in a row are reported within a minute.",
            metavar="SECONDS",
        ),
    ] = 30.0
    memory_scaling_window_s: Annotated[
        float,
        Meta(ge=1, le=86_400),
        Setting(
            "How it works",
            help=(
                "For how long servers with spec.memoryScaling must evict items that clients still request before "
                "their memory grows, in seconds, and for how long they are observed again after each step. At least "
                "five times --server-stats-interval-s, or it takes five answers."
            ),
            why="Longer than most peaks and batches, and short enough that a new load has its memory within hours.",
            metavar="SECONDS",
        ),
    ] = 600.0
    server_credentials: Annotated[
        bool,
        Setting(
            "How it works",
            help=(
                "Read the Secrets that Memcacheds name, each by its name, to authenticate to their servers: the "
                "first user of spec.auth, and the certificate of spec.tls if clientAuth is Require. It needs the "
                "permission to get them."
            ),
            why=(
                "An operator that cannot read Secrets cannot leak them. Without it such servers run as well; they "
                "are not queried for their statistics."
            ),
            metavar="true|false",
        ),
    ] = False
    metrics_per_object: Annotated[
        bool,
        Setting(
            "Probes and metrics",
            help="Also show the desired and the ready servers of each Memcached.",
            why="Two series for each Memcached are too many for some Prometheus servers.",
            metavar="true|false",
        ),
    ] = False
