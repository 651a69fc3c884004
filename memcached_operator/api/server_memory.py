"""Pure: the memory and the disk that a server takes, from its specification."""

from __future__ import annotations

from memcached_operator.api.arguments import judge_remembered
from memcached_operator.api.quantities import kibibytes, mebibytes
from memcached_operator.api.sizing import DiskLayout, disk_layout, disk_memory_kib, memory_needed_mib
from memcached_operator.api.v1alpha1 import Extstore, Spec


def memory_of_server_mib(spec: Spec) -> int:
    """MiB that a server of that specification takes at most."""
    judged, disk = judge_remembered(spec.extraArgs, spec.threads), spec.extstore
    needed = memory_needed_mib(
        mebibytes(spec.memory),
        spec.maxConnections,
        spec.threads,
        tls=spec.tls is not None,
        size_classes=judged.size_classes,
        least_item_bytes=judged.least_item_bytes,
        disk_kib=disk_memory_kib(layout_of(disk, spec.maxItemSize), disk.threads) if disk is not None else 0,
        hands_over=spec.handover is not None,
    )
    return needed + judged.table_mib


def memory_file_mib(spec: Spec) -> int:
    """MiB of the file in which a server has its items.

    It is as large as -m, and memcached gives each size class its first page of it before there is any item. Without a
    file that page comes besides, when the class has its first item.
    """
    return mebibytes(spec.memory) + judge_remembered(spec.extraArgs, spec.threads).size_classes - 1


def layout_of(extstore: Extstore, item_size: str) -> DiskLayout:
    """Division of a server's disk."""
    return disk_layout(mebibytes(extstore.size), kibibytes(item_size))
