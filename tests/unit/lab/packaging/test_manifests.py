"""The install files with another image, and the alerts with another address."""

from __future__ import annotations

import re

import pytest

from lab.packaging.manifests import IMAGE, INSTALL, PROJECT, RULES, ManifestError, main, with_image, with_runbooks


@pytest.mark.parametrize("name", ["namespaced", "cluster"])
def test_another_image_takes_the_place_of_the_operators_and_of_nothing_else(name: str) -> None:
    text = (INSTALL / f"{name}.yaml").read_text()
    other = "registry.example.com/caches/operator@sha256:" + 64 * "a"
    changed = with_image(text, other)
    differing = [pair for pair in zip(text.splitlines(), changed.splitlines(), strict=True) if pair[0] != pair[1]]
    assert [new.strip() for _, new in differing] == [f"image: {other}"]


@pytest.mark.parametrize("image", ["", " ", "two words", "a\nb"])
def test_an_image_that_is_no_single_word_is_refused(image: str) -> None:
    with pytest.raises(ManifestError, match="give one image"):
        with_image(f"image: {IMAGE}\n", image)


def test_the_links_of_all_alerts_follow_the_address_of_the_documentation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROJECT["urls"], "Documentation", "https://docs.example.org/mcd")
    changed = with_runbooks(RULES.read_text())
    assert set(re.findall(r"^ +runbook_url: (.+)/runbooks", changed, re.MULTILINE)) == {"https://docs.example.org/mcd"}


def test_what_is_wrong_is_said_and_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["print", "crds", "--image", "other:1"]) == 1
    captured = capsys.readouterr()
    assert (captured.out, captured.err.startswith("manifests: ")) == ("", True)
