import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lab.image.slimming import NotAnElfFile, slim, without_sections


@pytest.fixture
def extension() -> Path:
    """An extension module in a wheel, as the image has it too."""
    found = importlib.util.find_spec("orjson.orjson")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin)


def _python(code: str, **environment: str) -> str:
    finished = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return finished.stdout


def test_an_extension_module_works_without_its_sections(extension: Path, tmp_path: Path) -> None:
    # With something behind the last segment, as debug information would be.
    fat = extension.read_bytes() + b"debug information" * 1000
    smaller = tmp_path / extension.name
    smaller.write_bytes(without_sections(fat))
    assert smaller.stat().st_size < len(fat) - 16_000
    code = f"""
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("orjson", {str(smaller)!r})
module = module_from_spec(spec)
spec.loader.exec_module(module)
print(module.dumps([1, 2]))
"""
    assert _python(code) == "b'[1,2]'\n"


def test_a_second_time_takes_nothing_away(extension: Path) -> None:
    once = without_sections(extension.read_bytes())
    assert without_sections(once) == once


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n", b"\x7fELF\x01\x01", b"\x7fELF\x02\x01"])
def test_what_is_no_64_bit_elf_file_is_refused(content: bytes) -> None:
    with pytest.raises(NotAnElfFile, match="ELF"):
        without_sections(content)


def _package(folder: Path) -> Path:
    package = folder / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def fail():\n    raise ValueError\n")
    (package / "fast.pyx").write_text("")
    (package / "typed.pyi").write_text("")
    (package / "py.typed").write_text("")
    (package / "once" / "inner").mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "bin" / "script").write_text("")
    (folder / "package-1.dist-info").mkdir()
    (folder / "package-1.dist-info" / "LICENSE").write_text("as is")
    return package


def test_what_only_compilers_and_checkers_read_goes_with_empty_folders_and_licences_stay(tmp_path: Path) -> None:
    package = _package(tmp_path)
    slim(tmp_path)
    assert {path.name for path in package.iterdir()} == {"__init__.py", "__pycache__", "py.typed"}
    assert {path.name for path in tmp_path.iterdir()} == {"package", "package-1.dist-info"}
    assert (tmp_path / "package-1.dist-info" / "LICENSE").is_file()


def test_a_compiled_module_is_not_checked_against_its_source_and_may_be_moved(tmp_path: Path) -> None:
    package = _package(tmp_path / "built")
    slim(tmp_path / "built")
    (package / "__init__.py").write_text("changed = True\n")
    moved = (tmp_path / "built").rename(tmp_path / "app")
    said = _python("import package; print(package.fail.__code__.co_filename)", PYTHONPATH=str(moved))
    assert said == f"{moved}/package/__init__.py\n"


def test_the_same_folder_becomes_the_same_bytes_with_the_same_times_for_all_to_read(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder, umask in zip(folders, (0o022, 0o077), strict=True):
        before = os.umask(umask)
        try:
            _package(folder)
            shutil.copy(__file__, folder / "test_module.py")
        finally:
            os.umask(before)
        slim(folder)
    first, second = (
        {
            path.relative_to(folder): (
                path.stat().st_mode,
                path.stat().st_mtime,
                path.read_bytes() if path.is_file() else b"",
            )
            for path in folder.rglob("*")
        }
        for folder in folders
    )
    assert first == second
    assert {mtime for _, mtime, _ in first.values()} == {0}
    assert {oct(mode & 0o777) for mode, _, _ in first.values()} == {"0o755", "0o644"}


def test_a_module_that_cannot_be_compiled_ends_it(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def")
    with pytest.raises(SystemExit, match="could be compiled"):
        slim(tmp_path)
