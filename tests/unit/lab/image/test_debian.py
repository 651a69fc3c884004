from pathlib import Path

import pytest

from lab.cache import BuildError
from lab.image import debian
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


def test_without_debian_s_tools_it_says_what_else_can_be_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match=r"there is no dpkg on this machine: .* registry can be reached"):
        debian.fetched(["libc6"], tmp_path)
