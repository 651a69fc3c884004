from pathlib import Path

import pytest

from lab.cache import BuildError
from lab.image import bases, debian
from lab.image.debian import Source, sources_of

MACHINE = """\
http://mirror.example.com/debian/ bookworm Debian
http://mirror.example.com/debian/ bookworm-updates Debian
http://mirror.example.com/debian-security/ bookworm-security Debian
http://mirror.example.com/debian/ bookworm-backports Debian Backports
https://packages.example.com/apt cloud-bookworm example
"""


def test_the_sources_are_the_machine_s_own_with_another_release() -> None:
    assert sources_of(MACHINE, "trixie") == [
        Source("http://mirror.example.com/debian/", "trixie"),
        Source("http://mirror.example.com/debian/", "trixie-updates"),
        Source("http://mirror.example.com/debian-security/", "trixie-security"),
    ]


def test_unstable_has_one_part_alone() -> None:
    assert sources_of(MACHINE, "sid") == [Source("http://mirror.example.com/debian/", "sid")]


def test_a_source_that_several_architectures_share_is_one() -> None:
    line = "http://mirror.example.com/debian/ trixie Debian\n"
    assert sources_of(line * 2, "trixie") == [Source("http://mirror.example.com/debian/", "trixie")]


def test_without_debian_s_tools_it_says_what_else_can_be_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match=r"there is no dpkg on this machine: .* registry can be reached"):
        debian.fetched(["libc6"], tmp_path)


def test_a_package_that_was_not_fetched_is_named(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="0 packages named libc6"):
        debian.unpack(tmp_path, ["libc6"], tmp_path)


def test_the_stand_in_for_building_has_all_that_the_one_for_running_has() -> None:
    assert set(bases.PYTHON.packages) < set(bases.PYTHON_BUILD.packages)
    assert "python3-pip" not in bases.PYTHON.packages
