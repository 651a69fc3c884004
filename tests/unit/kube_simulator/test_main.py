"""`python -m kube_simulator` as people run it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3]
DEADLINE_S = 60.0
LAST_LINE = "Ctrl-C ends it and removes everything.\n"


def start(tmp_path: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "kube_simulator", *arguments],
        cwd=PROJECT,
        env={**os.environ, "TMPDIR": str(tmp_path), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_how_to_use_it_and_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    kubeconfig = tmp_path / "new" / "kubeconfig"
    with start(tmp_path, "--kubeconfig", str(kubeconfig), "--ready-after", "0.5", "--no-memcached") as process:
        assert process.stdout is not None
        printed = ""
        while not printed.endswith(LAST_LINE):
            line = process.stdout.readline()
            assert line, f"it ended: {printed}"
            printed += line
        assert kubeconfig.stat().st_mode & 0o777 == 0o600
        server = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        assert f"A simulated Kubernetes API is ready at {server};" in printed
        assert "become ready after 0.5 s" in printed
        assert "real processes" not in printed
        assert f"export KUBECONFIG={kubeconfig}\n" in printed
        process.send_signal(number)
        farewell, complaints = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, farewell, complaints) == (0, "simulator: stopped\n", "")
    assert not kubeconfig.exists()
    assert list(tmp_path.glob("memcached-operator-simulator-*/*/")) == []


def test_a_file_that_is_there_is_nobody_s_to_overwrite(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("the only way to a cluster")
    with start(tmp_path, "--kubeconfig", str(kubeconfig), "--no-memcached") as process:
        _, complaints = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 1
    assert complaints.startswith("simulator: ")
    assert str(kubeconfig) in complaints
    assert kubeconfig.read_text() == "the only way to a cluster"
    assert list(tmp_path.glob("memcached-operator-simulator-*/*/")) == []


def test_without_the_extra_it_names_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['cryptography'] = None\n")
    with start(tmp_path, PYTHONPATH=str(tmp_path)) as process:
        _, complaints = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 1
    assert complaints.startswith("simulator: it needs cryptography, which is not installed: ")
    assert complaints.endswith("pip install 'memcached-operator[demo]'\n")
