"""The operators that can be measured: how each is built, and how it is started with in-cluster authentication."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.process import free_port
from lab.cache import BuildError, cache_dir, refuse_builds
from lab.programs.go import find_go, go_version

PEERS = Path(__file__).resolve().parent / "peers"
_GO_MODULE = PEERS / "controller_runtime"
_KOPF_LOCK = PEERS / "requirements-kopf.lock"
GREETING_LOCK = PEERS / "requirements-greeting.lock"


@dataclass(frozen=True, slots=True)
class Command:
    """What to run: arguments, and variables besides those by which a pod finds the API server.

    Attributes:
        metrics_url: where it shows what it counts, on a port that is free for now; None if its metrics are off.
    """

    arguments: Sequence[str]
    environment: Mapping[str, str]
    metrics_url: str | None = None


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator under test.

    Attributes:
        name: as `--operator` takes it.
        prepare: builds or installs it if need be (minutes the first time), and returns how to start it with the
            service account in a given folder. Told whether it is to make Services and disruption budgets, too; ours
            does as each Memcached says.
    """

    name: str
    prepare: Callable[[bool], Callable[[Path], Command]]


def _ours(_extras: bool, workers: int | None = None) -> Callable[[Path], Command]:
    def command(service_account_dir: Path) -> Command:
        flags = ["--service-account-dir", str(service_account_dir), "-A", "--log-level", "warning"]
        # Counted and served as in a cluster, on ports that are free. That of the metrics is to be known beforehand.
        metrics = f"127.0.0.1:{free_port()}"
        flags += ["--health-probe-bind-address=127.0.0.1:0", f"--metrics-bind-address={metrics}"]
        # The addresses of the pods are nobody's; `benchmarks.server_stats` measures what queries of servers cost.
        flags += ["--server-stats-interval-s=0"]
        flags += [f"--workers={workers}"] if workers else []
        return Command([sys.executable, "-m", "memcached_operator", "run", *flags], {}, f"http://{metrics}/metrics")

    return command


def _go(extras: bool) -> Callable[[Path], Command]:
    binary = go_peer()
    flags = ["--extras"] if extras else []
    return lambda folder: Command([str(binary), "--service-account-dir", str(folder), *flags], {})


def go_peer(package: str = ".") -> Path:
    """A program of the Go module, built once for each state of its sources and kept in the user's cache.

    Raises:
        BuildError: it cannot be compiled, or there is no Go toolchain and none can be had.
    """
    folder = _GO_MODULE / package
    sources = sorted(
        {
            *(path for path in folder.iterdir() if path.suffix in {".go", ".json"}),
            *(path for path in _GO_MODULE.iterdir() if path.suffix in {".mod", ".sum"}),
        }
    )
    name = "-".join(["controller-runtime", *folder.relative_to(_GO_MODULE).parts])
    binary = _cache_dir() / f"{name}-{_digest(sources)}"
    if not binary.exists():
        refuse_builds(name)
        _say(f"building {name}")
        go = find_go(go_version((_GO_MODULE / "go.mod").read_text()))
        environment = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
        flags = ["-trimpath", "-buildvcs=false", "-ldflags", "-s -w"]
        new = binary.with_name(f"{binary.name}.{os.getpid()}")  # two benchmarks at once do not see half a binary
        _run([go, "build", *flags, "-o", str(new), f"./{package}"], cwd=_GO_MODULE, environment=environment)
        new.replace(binary)
    return binary


def kopf_environment(lock: Path = _KOPF_LOCK) -> Path:
    """A virtual environment with kopf, installed once for each state of its lock file; its `python`.

    Raises:
        BuildError: it cannot be installed.
    """
    name = lock.stem.removeprefix("requirements-")
    venv = _cache_dir() / f"{name}-{_digest([lock])}-{sys.version_info.major}.{sys.version_info.minor}"
    done = venv / "installed"
    if not done.exists():
        refuse_builds(f"what {name} needs")
        _say(f"installing what {name} needs")
        pip = [str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        _run([sys.executable, "-m", "venv", "--clear", str(venv)])
        _run([*pip, "--require-hashes", "--only-binary", ":all:", "-r", str(lock)])
        done.touch()
    return venv / "bin" / "python"


def greetings() -> None:
    """Prepare the examples of docs/comparison.md. Raises BuildError: one of them cannot be had."""
    go_peer("greeting")
    kopf_environment(GREETING_LOCK)


def _kopf(extras: bool) -> Callable[[Path], Command]:
    python = kopf_environment()

    def command(service_account_dir: Path) -> Command:
        flags = ["--all-namespaces", "--standalone", "--quiet"]
        arguments = [str(python), "-m", "kopf", "run", *flags, str(PEERS / "kopf_operator.py")]
        environment = {"SERVICE_ACCOUNT_DIR": str(service_account_dir)} | ({"EXTRAS": "1"} if extras else {})
        return Command(arguments, environment)

    return command


OPERATORS = {
    each.name: each
    for each in (
        Operator("ours", _ours),
        Operator("go", _go),
        Operator("kopf", _kopf),
        *(Operator(f"ours-{workers}", partial(_ours, workers=workers)) for workers in (8, 16)),
    )
}
PEERS_OF_OURS = ("ours", "go", "kopf")
"""What `--peers` measures: those that can be compared as they are, each with its own defaults."""


def _cache_dir() -> Path:
    directory = cache_dir().parent / "benchmarks"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _digest(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.name}:{len(content)}:".encode() + content)
    return digest.hexdigest()[:12]


def _run(arguments: Sequence[str], cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> None:
    finished = subprocess.run(arguments, cwd=cwd, env=environment, stdout=sys.stderr, check=False)
    if finished.returncode != 0:
        raise BuildError(f"exit code {finished.returncode}, see above: {' '.join(arguments)}")


def _say(message: str) -> None:
    print(f"bench: {message}", file=sys.stderr, flush=True)
