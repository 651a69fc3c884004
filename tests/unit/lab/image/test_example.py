from __future__ import annotations

import re

from lab.image import example, images


def test_the_image_is_called_as_the_manifests_call_it() -> None:
    assert example.name() == "localhost/my-first-operator:0.1.0"


def test_the_example_s_image_is_built_on_the_operator_s() -> None:
    dockerfile = (example.FOLDER / "Dockerfile").read_text()
    assert re.findall(r"^ARG BASE_IMAGE=(\S+)$", dockerfile, re.MULTILINE) == [images.IMAGE]
