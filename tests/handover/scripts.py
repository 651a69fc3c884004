"""The script that is tried, whole or with a line of it changed, and the memcached that runs it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from lab.programs import memcached
from memcached_operator.core.objects.applied_spec import spec_of
from memcached_operator.core.objects.pod_template import scripts_of
from memcached_operator.features.handover import handover_proxy
from tests.handover.changes import Cluster

PROGRAM = memcached.found()
needs_memcached = pytest.mark.skipif(
    PROGRAM is None, reason="no memcached with a proxy: ./dev test --gate fetches it from Debian's archive"
)


# Of a server whose items move.
MOVING: Final = dict(scripts_of(spec_of({"handover": {"moves": {}}, "workload": "StatefulSet"})))["handover.lua"]


def changed(right: str, wrong: str, text: str = handover_proxy.lua()) -> str:
    """The script with one of its lines changed."""
    assert text.count(right) == 1
    return text.replace(right, wrong)


# With time for a peer that a loaded machine keeps from answering: a miss is the script's, and not the machine's.
PATIENT, PATIENT_MOVING = (
    changed("connecttimeout = 0.3, readtimeout = 0.3", "connecttimeout = 1, readtimeout = 1", text)
    for text in (handover_proxy.lua(), MOVING)
)


def cluster_of(
    folder: Path,
    seed: int,
    *,
    script: str | None = None,
    delay_s: float = 0.0,
    memory_mib: int = 64,
    options: Sequence[str] = (),
) -> Cluster:
    """Servers that run a script, none of which is started yet."""
    assert PROGRAM is not None
    copy = folder / "handover.lua"
    copy.write_text(script or handover_proxy.lua())
    return Cluster(PROGRAM, copy, folder, random.Random(seed), memory_mib=memory_mib, options=options, delay_s=delay_s)
