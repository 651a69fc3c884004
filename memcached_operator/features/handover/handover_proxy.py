"""Pure: parts of a pod that fills itself from others: memcached's proxy with a script, and the file that names them.

`handover.lua` is the protocol, `handover_commands.lua` the commands of clients. `handover.sh` starts memcached.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec.structs import replace

from memcached_operator.api.names import MOUNTED, PEERS_PORT, PEERS_PORT_NAME
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.labels import PEERS_ANNOTATION
from memcached_operator.core.objects.pod import Pod
from memcached_operator.core.objects.scripts import FOLDER as SCRIPTS, script
from memcached_operator.core.objects.workload_types import (
    ContainerPort,
    DownwardApi,
    DownwardFile,
    FieldRef,
    Mount,
    Volume,
)

HANDOVER: Final = "handover"
"""Name of the volume."""
_FOLDER: Final = f"{MOUNTED}/{HANDOVER}"
_PEERS: Final = "peers"
_ROOM: Final = Path(__file__).parent
_SHELL, _LUA = "handover.sh", "handover.lua"
_LUA_PARTS: Final = (_LUA, "handover_commands.lua")
_PEERS_FILE: Final = DownwardFile(_PEERS, FieldRef(f"metadata.annotations['{PEERS_ANNOTATION}']"))


def pod(pod: Pod, spec: Spec) -> Pod:
    """Have memcached fill itself from the peers that the pod's annotation names."""
    if spec.moves:
        # It refuses writes before it ends, and is asked by its name: while it waits, clients gain nothing.
        pod = replace(pod, server=replace(pod.server, lifecycle=None))
    return pod.plus(
        launcher=("sh", f"{SCRIPTS}/{_SHELL}", f"{SCRIPTS}/{_LUA}", f"{_FOLDER}/{_PEERS}"),
        scripts=((_SHELL, script(_ROOM / _SHELL)), (_LUA, lua())),
        ports=(ContainerPort(PEERS_PORT, PEERS_PORT_NAME, "TCP"),),
        mounts=(Mount(HANDOVER, _FOLDER, readOnly=True),),
        volumes=(Volume(HANDOVER, downwardAPI=DownwardApi((_PEERS_FILE,))),),
    )


def lua() -> str:
    """`handover.lua` and `handover_commands.lua`, as one script."""
    return "".join(script(_ROOM / name) for name in _LUA_PARTS)
