"""``python -m lab node`` keeps a node up for a person, ``python -m lab load`` puts images on it."""

import os
from collections.abc import Sequence
from pathlib import Path

from lab.foreground import run_until_interrupted
from lab.image import builders, images
from lab.kubectl import LabError
from lab.node import image_store, node
from lab.node.namespace import Namespaces
from lab.programs import kubernetes

# What the install files name, so that they work as they are.
MEMCACHED_IMAGE = "docker.io/library/memcached:1.6.45-alpine"


def up(kubeconfig: Path, *, bare: bool) -> int:
    """Start a node, say how to use it, and stay until a signal or the end of the parent; the exit code.

    Args:
        kubeconfig: where to put the administrator's; removed at the end.
        bare: without the operator's image and memcached's.
    """
    node.check_machine()
    kubernetes.build()  # long, and to be interrupted as usual
    archives = [] if bare else [_operator_image(), images.memcached_image(MEMCACHED_IMAGE)]

    def started(running: node.Node) -> str:
        for archive in archives:
            running.load_image(archive)
        mark = _mark(kubeconfig)
        mark.write_text(f"{running.namespaces.pid}\n")
        have = "no image of the operator's" if bare else f"the images {images.IMAGE} and\n{MEMCACHED_IMAGE}"
        return (
            f"Kubernetes is ready at {running.server}, with one node.\n"
            f"State and logs are in {running.directory}.\n"
            f"The node has {have}.\n"
            "No registry is reached: other images are loaded.\n"
            "\n"
            "In another terminal:\n"
            f"  export KUBECONFIG={kubeconfig}\n"
            "  ./dev kubectl apply --server-side -f manifests/install/cluster.yaml\n"
            "  ./dev kubectl apply -f manifests/samples/cache_v1alpha1_memcached_cr.yaml\n"
            "  ./dev kubectl get memcached,pods     # or your own kubectl\n"
            "  sudo ./dev load               # the operator's image of this checkout\n"
            "  sudo ./dev load FILE          # any image, as `docker save` writes it\n"
            "\n"
            f"This machine reaches pods ({running.addresses.pods})\n"
            f"and Services ({running.addresses.services}).\n"
            "Ctrl-C ends it and removes everything."
        )

    try:
        return run_until_interrupted(node.Node, kubeconfig, started)
    finally:
        _mark(kubeconfig).unlink(missing_ok=True)


def load(kubeconfig: Path, archives: Sequence[Path]) -> int:
    """Put archives on the node that `up` keeps, or the operator's image as this checkout makes it; the exit code.

    Raises:
        LabError: there is no such node, or a file is no archive.
    """
    running = _running(kubeconfig)
    before = set(image_store.names(running))
    for archive in archives or [_operator_image()]:
        image_store.load(running, archive)
    print("\n".join(sorted(set(image_store.names(running)) - before) or ["the node has had all of them by name"]))
    return 0


def kubeconfig_of_node(default: Path) -> Path:
    """Return KUBECONFIG, if `up` keeps that one, as in a terminal that followed its words; else the default.

    Other clusters' may stand in KUBECONFIG, and a node is up all the same.
    """
    named = os.environ.get("KUBECONFIG")
    return Path(named) if named and _mark(Path(named)).exists() else default


def _running(kubeconfig: Path) -> Namespaces:
    try:
        pid = int(_mark(kubeconfig).read_text())
        # Of a node that was killed the mark is still there, and its number may be somebody else's.
        if b"lab.node.init" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return Namespaces(pid)
    except FileNotFoundError:
        pass
    raise LabError("no node of this checkout is up: start one with sudo ./dev node")


def _operator_image() -> Path:
    try:
        return images.operator_image()
    except builders.ImageError as error:
        raise LabError(str(error)) from None


def _mark(kubeconfig: Path) -> Path:
    """Return the file in which `up` records which process to enter."""
    return kubeconfig.with_name(f"{kubeconfig.name}.node")
