"""Which releases of Python there are besides the one that runs the tests."""

from __future__ import annotations

import tomllib

from lab import pythons
from lab.image import bases


def test_the_releases_are_those_that_the_package_is_for_and_the_image_s_is_among_them() -> None:
    project = tomllib.loads((pythons.ROOT / "pyproject.toml").read_text())["project"]
    language = "Programming Language :: Python :: 3."
    promised = [f"3.{each.removeprefix(language)}" for each in project["classifiers"] if each.startswith(language)]
    assert promised == [project["requires-python"].removeprefix(">="), *pythons.RELEASES]
    assert pythons.image_release() in pythons.RELEASES
    assert bases.PYTHON.entrypoint == (f"/usr/bin/python{pythons.image_release()}",)
