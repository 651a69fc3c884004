from importlib import metadata

import pytest

from lab.cache import BuildError
from lab.image import debian
from lab.image.bases import StandIn, recipe_of


def test_another_version_of_a_library_is_another_image(monkeypatch: pytest.MonkeyPatch) -> None:
    # dpkg says the architecture, and not every machine has it.
    monkeypatch.setattr(debian, "architecture", lambda: "amd64")
    without = StandIn(packages=("libc6",))
    has = StandIn(packages=("libc6",), libraries=("pymemcache",))
    recipe = recipe_of(has)
    assert recipe not in ("", recipe_of(without))
    monkeypatch.setattr(metadata.Distribution, "version", "0.0.1")
    assert recipe_of(has) != recipe


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian, "architecture", lambda: "amd64")
    with pytest.raises(BuildError, match="no-such-library is not installed beside this Python"):
        recipe_of(StandIn(packages=(), libraries=("no-such-library",)))
