import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab import ROOT
from lab.image import builders
from lab.image.builders import PROGRAMS


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The PATH: a folder to put builders into. Each writes down how it was called."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    for name in PROGRAMS:  # before the machine's own
        _program(folder, name, fails_at="version info")
    monkeypatch.delenv(builders.VARIABLE, raising=False)
    return folder


def _program(folder: Path, name: str, *, fails_at: str = "nothing") -> None:
    path = folder / name
    lines = [
        "#!/bin/sh",
        f'echo "$DOCKER_BUILDKIT $0 $@" >> {folder}/calls',
        f'case " {fails_at} " in *" $1 "*) echo "no daemon" >&2; exit 1;; esac',
    ]
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o755)


def _last_call(folder: Path) -> str:
    return (folder / "calls").read_text().splitlines()[-1].replace(f"{folder}/", "")


BUILD = "--build-arg A=b --secret id=pip-conf,src=/conf --tag op:1 /src"
CALLS = {
    "docker": (f"build {BUILD}", "save --output /a.tar op:1", "load --input /a.tar"),
    "podman": (
        f"build --layers=true --pull=missing {BUILD}",
        "save --quiet --format docker-archive --output /a.tar op:1",
        "load --input /a.tar",
    ),
    "buildah": (
        f"build --isolation chroot --layers=true --pull=false {BUILD}",
        "push --quiet op:1 docker-archive:/a.tar:op:1",
        "pull --quiet docker-archive:/a.tar",
    ),
}


@pytest.mark.parametrize(("name", "calls"), CALLS.items())
def test_the_one_that_works_builds_saves_and_loads_in_its_own_words(
    programs: Path, name: str, calls: tuple[str, ...]
) -> None:
    _program(programs, name)
    builder, archive = builders.find(), Path("/a.tar")
    builder.build(Path("/src"), "op:1", arguments={"A": "b"}, secrets={"pip-conf": Path("/conf")})
    assert _last_call(programs) == f"1 {name} {calls[0]}"
    builder.save("op:1", archive)
    assert _last_call(programs).endswith(f"{name} {calls[1]}")
    builder.load(archive)
    assert _last_call(programs).endswith(f"{name} {calls[2]}")


IMAGE = "registry.example.com/op:2"
SENT = f"push --tls-verify=false {IMAGE}"
RECIPES = {
    "image": ("IMG", [f"--tls-verify=false --tag {IMAGE} ", f"push --quiet {IMAGE} docker-archive:/a.tar:{IMAGE}"]),
    "push": ("IMG", [SENT]),
    "bundle-build": ("BUNDLE_IMG", [f"--tls-verify=false --tag {IMAGE} "]),
    "bundle-push": ("BUNDLE_IMG", [SENT]),
}


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_builds_or_sends_the_image_that_its_variable_names(programs: Path, recipe: str) -> None:
    variable, calls = RECIPES[recipe]
    _program(programs, "buildah")
    tools = Path(sys.executable).parent
    words: list[str | Path] = [tools / "just", "--justfile", ROOT / "justfile", recipe, "--tls-verify=false"]
    words += ["--archive", "/a.tar"] if recipe == "image" else []
    environment = os.environ | {variable: IMAGE, "PATH": f"{programs}:{tools}:/usr/bin:/bin"}
    finished = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    made = (programs / "calls").read_text()
    assert all(call in made for call in calls), made
