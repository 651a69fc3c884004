"""Pure: the memory that a server takes, with the extra arguments of its memcached."""

from __future__ import annotations

from functools import lru_cache

from memcached_operator.api.arguments import judge_remembered
from memcached_operator.api.quantities import mebibytes
from memcached_operator.api.sizing import memory_needed_mib


@lru_cache(maxsize=64)  # most Memcacheds share their settings
def memory_mib(
    memory: str,
    max_connections: int,
    threads: int,
    extra_args: tuple[str, ...] = (),
    *,
    tls: bool = False,
    disk_kib: int = 0,
    hands_over: bool = False,
) -> int:
    """MiB that a server with these settings takes at most; they are those of a specification that can be acted on.

    Args:
        disk_kib: of its disk, see `disk_memory_kib`.
        hands_over: it fills itself from others.
    """
    judged = judge_remembered(extra_args, threads)
    needed = memory_needed_mib(
        mebibytes(memory),
        max_connections,
        threads,
        tls=tls,
        size_classes=judged.size_classes,
        least_item_bytes=judged.least_item_bytes,
        disk_kib=disk_kib,
        hands_over=hands_over,
    )
    return needed + judged.table_mib


def memory_file_mib(memory: str, threads: int, extra_args: tuple[str, ...] = ()) -> int:
    """MiB of the file in which a server with these settings has its items.

    It is as large as -m, and memcached gives each size class its first page of it before there is any item. Without a
    file that page comes besides, when the class has its first item.
    """
    return mebibytes(memory) + judge_remembered(extra_args, threads).size_classes - 1
