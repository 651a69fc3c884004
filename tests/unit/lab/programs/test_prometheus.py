from __future__ import annotations

import pytest

from lab.programs import prometheus


@pytest.mark.parametrize(("version", "release"), [("v0.312.0", "3.12.0"), ("v0.305.1", "3.5.1")])
def test_a_version_of_the_module_tells_the_release(version: str, release: str) -> None:
    assert prometheus.release(version) == release
