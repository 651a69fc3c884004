"""prometheus-operator, built from its Go module as the control plane is, and its CustomResourceDefinitions."""

import shutil
from pathlib import Path

from lab.cache import cache_dir, digest_of, kept
from lab.control_plane import ControlPlane
from lab.process import Program
from lab.programs.go import MODULES, compile_module, required_version, source_of

_MODULE = "github.com/prometheus-operator/prometheus-operator"
_FOLDER = MODULES / "prometheus_operator"
_FILES = ("go.mod", "go.sum")
_CRDS = "example/prometheus-operator-crd"
# Alertmanagers and Thanos rulers are of no use here, and their controllers leave themselves out without them.
_KINDS = ("podmonitors", "probes", "prometheuses", "prometheusrules", "scrapeconfigs", "servicemonitors")


def build() -> Path:
    """The folder with the program and its definitions; built first where that was not done yet.

    Raises:
        BuildError: no Go toolchain could be had, or the compiler failed.
    """
    target = _folder()
    version = required_version((_FOLDER / "go.mod").read_text(), _MODULE)
    return kept(target, f"prometheus-operator {version}, about 2 minutes on 2 cores", _fill)


def definitions() -> list[Path]:
    """The files of the CustomResourceDefinitions of what a Prometheus can be told. Raises BuildError: see `build`."""
    return [build() / "crds" / f"monitoring.coreos.com_{kind}.yaml" for kind in _KINDS]


def program(cluster: ControlPlane, namespaces: list[str]) -> Program:
    """prometheus-operator for a control plane, as its administrator; the caller starts and ends it.

    It makes of each Prometheus object a StatefulSet and the Prometheus' configuration; without a kubelet nothing runs.

    Args:
        namespaces: all that it looks at.

    Raises:
        BuildError: see `build`.
    """
    pki = cluster.directory / "pki"
    return Program(
        [
            str(build() / "prometheus-operator"),
            f"--apiserver={cluster.server}",
            f"--ca-file={cluster.ca_path}",
            f"--cert-file={pki / 'lab-admin.crt'}",
            f"--key-file={pki / 'lab-admin.key'}",
            f"--namespaces={','.join(namespaces)}",
            "--web.listen-address=127.0.0.1:0",
        ],
        cluster.directory / "prometheus-operator.log",
    )


def _folder() -> Path:
    files = {name: (_FOLDER / name).read_bytes() for name in _FILES}
    return cache_dir() / f"prometheus-operator-{required_version(files['go.mod'].decode(), _MODULE)}-{digest_of(files)}"


def _fill(folder: Path) -> None:
    go_mod = (_FOLDER / "go.mod").read_text()
    stamps = {"github.com/prometheus/common/version.Version": required_version(go_mod, _MODULE).removeprefix("v")}
    compile_module(_FOLDER, folder / "prometheus-operator", package=f"{_MODULE}/cmd/operator", stamps=stamps)
    (folder / "crds").mkdir()
    for definition in (source_of(_FOLDER, _MODULE) / _CRDS).glob("*.yaml"):
        shutil.copyfile(definition, folder / "crds" / definition.name)
