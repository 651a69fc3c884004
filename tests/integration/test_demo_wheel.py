"""The demo from an installed wheel, with the extra that it needs and without."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.integration.demo_process import ALL_CAME_TRUE, DEADLINE_S, SMALL, Demos
from tests.operator_process import PROJECT

# It brings an API server of its own, so it need not run once for each that the other tests know.
pytestmark = [pytest.mark.cluster("simulator"), pytest.mark.timeout(600)]

REMEDY = "pip install 'memcached-operator[demo]'"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from this checkout."""
    target = tmp_path_factory.mktemp("wheel")
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", target, cwd=PROJECT)
    (wheel,) = target.glob("*.whl")
    return wheel


class TestWheel:
    """Virtual environments with the wheel and exactly what it requires, linked from the one that runs the tests."""

    @pytest.fixture
    def install(self, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
        """Installs the wheel with an extra, or with none for an empty name; the console script."""

        def installed(extra: str) -> Path:
            folder = tmp_path_factory.mktemp("venv")
            _run(sys.executable, "-m", "venv", "--without-pip", folder)
            (packages,) = folder.glob("lib/*/site-packages")
            options = ("--disable-pip-version-check", "--quiet", "--no-deps", "--no-index", "--no-compile")
            _run(sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", *options, wheel)
            (of_operator,) = metadata.distributions(name="memcached-operator", path=[str(packages)])
            for each in _required(of_operator, {extra}, {}).values():
                _link(each, packages)
            return folder / "bin" / "memcached-operator"

        return installed

    def test_without_the_extra_it_names_the_remedy(self, install: Callable[[str], Path], demos: Demos) -> None:
        program = install("")
        for arguments, terminal in ((("--plain",), None), ((), SMALL)):
            demo = demos(*arguments, command=[program], terminal=terminal)
            assert demo.wait() == 2
            assert REMEDY in demo.text
            assert "Traceback" not in demo.text

    def test_with_the_extra_it_passes_outside_of_a_checkout(self, install: Callable[[str], Path], demos: Demos) -> None:
        program = install("demo")
        where = (program.parent / "python", "-c", "import memcached_operator; print(memcached_operator.__file__)")
        assert Path(_run(*where, cwd=program.parent).strip()).is_relative_to(program.parents[1])
        demo = demos("--plain", command=[program])
        assert demo.wait() == 0, demo.text
        assert demo.lines[-1] == f"demo: {ALL_CAME_TRUE}"


def _run(*command: str | Path, cwd: Path | None = None) -> str:
    finished = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def _required(
    dist: metadata.Distribution, extras: set[str], found: dict[str, metadata.Distribution]
) -> dict[str, metadata.Distribution]:
    """All that a distribution requires with these extras, and what that requires, by name."""
    for text in dist.requires or ():
        desired = Requirement(text)
        if desired.name in found:
            continue
        if desired.marker is None or any(desired.marker.evaluate({"extra": extra}) for extra in extras or {""}):
            found[desired.name] = metadata.distribution(desired.name)
            _required(found[desired.name], desired.extras or {""}, found)
    return found


def _link(dist: metadata.Distribution, packages: Path) -> None:
    """Put what a distribution brought into another folder of packages."""
    for top in {file.parts[0] for file in dist.files or ()} - {"..", "__pycache__"}:
        if not (packages / top).exists():
            (packages / top).symlink_to(Path(str(dist.locate_file(top))))
