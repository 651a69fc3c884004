"""Pure: parts of a pod with a disk (extstore): memcached's options, and the volume that has its file.

memcached empties the file at each start, so that nothing is lost with the volume, and a claim that goes with its pod is
all that is needed.
"""

from __future__ import annotations

from typing import Final

import msgspec

from memcached_operator.api.names import MOUNTED
from memcached_operator.api.quantities import kibibytes
from memcached_operator.api.server_memory import layout_of
from memcached_operator.api.v1alpha1 import EphemeralVolume, Extstore
from memcached_operator.core.objects.labels import EXTSTORE
from memcached_operator.core.objects.workload_types import (
    Claim,
    ClaimSpec,
    ClaimTemplate,
    EmptyDir,
    Mount,
    PodSpec,
    Resources,
    Volume,
)

_FOLDER: Final = f"{MOUNTED}/{EXTSTORE}"
_ITEM_SIZE: Final = "ext_item_size"
# More free memory is kept where items are large, as one needs many chunks at once (get_oom_extstore): what memcached's
# advisory for Loki says. Its own is 0.01.
_FREE_RATIO: Final = "slab_automove_freeratio=0.1"
_LARGE_KIB: Final = 1024


def options(extstore: Extstore, item_size: str) -> tuple[str, ...]:
    """Return memcached's options for the disk, all of them in words, so that another release of it changes nothing.

    Args:
        item_size: `spec.maxItemSize`.
    """
    layout = layout_of(extstore, item_size)
    words = [
        # Of what comes after the path memcached would hear too late.
        f"ext_page_size={layout.page_mib}",
        f"ext_wbuf_size={layout.buffer_mib}",
        f"ext_threads={extstore.threads}",
        f"{_ITEM_SIZE}={extstore.itemSizeMin}",
        f"ext_path={_FOLDER}/items:{layout.file_mib}m",
    ]
    return ("-o", ",".join([*words, _FREE_RATIO] if kibibytes(item_size) > _LARGE_KIB else words))


def with_extstore(pod: PodSpec, extstore: Extstore, group: int | None) -> PodSpec:
    """A pod with the volume in which its memcached has its file.

    Args:
        group: of memcached's user; None where the pod's user is not the operator's affair.
    """
    memcached, *others = pod.containers or ()
    mounts = (*(memcached.volumeMounts or ()), Mount(EXTSTORE, _FOLDER))
    claim = extstore.volume.ephemeral
    # A new filesystem is root's. The node's own folder is open to any user.
    security = {} if claim is None or group is None else {"fsGroup": group}
    return msgspec.structs.replace(
        pod,
        securityContext={**(pod.securityContext or {}), **security},
        containers=(msgspec.structs.replace(memcached, volumeMounts=mounts), *others),
        volumes=(*(pod.volumes or ()), _volume(claim, extstore.size)),
    )


def _volume(claim: EphemeralVolume | None, size: str) -> Volume:
    if claim is None:
        return Volume(EXTSTORE, emptyDir=EmptyDir(sizeLimit=size))
    spec = ClaimSpec(claim.accessModes, claim.storageClassName, Resources(requests={"storage": size}))
    return Volume(EXTSTORE, ephemeral=Claim(ClaimTemplate(spec)))
