"""The plugin of kubectl as one file: what is in it, that it runs from nothing, and what krew is told of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lab.packaging.plugin import PROJECT, REQUIRED, krew_manifest, write
from memcached_operator import __version__

LOCK = (PROJECT / "requirements-image.lock").read_text()


def test_what_the_plugin_loads_is_required() -> None:
    program = "import sys, kubectl_memcached.flush, kubectl_memcached.describe, yaml; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    locked = {each.replace("-", "_") for each in re.findall(r"^([\w-]+)==", LOCK, re.MULTILINE)}
    modules = {each.partition(".")[0] for each in loaded}
    assert (locked & modules) - {each.replace("-", "_") for each in REQUIRED} == set()


def test_krew_is_told_where_the_archive_is() -> None:
    spec = krew_manifest("https://example.com/x.tar.gz", "abc")["spec"]
    assert spec["version"] == f"v{__version__}"
    (platform,) = spec["platforms"]
    assert (platform["uri"], platform["sha256"], platform["bin"]) == (
        "https://example.com/x.tar.gz",
        "abc",
        "kubectl-memcached",
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_file_runs_with_nothing_but_python(tmp_path: Path) -> None:
    program = write(tmp_path / "made", "https://example.com", ["{}.{}".format(*sys.version_info)])
    environ = {"HOME": str(tmp_path), "PATH": os.defpath}
    python = os.path.realpath(sys.executable)
    for _ in range(2):
        ran = subprocess.run([python, "-I", program, "list"], env=environ, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout) == (1, "")
        assert "no API server is configured" in ran.stderr
    (unpacked,) = (tmp_path / ".cache" / "kubectl-memcached").iterdir()
    assert {each.name for each in unpacked.iterdir()} == {"shared", "{}.{}".format(*sys.version_info)}
