"""A release on a registry, made once for all tests here; and where it is tried."""

from __future__ import annotations

import os
import subprocess
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


_USER, _PASSWORD = "maintainer", "of a test"
_BCRYPT = "$2b$04$HDCmEKvz7gbOLeVGDHv2/OevlYLZLSx37AOwdd89581g6SjqSN65e"
"""Of the password."""


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
            with Registry(work / "registry", accounts=f"{_USER}:{_BCRYPT}\n") as registry:
                made = _made_after_a_login(registry, key, work)
            with Registry(work / "registry", registry.port) as registry:  # strangers need no login
                yield Published(registry, work / "registry", made, key.public)
    except (BuildError, ImageError) as error:
        if os.environ.get(REQUIRED_VARIABLE) or os.environ.get("CI"):
            raise
        pytest.skip(f"no release: {error}")


def _made_after_a_login(registry: Registry, key: Key, work: Path) -> Release:
    """Make the release as docs/releasing.md has it: by one login, in the file that all programs read."""
    (work / "docker").mkdir()
    login = ["buildah", "login", "--authfile", str(work / "docker" / "config.json"), "--tls-verify=false"]
    subprocess.run([*login, "--username", _USER, "--password", _PASSWORD, registry.host], check=True)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("DOCKER_CONFIG", str(work / "docker"))
        return make(registry.host, key, work / "files")
