"""Pure: the list of servers as a ConfigMap, for clients that follow a file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.labels import APPLIED_ANNOTATION, POD_SELECTOR, MemcachedOwner
from memcached_operator.core.objects.owned_kind import Known, OwnedKind
from memcached_operator.core.objects.owned_object import Codec, metadata
from memcached_operator.core.objects.scripts import ConfigMapManifest, held
from memcached_operator.features.discovery.cluster_list import NO_CLUSTER, next_cluster, read_cluster
from operator_runtime import Difference, differences

SUFFIX: Final = "-servers"
"""In the name of the ConfigMap, after the Memcached's."""
_LIST, _JSON = "servers", "servers.json"
CLUSTER: Final = "cluster"
"""Key of the list as an endpoint gives it to its clients."""
_IMMUTABLE: Final = "immutable"
_DIGEST_BYTES: Final = 4


def _compare(desired: ConfigMapManifest, live: ConfigMapManifest) -> Iterator[Difference]:
    yield from differences(desired, live)
    if CLUSTER in (live.data or {}) and CLUSTER not in (desired.data or {}):
        yield Difference(("data", CLUSTER), None, (live.data or {})[CLUSTER])
    # An immutable list prevents another one. As long as it is right it stays. Scripts are always replaced.
    if (live.immutable or desired.immutable) and any(differences(desired.data, live.data)):
        yield Difference((_IMMUTABLE,), None, True)


def publication(owner: MemcachedOwner, servers: Sequence[str], cluster: str = "") -> ConfigMapManifest:
    """The ConfigMap that a Memcached desires.

    Args:
        servers: `host:port` of each, in their order.
        cluster: the same as an endpoint gives it to clients, "" without one.
    """
    annotations = {APPLIED_ANNOTATION: _digest(servers, cluster)}
    return ConfigMapManifest(
        apiVersion="v1",
        kind="ConfigMap",
        metadata=metadata(owner, name=owner.name + SUFFIX, annotations=annotations),
        data=_data(servers, cluster),
    )


def _desired(owner: MemcachedOwner, spec: Spec, known: Known) -> ConfigMapManifest | None:
    if spec.has_endpoint:
        former = read_cluster(cluster_of(known.live)) if known.live is not None else NO_CLUSTER
        is_ours = known.live is not None and is_untouched(known.live)
        return publication(owner, known.servers, str(next_cluster(former, is_ours, known)))
    is_on = spec.discovery is not None and spec.discovery.configMap is not None
    return publication(owner, known.servers) if is_on else None


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


def _follow(live: ConfigMapManifest, desired: ConfigMapManifest) -> dict[str, Any] | None:
    if live.immutable or live.data == desired.data:
        return None
    return {"metadata": {"annotations": desired.metadata.annotations}, "data": desired.data}


def _digest(servers: Sequence[str], cluster: str) -> str:
    return hashlib.blake2b(("\n".join(servers) + cluster).encode(), digest_size=_DIGEST_BYTES).hexdigest()


def _data(servers: Sequence[str], cluster: str) -> dict[str, str]:
    data = {_LIST: "".join(f"{each}\n" for each in servers), _JSON: msgspec.json.encode(list(servers)).decode()}
    return data | ({CLUSTER: cluster} if cluster else {})


CONFIG_MAPS: Final = OwnedKind(
    ("v1", "ConfigMap", "configmaps"),
    Codec(ConfigMapManifest, held, _compare, shorten=held, fixed=(_IMMUTABLE,), replace="Background"),
    _desired,
    field="discovery",
    labels=POD_SELECTOR,
    suffix=SUFFIX,
    has_scripts=True,
    awaits_list=True,
    listed=listed,
    is_untouched=is_untouched,
    follow=_follow,
)
