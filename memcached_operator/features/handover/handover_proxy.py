"""Pure: parts of a pod that fills itself from others: memcached's proxy with a script, and the file that names them.

`handover.lua` is the protocol, `handover_commands.lua` the commands of clients. `handover.sh` puts them where memcached
reads them, and starts it. That is no volume: `kubectl drain` keeps a pod with an `emptyDir`, an autoscaler its node.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Final

from memcached_operator.api.names import MOUNTED, PEERS_PORT, PEERS_PORT_NAME
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.labels import PEERS_ANNOTATION
from memcached_operator.core.objects.pod import Pod
from memcached_operator.core.objects.scripts import COMMENT
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
# Whole lines and ends of lines, and what a line begins with.
_LUA_COMMENT: Final = re.compile(r"^[ \t]*--.*\n|[ \t]+--[ \t].*$|^[ \t]+|^\n", re.MULTILINE)
_LUA_PARTS: Final = ("handover.lua", "handover_commands.lua")
_PEERS_FILE: Final = DownwardFile(_PEERS, FieldRef(f"metadata.annotations['{PEERS_ANNOTATION}']"))


def pod(pod: Pod, _: Spec) -> Pod:
    """Have memcached fill itself from the peers that the pod's annotation names."""
    # "-uc" is one word: what looks for an option of memcached's finds that.
    return pod.plus(
        launcher=("sh", "-uc", script(), "memcached", lua(), f"{_FOLDER}/{_PEERS}"),
        ports=(ContainerPort(PEERS_PORT, PEERS_PORT_NAME, "TCP"),),
        mounts=(Mount(HANDOVER, _FOLDER, readOnly=True),),
        volumes=(Volume(HANDOVER, downwardAPI=DownwardApi((_PEERS_FILE,))),),
    )


@lru_cache(maxsize=1)
def script() -> str:
    """`handover.sh` as pods have it: without its comments, as a better one is no reason to replace servers."""
    return COMMENT.sub("", Path(__file__).with_name("handover.sh").read_text())


@lru_cache(maxsize=1)
def lua() -> str:
    """`handover.lua` and `handover_commands.lua` likewise, as one script."""
    parts = (Path(__file__).with_name(name).read_text() for name in _LUA_PARTS)
    return _LUA_COMMENT.sub("", "".join(parts))
