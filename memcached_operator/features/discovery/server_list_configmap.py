"""Pure: the list of servers as a ConfigMap, for clients that follow a file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.labels import APPLIED_ANNOTATION, POD_SELECTOR, MemcachedOwner
from memcached_operator.core.objects.owned_kind import OwnedKind
from memcached_operator.core.objects.owned_object import Codec, metadata
from memcached_operator.core.objects.scripts import ConfigMapManifest, held
from operator_runtime import Difference, differences

_SUFFIX: Final = "-servers"
_LIST, _JSON = "servers", "servers.json"
_IMMUTABLE: Final = "immutable"
_DIGEST_BYTES: Final = 4


def _compare(desired: ConfigMapManifest, live: ConfigMapManifest) -> Iterator[Difference]:
    yield from differences(desired, live)
    # An immutable list prevents another one. As long as it is right it stays. Scripts are always replaced.
    if (live.immutable or desired.immutable) and any(differences(desired.data, live.data)):
        yield Difference((_IMMUTABLE,), None, True)


def publication(owner: MemcachedOwner, servers: Sequence[str]) -> ConfigMapManifest:
    """The ConfigMap that a Memcached desires.

    Args:
        servers: `host:port` of each, in their order.
    """
    return ConfigMapManifest(
        apiVersion="v1",
        kind="ConfigMap",
        metadata=metadata(owner, name=owner.name + _SUFFIX, annotations={APPLIED_ANNOTATION: _digest(servers)}),
        data=_data(servers),
    )


def _desired(owner: MemcachedOwner, spec: Spec, servers: Sequence[str], _: str) -> ConfigMapManifest | None:
    is_on = spec.discovery is not None and spec.discovery.configMap is not None
    return publication(owner, servers) if is_on else None


def is_untouched(live: ConfigMapManifest) -> bool:
    """Report whether the list is as it was written, so that a difference is no other client's change."""
    servers = listed(live)
    is_recorded = (live.metadata.annotations or {}).get(APPLIED_ANNOTATION) == _digest(servers)
    return is_recorded and (live.data or {}).items() >= _data(servers).items()


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


def _digest(servers: Sequence[str]) -> str:
    return hashlib.blake2b("\n".join(servers).encode(), digest_size=_DIGEST_BYTES).hexdigest()


def _data(servers: Sequence[str]) -> dict[str, str]:
    return {_LIST: "".join(f"{each}\n" for each in servers), _JSON: msgspec.json.encode(list(servers)).decode()}


CONFIG_MAPS: Final = OwnedKind(
    ("v1", "ConfigMap", "configmaps"),
    Codec(ConfigMapManifest, held, _compare, shorten=held, fixed=(_IMMUTABLE,), replace="Background"),
    _desired,
    field="discovery",
    labels=POD_SELECTOR,
    suffix=_SUFFIX,
    has_scripts=True,
    listed=listed,
    is_untouched=is_untouched,
    follow=_follow,
)
