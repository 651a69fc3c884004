"""Pure: parts of a pod with a disk (extstore): memcached's options, and the volume that has its file.

memcached empties the file at each start, so that nothing is lost with the volume, and a claim that goes with its pod is
all that is needed.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from memcached_operator.api.names import MOUNTED
from memcached_operator.api.quantities import kibibytes, mebibytes
from memcached_operator.api.sizing import disk_layout
from memcached_operator.api.v1alpha1 import EphemeralVolume, Extstore, Spec
from memcached_operator.core.objects import workload_types as types
from memcached_operator.core.objects.labels import EXTSTORE
from memcached_operator.core.objects.pod import Pod

_FOLDER: Final = f"{MOUNTED}/{EXTSTORE}"
# More free memory is kept where items are large, as one needs many chunks at once (get_oom_extstore): what memcached's
# advisory for Loki says. Its own is 0.01.
_FREE_RATIO: Final = "slab_automove_freeratio=0.1"
_LARGE_KIB: Final = 1024


def pod(pod: Pod, spec: Spec) -> Pod:
    """Add the volume in which memcached has its file, and its options for that."""
    extstore = spec.extstore
    assert extstore is not None
    claim = extstore.volume.ephemeral
    group = pod.security.get("runAsGroup")
    # A new filesystem is root's. The node's own folder is open to any user.
    security = {} if claim is None or group is None else {"fsGroup": group}
    disk_from = int(extstore.itemSizeMin)
    pod = pod.plus(mounts=(types.Mount(EXTSTORE, _FOLDER),), volumes=(_volume(claim, extstore.size),))
    return replace(
        pod,
        security=pod.security | security,
        options=(*_options(extstore, spec.maxItemSize, 0 if pod.only_replaced else disk_from), *pod.options),
        disk_from=disk_from,
    )


def _options(extstore: Extstore, item_size: str, moved_from: int) -> tuple[str, ...]:
    """Return memcached's options for the disk, all of them in words, so that another release of it changes nothing."""
    layout = disk_layout(mebibytes(extstore.size), kibibytes(item_size))
    words = [
        # Of what comes after the path memcached would hear too late.
        f"ext_page_size={layout.page_mib}",
        f"ext_wbuf_size={layout.buffer_mib}",
        f"ext_threads={extstore.threads}",
        f"ext_item_size={moved_from}",
        f"ext_path={_FOLDER}/items:{layout.file_mib}m",
    ]
    return ("-o", ",".join([*words, _FREE_RATIO] if kibibytes(item_size) > _LARGE_KIB else words))


def _volume(claim: EphemeralVolume | None, size: str) -> types.Volume:
    if claim is None:
        return types.Volume(EXTSTORE, emptyDir=types.EmptyDir(sizeLimit=size))
    spec = types.ClaimSpec(
        claim.accessModes, claim.storageClassName, types.ResourceRequirements(requests={"storage": size})
    )
    return types.Volume(EXTSTORE, ephemeral=types.Claim(types.ClaimTemplate(spec)))
