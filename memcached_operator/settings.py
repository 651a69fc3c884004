"""Memcached's own settings in addition to those of any operator."""

import re

from memcached_operator.api import names
from operator_runtime import RuntimeSettings, setting

# What the API server takes for runAsUser.
_USER_ID_MAX = 2_147_483_647


def _none(text: str) -> str | None:
    return None if text.lower() == "none" else text


def _image(text: str) -> str:
    if not re.fullmatch(r"\S+", text):
        raise ValueError(text)
    return text


def _optional_image(text: str) -> str:
    return _image(text) if text else ""


class Settings(RuntimeSettings):
    """The settings of this operator."""

    memcached_image: str = setting(
        "docker.io/library/memcached:1.6.45-alpine",
        "Image of the memcached containers where a Memcached names none itself.",
        "A pinned release, so that a restart of the operator never changes what runs.",
        group="What is created",
        variable="RELATED_IMAGE_MEMCACHED",
        allowed="an image reference without spaces, for example docker.io/library/memcached:1.6.45-alpine",
        read=_image,
    )
    memcached_user_id: int | None = setting(
        names.USER_ID,
        "User and group of the memcached containers, by number; none sets none. A change rolls out the servers of"
        " every Memcached.",
        "The official image has a user with that number and names it by a word, which runAsNonRoot cannot verify."
        " OpenShift assigns numbers to each namespace and refuses others: set none there.",
        limits=(1, _USER_ID_MAX),
        metavar="ID|none",
        allowed=f"a whole number from 1 to {_USER_ID_MAX}, or none",
        read=_none,
    )
    operator_image: str = setting(
        "",
        "Image of the pods of spec.discovery.autoDiscovery, which run the operator's own. If omitted, it is that of "
        "the operator's pod.",
        "An operator that reads it off its own pod always has the right one; out of a cluster there is no such pod.",
        variable="OPERATOR_IMAGE",
        allowed="an image reference without spaces",
        read=_optional_image,
    )
    finalizer: bool = setting(
        False,
        f"Add the finalizer {names.FINALIZER} on each Memcached: a deleted one stays, and its status "
        "says what it waits for, until its pods are gone. A Memcached that has the finalizer is also released "
        "with the setting off.",
        "The garbage collector cleans up without it, and an operator that is down blocks no deletion.",
    )
    status_interval_ms: int = setting(
        250,
        "How long to delay the status of an unfinished change to combine it with the next, in milliseconds. 0 "
        "writes every one.",
        "Short enough to appear immediate; long enough that pods starting together make one write.",
        group="How it works",
        limits=(0, 60_000),
    )
    server_stats_interval_s: float = setting(
        30.0,
        "How often to query the statistics of each ready memcached, in seconds: for the condition Serving, "
        "status.version and the metrics at /metrics/servers. 0 disables queries.",
        "As often as most Prometheus servers scrape; two failures in a row are reported within a minute.",
        limits=(0, 3600),
    )
    memory_scaling_window_s: float = setting(
        600.0,
        "For how long servers with spec.memoryScaling must evict items that clients still request before their "
        "memory grows, in seconds, and for how long they are observed again after each step. At least five times "
        "--server-stats-interval-s, or it takes five answers.",
        "Longer than most peaks and batches, and short enough that a new load has its memory within hours.",
        limits=(1, 86_400),
    )
    server_credentials: bool = setting(
        False,
        "Read the Secrets that Memcacheds name, each by its name, to authenticate to their servers: the first "
        "user of spec.auth, and the certificate of spec.tls if clientAuth is Require. It needs the permission to "
        "get them.",
        "An operator that cannot read Secrets cannot leak them. Without it such servers run as well; they are not"
        " queried for their statistics.",
    )
    metrics_per_object: bool = setting(
        False,
        "Also show the desired and the ready servers of each Memcached.",
        "Two series for each Memcached are too many for some Prometheus servers.",
        group="Probes and metrics",
    )
