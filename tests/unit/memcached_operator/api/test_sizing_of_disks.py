"""How a disk is divided, row by row; and that memcached takes each layout, and refuses what the rules are there for."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from lab.cache import BuildError
from lab.image import bases, images, newest
from memcached_operator.api.sizing import DiskLayout, disk_layout, least_volume_mib
from operator_runtime.testing.waiting import until

GIB, TIB = 1024, 1024 * 1024
ROWS = [
    # The volume, the largest item in KiB; each write buffer, each page, and how many there are.
    (68, 1024, DiskLayout(4, 8, 8)),
    (100, 512, DiskLayout(4, 8, 11)),
    (GIB, 1024, DiskLayout(4, 8, 121)),
    (4 * GIB, 1024, DiskLayout(4, 32, 121)),
    (100 * GIB, 1024, DiskLayout(4, 64, 1520)),
    (4 * TIB, 1024, DiskLayout(4, 64, 62259)),
    (5 * TIB, 1024, DiskLayout(4, 128, 38912)),
    (50 * TIB, 1024, DiskLayout(4, 1024, 48640)),
    (99 * TIB, 1024, DiskLayout(4, 2048, 48153)),
    # Four items in a buffer, up to 32 MiB; then one.
    (100 * GIB, 1536, DiskLayout(8, 64, 1520)),
    (100 * GIB, 2048, DiskLayout(8, 64, 1520)),
    (100 * GIB, 5 * 1024, DiskLayout(32, 64, 1520)),
    (100 * GIB, 32 * 1024, DiskLayout(32, 64, 1520)),
    (100 * GIB, 33 * 1024, DiskLayout(64, 128, 760)),
    (100 * GIB, GIB * 1024, DiskLayout(1024, 2048, 47)),
]


@pytest.mark.parametrize(("volume_mib", "item_kib", "layout"), ROWS)
def test_the_disk_is_divided_by_its_size_and_that_of_the_largest_item(
    volume_mib: int, item_kib: int, layout: DiskLayout
) -> None:
    assert disk_layout(volume_mib, item_kib) == layout


@given(st.integers(10, 99 * TIB), st.integers(1, GIB * 1024))
def test_memcached_takes_every_layout_of_a_volume_that_is_large_enough(volume_mib: int, item_kib: int) -> None:
    layout = disk_layout(max(volume_mib, least_volume_mib(item_kib)), item_kib)
    assert item_kib <= layout.buffer_mib * 1024
    assert layout.buffer_mib % 2 == layout.page_mib % layout.buffer_mib == 0
    assert layout.page_mib < 4096
    assert 8 <= layout.pages < 65_535
    assert layout.file_mib <= max(volume_mib, least_volume_mib(item_kib)) * 95 // 100


@given(st.integers(1, GIB * 1024))
def test_a_volume_below_the_least_has_too_few_pages(item_kib: int) -> None:
    least_mib = least_volume_mib(item_kib)
    assert disk_layout(least_mib, item_kib).pages == 8
    assert disk_layout(least_mib - 1, item_kib).pages < 8


AS_ROOT = ("-u", "root") if os.getuid() == 0 else ()


def _programs() -> dict[str, tuple[str, ...]]:
    """The machine's memcached, and the node's, which is newer, where it has been unpacked."""
    found: dict[str, tuple[str, ...]] = {}
    if (program := shutil.which("memcached")) is not None:
        found["the machine's"] = (program,)
    with suppress(BuildError, OSError):
        root = images.images_dir() / f"files-{bases.recipe_of(bases.MEMCACHED)}"
        if root.is_dir():
            found["the node's"] = newest.command(root, root / bases.MEMCACHED_PROGRAM)
    return found


PROGRAMS = _programs()
of_each_program = pytest.mark.parametrize(
    "program", [pytest.param(command, id=name) for name, command in PROGRAMS.items()] or [()]
)
needs_memcached = pytest.mark.skipif(not PROGRAMS, reason="no memcached on the PATH")
needs_the_newest = pytest.mark.skipif("the node's" not in PROGRAMS, reason="the node's memcached is not unpacked")


def _output(program: Sequence[str], folder: Path, options: str, item: str = "1m") -> str:
    """What memcached says with these options of a disk, whose file is `FILE`; "" where it starts."""
    words = (*program, *AS_ROOT, "-s", str(folder / "socket"), "-m", "2048", "-I", item, "-o")
    process = subprocess.Popen(
        [*words, options.replace("FILE", str(folder / "file"))],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    try:
        until("memcached neither starts nor ends", lambda: process.poll() is not None or (folder / "socket").exists())
        ended = process.poll() is not None
    finally:
        process.kill()
        _, output = process.communicate()
    assert ended == bool(output)
    return output.decode()


REFUSED: Sequence[tuple[str, str, str]] = [
    ("ext_path=FILE", "1m", "must supply size to ext_path"),
    ("ext_path=FILE:64m", "8m", "(item_size_max: 8388608) cannot be larger than ext_wbuf_size: 4194304"),
    ("ext_wbuf_size=6,ext_path=FILE:64m", "1m", "page_size must be divisible by wbuf_size"),
    ("ext_wbuf_size=1,ext_path=FILE:64m", "1m", "page_size and wbuf_size must be divisible by 1024*1024*2"),
    ("ext_page_size=8,ext_path=FILE:524280m", "1m", "page_count must total to < 65536"),
    ("ext_path=FILE/none:64m", "1m", "failed to open file"),
]


@needs_memcached
@of_each_program
@pytest.mark.parametrize(("options", "item", "output"), REFUSED)
def test_memcached_refuses_what_the_rules_are_there_for(
    tmp_path: Path, program: Sequence[str], options: str, item: str, output: str
) -> None:
    assert output in _output(program, tmp_path, options, item)


@needs_the_newest
def test_memcached_refuses_a_file_of_less_than_a_page(tmp_path: Path) -> None:
    assert "zero size" in _output(PROGRAMS["the node's"], tmp_path, "ext_path=FILE:63m")


@needs_memcached
@of_each_program
@pytest.mark.parametrize(("volume_mib", "item_kib"), [(68, 1024), (5 * TIB, 1024), (99 * TIB, 512), (GIB, 16 * 1024)])
def test_memcached_starts_with_a_layout(tmp_path: Path, program: Sequence[str], volume_mib: int, item_kib: int) -> None:
    layout = disk_layout(volume_mib, item_kib)
    sizes = f"ext_page_size={layout.page_mib},ext_wbuf_size={layout.buffer_mib},ext_path=FILE:{layout.file_mib}m"
    assert _output(program, tmp_path, sizes, f"{item_kib}k") == ""
