"""The install files with another image."""

from __future__ import annotations

import pytest

from lab.packaging.manifests import IMAGE, INSTALL, ManifestError, main, with_image


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


def test_what_is_wrong_is_said_and_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["print", "crds", "--image", "other:1"]) == 1
    captured = capsys.readouterr()
    assert (captured.out, captured.err.startswith("manifests: ")) == ("", True)
