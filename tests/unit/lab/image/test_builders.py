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


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_one_that_works_is_taken(programs: Path, name: str) -> None:
    _program(programs, name)
    assert builders.find().name == name


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


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("docker", "1 docker build --build-arg A=b --secret id=pip-conf,src=/conf --tag op:1 /src"),
        (
            "podman",
            "1 podman build --layers=true --pull=missing --build-arg A=b"
            " --secret id=pip-conf,src=/conf --tag op:1 /src",
        ),
        (
            "buildah",
            "1 buildah build --isolation chroot --layers=true --pull=false --build-arg A=b"
            " --secret id=pip-conf,src=/conf --tag op:1 /src",
        ),
    ],
)
def test_a_build_gives_arguments_secrets_and_name_in_each_builder_s_words(programs: Path, name: str, call: str) -> None:
    _program(programs, name)
    Builder(name).build(Path("/src"), "op:1", arguments={"A": "b"}, secrets={"pip-conf": Path("/conf")})
    assert _last_call(programs) == call


def test_options_of_the_builder_s_own_are_handed_over(programs: Path) -> None:
    _program(programs, "buildah")
    Builder("buildah").build(Path("/src"), "op:1", arguments={}, secrets={}, more=["--platform=linux/arm64"])
    assert "--platform=linux/arm64 --tag op:1" in _last_call(programs)
    Builder("buildah").push("registry.example.com/op:1", ["--tls-verify=false"])
    assert _last_call(programs) == "1 buildah push --tls-verify=false registry.example.com/op:1"


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("docker", "docker save --output /a.tar op:1"),
        ("podman", "podman save --quiet --format docker-archive --output /a.tar op:1"),
        ("buildah", "buildah push --quiet op:1 docker-archive:/a.tar:op:1"),
    ],
)
def test_an_image_is_saved_in_each_builder_s_words(programs: Path, name: str, call: str) -> None:
    _program(programs, name)
    Builder(name).save("op:1", Path("/a.tar"))
    assert _last_call(programs).endswith(call)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("docker", "docker load --input /a.tar"),
        ("podman", "podman load --input /a.tar"),
        ("buildah", "buildah pull --quiet docker-archive:/a.tar"),
    ],
)
def test_an_archive_is_loaded_in_each_builder_s_words(programs: Path, name: str, call: str) -> None:
    _program(programs, name)
    Builder(name).load(Path("/a.tar"))
    assert _last_call(programs).endswith(call)


def test_a_store_apart_is_named_in_every_call_and_docker_has_none(programs: Path, tmp_path: Path) -> None:
    _program(programs, "buildah")
    assert Builder("buildah").stored_in(tmp_path).has("op:1")
    assert f"--root {tmp_path}/store --runroot {tmp_path}/run inspect --type image op:1" in _last_call(programs)
    assert Builder("docker").stored_in(tmp_path) == Builder("docker")


def test_what_a_builder_says_of_a_failure_is_in_the_message(programs: Path) -> None:
    _program(programs, "podman", fails_at="save pull load image build")
    podman = Builder("podman")
    assert podman.pull("op:1") == "no daemon"
    assert not podman.has("op:1")
    with pytest.raises(ImageError, match=r"podman cannot save op:1: no daemon"):
        podman.save("op:1", Path("/a.tar"))
    with pytest.raises(ImageError, match=r"podman does not take /a\.tar: no daemon"):
        podman.load(Path("/a.tar"))
    with pytest.raises(ImageError, match=r"podman build .* exit code 1, see above"):
        podman.build(Path("/src"), "op:1", arguments={}, secrets={})
