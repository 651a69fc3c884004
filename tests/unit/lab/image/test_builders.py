from pathlib import Path

import pytest

from lab.image import builders
from lab.image.builders import PROGRAMS, Builder, ImageError


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


def test_the_order_is_the_caller_s_and_the_variable_decides(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROGRAMS:
        _program(programs, name)
    assert builders.find(("podman", "docker")).name == "podman"
    monkeypatch.setenv(builders.VARIABLE, "docker")
    assert builders.find(("podman", "docker")).name == "docker"
    monkeypatch.setenv(builders.VARIABLE, "kaniko")
    with pytest.raises(ImageError, match="IMAGE_BUILDER='kaniko' is none of docker, podman, buildah"):
        builders.find()


def test_where_none_works_each_is_named_with_its_reason(programs: Path) -> None:
    with pytest.raises(ImageError, match=r"docker: no daemon; podman: no daemon; buildah: no daemon\): install one of"):
        builders.find()


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


def test_what_a_builder_says_of_a_failure_is_in_the_message(programs: Path) -> None:
    _program(programs, "podman", fails_at="save pull load image build")
    podman = Builder("podman")
    assert podman.pull("op:1") == "no daemon"
    with pytest.raises(ImageError, match=r"podman cannot save op:1: no daemon"):
        podman.save("op:1", Path("/a.tar"))
    with pytest.raises(ImageError, match=r"podman build .* exit code 1, see above"):
        podman.build(Path("/src"), "op:1", arguments={}, secrets={})
