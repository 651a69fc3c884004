"""Pure: parts of a pod that fills itself from others: memcached's proxy with a script, and the file that names them.

`handover.lua` is the protocol, `handover_commands.lua` the commands of clients. `handover.sh` starts memcached. With
`spec.handover.moves`, `handover_ending.lua` is told a server's peers while its pod ends, which `before_end.sh` delays.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec.structs import replace

from memcached_operator.api.names import MOUNTED, PEERS_PORT, PEERS_PORT_NAME, PORT, TELL_PORT, TELL_PORT_NAME
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects import workload_types as types
from memcached_operator.core.objects.labels import PEERS_ANNOTATION
from memcached_operator.core.objects.pod import Pod
from memcached_operator.core.objects.scripts import FOLDER as SCRIPTS, Scripts, script

HANDOVER: Final = "handover"
"""Name of the volume."""
_FOLDER: Final = f"{MOUNTED}/{HANDOVER}"
_PEERS: Final = "peers"
_ROOM: Final = Path(__file__).parent
_SHELL, _LUA = "handover.sh", "handover.lua"
_LUA_PARTS: Final = (_LUA, "handover_commands.lua")
_ENDING_LUA, _HOOK = "handover_ending.lua", "before_end.sh"
# Of all containers of a pod, in memory: it has what a server was told while its pod ends. No drain without a flag takes
# a pod with an emptyDir.
_SHARED: Final = "/dev/shm"
_LISTENERS: Final = f"proto[proxy]:*:{PORT},proto[ascii]:*:{PEERS_PORT}"
_PEERS_FILE: Final = types.DownwardFile(_PEERS, types.FieldRef(f"metadata.annotations['{PEERS_ANNOTATION}']"))


def pod(pod: Pod, spec: Spec) -> Pod:
    """Have memcached fill itself from the peers that the pod's annotation names."""
    scripts: Scripts = ((_SHELL, script(_ROOM / _SHELL)), (_LUA, lua()))
    ports = [types.ContainerPort(PEERS_PORT, PEERS_PORT_NAME, "TCP")]
    moves = spec.handover.moves if spec.handover is not None else None
    if moves is not None and spec.podTemplate.spec.get("hostIPC") is True:  # that folder would be the node's
        pod = replace(pod, server=replace(pod.server, lifecycle=None))
    elif moves is not None:
        hook = types.Hook(exec=types.ExecAction(("sh", f"{SCRIPTS}/{_HOOK}", _SHARED)))
        pod = replace(
            pod, server=replace(pod.server, lifecycle=types.Lifecycle(hook)), grace_s=moves.gracePeriodSeconds
        )
        scripts = _ending(scripts)
        ports.append(types.ContainerPort(TELL_PORT, TELL_PORT_NAME, "TCP"))
    return pod.plus(
        launcher=("sh", f"{SCRIPTS}/{_SHELL}", f"{SCRIPTS}/{_LUA}", f"{_FOLDER}/{_PEERS}"),
        scripts=scripts,
        ports=tuple(ports),
        mounts=(types.Mount(HANDOVER, _FOLDER, readOnly=True),),
        volumes=(types.Volume(HANDOVER, downwardAPI=types.DownwardApi((_PEERS_FILE,))),),
    )


def _ending(scripts: Scripts) -> Scripts:
    """The scripts of a server that is told its peers while its pod ends, on a listener of its own."""
    (shell, start), (name, parts) = scripts
    start = start.replace(_LISTENERS, f"{_LISTENERS},proto[proxy]:tag[{TELL_PORT_NAME}]:*:{TELL_PORT}")
    return (shell, start), (name, parts + script(_ROOM / _ENDING_LUA)), (_HOOK, script(_ROOM / _HOOK))


def lua() -> str:
    """`handover.lua` and `handover_commands.lua`, as one script."""
    return "".join(script(_ROOM / name) for name in _LUA_PARTS)
