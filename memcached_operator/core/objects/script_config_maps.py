"""Pure: the ConfigMap from which pods have the scripts that run in their containers.

It is immutable and named by its content, so that a pod keeps the scripts that it was made with, and other ones are a
change of its template. It is there while a workload or a pod names it, so that a Memcached can have several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.labels import POD_SELECTOR, MemcachedOwner
from memcached_operator.core.objects.owned_kind import CachedResource, Known, OwnedKind
from memcached_operator.core.objects.owned_object import Codec, OwnedRecord, metadata
from memcached_operator.core.objects.pod_template import scripts_of
from memcached_operator.core.objects.scripts import ConfigMapManifest, Scripts, held, suffix, suffix_in
from operator_runtime import Difference, ObjectKey, differences

if TYPE_CHECKING:
    from operator_runtime import Store

IMMUTABLE: Final = "immutable"
SCRIPTS_INDEX: Final = "scripts"
"""Name of the index by which a Memcached's are found."""


@lru_cache
def scripts_config_map(owner: MemcachedOwner, scripts: Scripts) -> ConfigMapManifest:
    meta = metadata(owner, name=owner.name + suffix(scripts))
    return ConfigMapManifest(apiVersion="v1", kind="ConfigMap", metadata=meta, data=dict(scripts), immutable=True)


def compare_config_maps(desired: ConfigMapManifest, live: ConfigMapManifest) -> Iterator[Difference]:
    """The differences of a ConfigMap. One that is immutable prevents another content, and stays while it is right."""
    yield from differences(desired, live)
    if (live.immutable or desired.immutable) and any(differences(desired.data, live.data)):
        yield Difference((IMMUTABLE,), None, True)


def _desired(owner: MemcachedOwner, spec: Spec, _: Known) -> ConfigMapManifest | None:
    scripts = scripts_of(spec)
    return scripts_config_map(owner, scripts) if scripts else None


class _ScriptConfigMaps(OwnedKind):
    def memcached_of(self, live: OwnedRecord) -> ObjectKey | None:
        return _memcached_of(live)

    def objects_in(self, cache: Store[Any], memcached: ObjectKey) -> Sequence[OwnedRecord]:
        return cache.by_index(SCRIPTS_INDEX, memcached)


def _memcached_of(live: OwnedRecord) -> ObjectKey | None:
    found = suffix_in(live.name)
    return ObjectKey(live.namespace, live.name.removesuffix(found)) if found else None


_CODEC: Final = Codec(ConfigMapManifest, held, compare_config_maps, fixed=(IMMUTABLE,), replace="Background")
CONFIG_MAP_RESOURCE: Final = CachedResource(
    ("v1", "ConfigMap", "configmaps"), _CODEC.record, POD_SELECTOR, indexes={SCRIPTS_INDEX: _memcached_of}
)
SCRIPT_CONFIG_MAPS: Final = _ScriptConfigMaps(CONFIG_MAP_RESOURCE, _CODEC, _desired)
