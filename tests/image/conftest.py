"""The images, built and unpacked."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.cache import BuildError
from lab.image import images
from lab.image.builders import ImageError
from tests.cluster import REQUIRED_VARIABLE
from tests.image.container import Image, unpack, why_not
from tests.integration.conftest import installed, kubectl

__all__ = ["installed", "kubectl"]  # fixtures

Unpack = Callable[[Callable[[], Path]], Image]


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Unpack:
    """Unpacks the archive that a function makes; where it cannot, or no container runs, tests are skipped."""

    def unpack_or_skip(make: Callable[[], Path]) -> Image:
        try:
            if (wrong := why_not()) is not None:
                raise ImageError(wrong)
            return unpack(make(), tmp_path_factory.mktemp("image"))
        except (BuildError, ImageError) as error:
            if os.environ.get(REQUIRED_VARIABLE) or os.environ.get("CI"):
                raise
            pytest.skip(str(error))

    return unpack_or_skip


@pytest.fixture(scope="session")
def image(unpacked: Unpack) -> Image:
    """The operator's image, built from the Dockerfile."""
    return unpacked(images.operator_image)
