"""Pure: the list of servers as a ConfigMap, for clients that follow a file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.labels import APPLIED_ANNOTATION, MemcachedOwner
from memcached_operator.core.objects.owned_kind import OwnedKind
from memcached_operator.core.objects.owned_object import Codec, metadata
from memcached_operator.core.objects.script_config_maps import CONFIG_MAP_RESOURCE, IMMUTABLE, compare_config_maps
from memcached_operator.core.objects.scripts import ConfigMapManifest
from memcached_operator.features.discovery.cluster_list import NO_CLUSTER, ClusterServers, next_cluster, read_cluster
from operator_runtime import Difference

SUFFIX: Final = "-servers"
"""In the name of the ConfigMap, after the Memcached's."""
_LIST, _JSON = "servers", "servers.json"
CLUSTER: Final = "cluster"
"""Key of the list as an endpoint gives it to its clients."""
_DIGEST_BYTES: Final = 4


def _compare(desired: ConfigMapManifest, live: ConfigMapManifest) -> Iterator[Difference]:
    yield from compare_config_maps(desired, live)
    if CLUSTER in (live.data or {}) and CLUSTER not in (desired.data or {}):
        yield Difference(("data", CLUSTER), None, (live.data or {})[CLUSTER])


def publication(owner: MemcachedOwner, servers: Sequence[str], cluster: str = "") -> ConfigMapManifest:
    """The ConfigMap with a list.

    Args:
        cluster: the same as an endpoint gives it to clients, "" without one.
    """
    annotations = {APPLIED_ANNOTATION: _digest(servers, cluster)}
    return ConfigMapManifest(
        apiVersion="v1",
        kind="ConfigMap",
        metadata=metadata(owner, name=owner.name + SUFFIX, annotations=annotations),
        data=_data(servers, cluster),
    )


def published(
    owner: MemcachedOwner, spec: Spec, listed: ClusterServers, live: ConfigMapManifest | None = None
) -> ConfigMapManifest | None:
    """The ConfigMap that a Memcached desires, None for none."""
    if spec.has_endpoint:
        former = read_cluster(cluster_of(live)) if live is not None else NO_CLUSTER
        is_ours = live is not None and is_untouched(live)
        return publication(owner, listed.servers, str(next_cluster(former, is_ours, listed)))
    is_on = spec.discovery is not None and spec.discovery.configMap is not None
    return publication(owner, listed.servers) if is_on else None


def is_untouched(live: ConfigMapManifest) -> bool:
    """Report whether the list is as it was written, so that a difference is no other client's change."""
    servers, cluster = listed(live), cluster_of(live)
    is_recorded = (live.metadata.annotations or {}).get(APPLIED_ANNOTATION) == _digest(servers, cluster)
    return is_recorded and (live.data or {}).items() >= _data(servers, cluster).items()


def cluster_of(live: ConfigMapManifest) -> str:
    """The list of an endpoint in a ConfigMap, "" where it has none."""
    return (live.data or {}).get(CLUSTER, "")


def listed(live: ConfigMapManifest) -> list[str]:
    """The servers that a ConfigMap names; none where that cannot be read."""
    try:
        return msgspec.json.decode((live.data or {})[_JSON], type=list[str])
    except (KeyError, msgspec.MsgspecError):
        return []


def _digest(servers: Sequence[str], cluster: str) -> str:
    return hashlib.blake2b(("\n".join(servers) + cluster).encode(), digest_size=_DIGEST_BYTES).hexdigest()


def _data(servers: Sequence[str], cluster: str) -> dict[str, str]:
    data = {_LIST: "".join(f"{each}\n" for each in servers), _JSON: msgspec.json.encode(list(servers)).decode()}
    return data | ({CLUSTER: cluster} if cluster else {})


CONFIG_MAPS: Final = OwnedKind(
    CONFIG_MAP_RESOURCE,
    Codec(ConfigMapManifest, compare=_compare, fixed=(IMMUTABLE,), replace="Background"),
    lambda owner, spec, known: published(owner, spec, ClusterServers(known.servers)),
    field="discovery",
    suffix=SUFFIX,
    listed=listed,
)
