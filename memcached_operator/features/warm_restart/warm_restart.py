"""Pure: parts of a pod whose server keeps its items when its container starts again: a memory file, and who writes it.

The file is in memory, and charged to the pod, where it has the place of what memcached would have had for items without
it (`sizing.memory_file_mib`). `warm_restart.sh` starts memcached, and has it write out on SIGTERM what the next
one must know. So it does not matter what ends the container: another image, a restart that was requested, a hook of
the user's own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec.structs import replace

from memcached_operator.api.names import MOUNTED
from memcached_operator.api.quantities import of_mebibytes
from memcached_operator.api.sizing import memory_file_mib
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.labels import RESTART_ANNOTATION
from memcached_operator.core.objects.pod import Pod
from memcached_operator.core.objects.scripts import FOLDER, script
from memcached_operator.core.objects.workload_types import DownwardApi, DownwardFile, EmptyDir, FieldRef, Mount, Volume

ITEMS, RESTART = "warm-restart-items", "warm-restart-request"
"""Names of the volumes."""
_SHELL: Final = Path(__file__).with_name("warm_restart.sh")
_MEMORY_FILE: Final = f"{MOUNTED}/items/file"
_REQUESTED: Final = "request"
# What it writes out at its end: below 1 KiB.
_STATE_MIB: Final = 1


def pod(pod: Pod, spec: Spec) -> Pod:
    """Have memcached take its items over a restart, by a file that is as large as its memory for them."""
    file_mib = memory_file_mib(spec)
    pod = pod.plus(
        options=("-e", _MEMORY_FILE),
        scripts=((_SHELL.name, script(_SHELL)),),
        mounts=(Mount(ITEMS, f"{MOUNTED}/items"), Mount(RESTART, f"{MOUNTED}/{RESTART}", readOnly=True)),
        volumes=(
            Volume(ITEMS, emptyDir=EmptyDir("Memory", of_mebibytes(file_mib + _STATE_MIB))),
            Volume(RESTART, downwardAPI=DownwardApi((_RESTART_FILE,))),
        ),
    )
    launcher = ("sh", f"{FOLDER}/{_SHELL.name}", _MEMORY_FILE, f"{MOUNTED}/{RESTART}/{_REQUESTED}", *pod.launcher)
    return replace(pod, launcher=launcher, items_mib=file_mib, keeps_items=True)


_RESTART_FILE: Final = DownwardFile(_REQUESTED, FieldRef(f"metadata.annotations['{RESTART_ANNOTATION}']"))
