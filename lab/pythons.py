"""Other releases of Python than the one that runs this, each in a virtual environment below ``.cache/pythons``.

``python -m lab.pythons`` prints the ``python`` by which benchmarks measure: of the release that the operator's image
has, and, with a line on that, this one where that release is not installed.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.cache import BuildError

ROOT = Path(__file__).resolve().parent.parent
_LOCK = ROOT / "requirements.lock"
RELEASES = ("3.12", "3.13", "3.14")
"""The releases that the package is for besides the oldest, as pyproject.toml's classifiers have them."""


def image_release() -> str:
    """Return the release of the operator's image, as its Dockerfile has it."""
    found = re.search(r"^ARG BUILD_IMAGE=\S*/python:(\d+\.\d+)-", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def find(release: str) -> Path | None:
    """Find a release on the PATH, before those that pyenv has: distributions build it with its own profile (PGO)."""
    return next((each for each in _candidates(release) if _is_of(each, release)), None)


def _candidates(release: str) -> Iterator[Path]:
    for folder in os.get_exec_path():
        yield Path(folder) / f"python{release}"
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob(f"versions/{release}.*/bin/python"), reverse=True)


def _is_of(program: Path, release: str) -> bool:
    """Report whether a program runs and is that release; pyenv's shims on the PATH may be neither."""
    command = [str(program), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return False
    return told.stdout.strip() == release


@dataclass(frozen=True, slots=True)
class Python:
    """A release of Python with what the tests need.

    Attributes:
        newest: of its dependencies those that pyproject.toml allows last, and not those of the lock file.
    """

    release: str
    newest: bool = False

    @property
    def program(self) -> Path:
        """The environment's ``python``, once it was prepared."""
        folder = f"{self.release}-newest" if self.newest else self.release
        return ROOT / ".cache" / "pythons" / folder / "bin" / "python"

    def lacking(self) -> str | None:
        """Return why it cannot be had on this machine, None where it can."""
        return None if find(self.release) else f"no Python {self.release} on the PATH or among pyenv's"

    def prepare(self) -> None:
        """Make its environment, unless it is there; with the newest dependencies it is made anew each time.

        Raises:
            BuildError: it is not installed, or a package cannot be had.
        """
        base, folder = find(self.release), self.program.parent.parent
        if base is None:
            raise BuildError(f"{self.lacking()}; install it")
        stamp, content = folder / "stamp", f"{base}\n{_LOCK.read_text()}"
        if not self.newest and stamp.is_file() and stamp.read_text() == content:
            return
        _uv(base, "venv", "--clear", str(folder))
        if self.newest:
            groups = ("--group", "dev", "--group", "docs")
            _uv(self.program, "pip", "install", *groups, "--editable", f"{ROOT}[demo,secure]")
        else:
            _uv(self.program, "pip", "sync", "--require-hashes", str(_LOCK))
            _uv(self.program, "pip", "install", "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
            stamp.write_text(content)


def _uv(python: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "uv", *arguments, "--python", str(python)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"uv {' '.join(arguments[:2])} for {python} failed: {' '.join(done.stderr.split())}")


def main() -> None:
    """Print the ``python`` by which benchmarks measure."""
    image = Python(image_release())
    lacks = image.lacking()
    if lacks is None:
        image.prepare()
    else:
        print(f"measuring Python {sys.version.split()[0]}, as there is {lacks}", file=sys.stderr)
    print(sys.executable if lacks else image.program)


if __name__ == "__main__":
    main()
