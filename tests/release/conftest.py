"""A release on a registry, made once for all tests here; and where it is tried."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.cache import BuildError
from lab.image.builders import ImageError
from lab.release import stranger
from lab.release.registry import Registry
from lab.release.release import NAME, Release, make, why_not
from lab.release.signatures import Key
from memcached_operator import __version__
from tests.cluster import REQUIRED_VARIABLE
from tests.e2e.conftest import node, real_machine
from tests.integration.conftest import installed, kubectl

__all__ = ["installed", "kubectl", "node", "real_machine"]  # fixtures


@dataclass(frozen=True)
class Published:
    """A release on its registry, and the key's public half, which a stranger has from elsewhere."""

    registry: Registry
    storage: Path
    release: Release
    public: Path

    def look(
        self, work: Path, *, host: str = "", public: Path | None = None, files: Path | None = None
    ) -> stranger.Looked:
        """Look at it, or at what somebody has put in the place of a part of it."""
        files, public = files or self.release.folder, public or self.public
        return stranger.look(host or self.registry.host, NAME, __version__, files, public, work)


@pytest.fixture(scope="session")
def published() -> Iterator[Published]:
    """A release of this commit; where the machine cannot make one, tests are skipped."""
    try:
        if (wrong := why_not()) is not None:
            raise ImageError(wrong)
        with tempfile.TemporaryDirectory(prefix="release-test-") as temporary:
            work = Path(temporary)
            (work / "key").mkdir()
            key = Key(work / "key", "of a test").make()
            with Registry(work / "registry") as registry:
                made = make(registry.host, key, work / "files")
                yield Published(registry, work / "registry", made, key.public)
    except (BuildError, ImageError) as error:
        if os.environ.get(REQUIRED_VARIABLE) or os.environ.get("CI"):
            raise
        pytest.skip(f"no release: {error}")
