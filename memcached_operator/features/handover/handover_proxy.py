"""Pure: parts of a pod that fills itself from others: memcached's proxy with a script, and the file that names them.

`handover.lua` is the protocol, `handover_commands.lua` the commands of clients. `handover.sh` puts them where memcached
reads them, and starts it. That is no volume: `kubectl drain` keeps a pod with an `emptyDir`, an autoscaler its node.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from memcached_operator.api.names import MOUNTED, PEERS_PORT, PEERS_PORT_NAME
from memcached_operator.core.objects.labels import PEERS_ANNOTATION
from memcached_operator.core.objects.scripts import COMMENT
from memcached_operator.core.objects.workload_types import (
    ContainerPort,
    DownwardApi,
    DownwardFile,
    FieldRef,
    Mount,
    PodSpec,
    Volume,
)

HANDOVER: Final = "handover"
"""Name of the volume."""
_FOLDER: Final = f"{MOUNTED}/{HANDOVER}"
_PEERS: Final = "peers"
# Whole lines and ends of lines, and what a line begins with.
_LUA_COMMENT: Final = re.compile(r"^[ \t]*--.*\n|[ \t]+--[ \t].*$|^[ \t]+|^\n", re.MULTILINE)
_LUA_PARTS: Final = ("handover.lua", "handover_commands.lua")
_PEERS_FILE: Final = DownwardFile(_PEERS, FieldRef(f"metadata.annotations['{PEERS_ANNOTATION}']"))


def with_handover(pod: PodSpec) -> PodSpec:
    """A pod whose memcached fills itself from the peers that its annotation names."""
    memcached, *others = pod.containers or ()
    # "-uc" is one word: what looks for an option of memcached's finds that.
    command = ("sh", "-uc", script(), "memcached", lua(), f"{_FOLDER}/{_PEERS}")
    memcached = msgspec.structs.replace(
        memcached,
        command=(*command, *(memcached.command or ())),
        ports=(*(memcached.ports or ()), ContainerPort(PEERS_PORT, PEERS_PORT_NAME, "TCP")),
        volumeMounts=(*(memcached.volumeMounts or ()), Mount(HANDOVER, _FOLDER, readOnly=True)),
    )
    volumes = (*(pod.volumes or ()), Volume(HANDOVER, downwardAPI=DownwardApi((_PEERS_FILE,))))
    return msgspec.structs.replace(pod, containers=(memcached, *others), volumes=volumes)


@lru_cache(maxsize=1)
def script() -> str:
    """`handover.sh` as pods have it: without its comments, as a better one is no reason to replace servers."""
    return COMMENT.sub("", Path(__file__).with_name("handover.sh").read_text())


@lru_cache(maxsize=1)
def lua() -> str:
    """`handover.lua` and `handover_commands.lua` likewise, as one script."""
    parts = (Path(__file__).with_name(name).read_text() for name in _LUA_PARTS)
    return _LUA_COMMENT.sub("", "".join(parts))
