"""Make a folder of Python packages ready for an image: small, compiled, and the same bytes each time.

The Dockerfile runs this in its build stage (``slimming.py FOLDER``, and ``slimming.py --compiled-alone FOLDER`` for the
standard library), so it needs nothing but Python.
"""

import compileall
import os
import re
import shutil
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from py_compile import PycInvalidationMode

# What only compilers, type checkers and test runners read. The rest of a package stays, its licence above all.
_NOT_FOR_RUNNING = frozenset({".c", ".cc", ".h", ".hash", ".pxd", ".pxi", ".pyi", ".pyx"})

# ELF, 64 bits, as the ELF specification (System V ABI, chapters 4 and 5) lays it out.
_MAGIC, _LITTLE_ENDIAN_64 = b"\x7fELF", b"\x02\x01"
_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION_TABLE_OFFSET = 40  # where the header has the offset of the section table
_SECTION_COUNTS_OFFSET = 60  # where it has the table's length and the index of the section of names


class NotAnElfFile(ValueError):
    """The bytes are not those of a little-endian 64-bit ELF file."""


def without_sections(elf: bytes) -> bytes:
    """A shared object up to the end of its last segment, with no section table.

    Loaders go by segments. What lies behind them, debug information and symbols for debuggers, is more than half of the
    bytes of the wheels that the operator needs: 14 of 16 MB of uvloop's.

    Raises:
        NotAnElfFile: it is none.
    """
    if elf[:4] != _MAGIC or elf[4:6] != _LITTLE_ENDIAN_64 or len(elf) < _HEADER.size:
        raise NotAnElfFile(f"not a little-endian 64-bit ELF file: it begins with {elf[:6]!r}")
    _, _, _, _, table, _, _, _, entry_size, entries, *_ = _HEADER.unpack_from(elf)
    end = table + entry_size * entries
    for index in range(entries):
        _, _, offset, _, _, file_size, _, _ = _SEGMENT.unpack_from(elf, table + index * entry_size)
        end = max(end, offset + file_size)
    slim = bytearray(elf[:end])
    struct.pack_into("<Q", slim, _SECTION_TABLE_OFFSET, 0)
    struct.pack_into("<HH", slim, _SECTION_COUNTS_OFFSET, 0, 0)
    return bytes(slim)


def slim(folder: Path) -> None:
    """Remove what is not for running, compile the rest, and give every file the same time and a mode that all may read.

    Empty folders go, too: a checkout keeps those that its history once had files in.

    Args:
        folder: as ``pip install --target`` fills it. It can be moved afterwards.
    """
    shutil.rmtree(folder / "bin", ignore_errors=True)  # console scripts, which name the building Python
    for path in _files(folder):
        if path.suffix in _NOT_FOR_RUNNING:
            path.unlink()
        elif ".so" in path.suffixes:
            path.write_bytes(without_sections(path.read_bytes()))
    _remove_empty_folders(folder)
    _compile(folder)
    _unify(folder)


def compiled_alone(root: Path) -> None:
    """Compile the standard library that lies below a root, and leave nothing there but the compiled modules.

    Laid over an image with the same root, they are beside its modules. Tests and demonstrations are left out.
    """
    _compile(root, leave_out=re.compile(r"/(ensurepip|idlelib|lib2to3|pydoc_data|test|tkinter|turtledemo|venv)/"))
    for path in _files(root):
        if path.suffix != ".pyc":
            path.unlink()
    _remove_empty_folders(root)
    _unify(root)


def _compile(folder: Path, leave_out: re.Pattern[str] | None = None) -> None:
    # Unchecked: nothing in the image changes, and no start has to look whether it did. The path that is compiled in is
    # replaced as a module is imported, and the same one makes the same bytes.
    compiled = compileall.compile_dir(
        folder,
        quiet=1,
        force=True,
        rx=leave_out,
        stripdir=str(folder),
        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
    )
    if not compiled:
        raise SystemExit(f"slimming: not everything in {folder} could be compiled, see above")


def _remove_empty_folders(folder: Path) -> None:
    for path in sorted((each for each in folder.rglob("*") if each.is_dir() and not each.is_symlink()), reverse=True):
        if not any(path.iterdir()):
            path.rmdir()


def _unify(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)  # whatever the umask of who checked it out
        os.utime(path, (0, 0), follow_symlinks=False)


def _files(folder: Path) -> Iterator[Path]:
    yield from (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())


if __name__ == "__main__":
    if sys.argv[1] == "--compiled-alone":
        compiled_alone(Path(sys.argv[2]))
    else:
        slim(Path(sys.argv[1]))
