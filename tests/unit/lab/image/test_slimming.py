import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from lab.image.slimming import NotAnElfFile, compiled_alone, without_sections


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


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n", b"\x7fELF\x01\x01", b"\x7fELF\x02\x01"])
def test_what_is_no_64_bit_elf_file_is_refused(content: bytes) -> None:
    with pytest.raises(NotAnElfFile, match="ELF"):
        without_sections(content)


def test_the_standard_library_is_compiled_for_where_it_will_lie_and_its_sources_are_left_out(tmp_path: Path) -> None:
    library = tmp_path / "usr" / "lib"
    (library / "test").mkdir(parents=True)
    (library / "found.py").write_text("import sys\nfile = sys._getframe().f_code.co_filename\n")
    (library / "test" / "test_found.py").write_text("")
    (library / "data.txt").write_text("")
    compiled_alone(tmp_path)
    [compiled] = (path for path in tmp_path.rglob("*") if path.is_file())
    assert (compiled.parent.name, compiled.suffix) == ("__pycache__", ".pyc")
    code = f"import marshal; print(marshal.loads(open({str(compiled)!r}, 'rb').read()[16:]).co_filename)"
    assert _python(code) == "usr/lib/found.py\n"
