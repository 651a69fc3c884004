import re

import pytest

from lab import ROOT
from lab.image.images import base_images, public_address
from memcached_operator import __version__


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://user:secret@git.example.com/team/operator.git\n", "https://git.example.com/team/operator"),
        ("http://git.example.com:8080/operator", "https://git.example.com:8080/operator"),
        ("git@git.example.com:team/operator.git", ""),
        ("/home/me/operator", ""),
        ("", ""),
    ],
)
def test_only_an_address_on_the_web_becomes_a_label_and_never_a_password(remote: str, address: str) -> None:
    assert public_address(remote) == address


def test_the_dockerfile_names_its_bases_by_digest() -> None:
    bases = base_images((ROOT / "Dockerfile").read_text())
    assert set(bases) == {"BUILD_IMAGE", "BASE_IMAGE"}
    assert all(re.search(r"^[\w.-]+\.[a-z]+/[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}$", name) for name in bases.values())


def test_the_dockerfile_s_version_is_the_project_s() -> None:
    assert f"ARG VERSION={__version__}\n" in (ROOT / "Dockerfile").read_text()


def test_the_dockerfile_needs_nothing_that_buildah_1_28_does_not_know() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert not re.search(r"<<-?\s*['\"]?\w", text)  # here-documents
    assert not re.search(r"^(COPY|ADD) .*--(link|parents|checksum|exclude)", text, re.MULTILINE)
    assert "# syntax=" not in text  # fetched from a registry


def _pins(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==([^\s;\\]+)", (ROOT / lock).read_text(), re.MULTILINE))


def test_the_image_has_the_versions_that_are_tested() -> None:
    tested, shipped = _pins("requirements.lock"), _pins("requirements-image.lock")
    assert shipped.items() <= tested.items()


def test_nothing_gets_through_dockerignore_but_what_it_names() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert lines[0] == "*"
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert {line.removeprefix("!") for line in lines if line.startswith("!")} == set(" ".join(copied).split())
