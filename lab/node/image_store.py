"""The images on a node: what is loaded from archives, as no registry is reached."""

import subprocess
from pathlib import Path

from lab.kubectl import LabError
from lab.node import config
from lab.node.namespace import Namespaces

_TIMEOUT_S = 180.0
# The kubelet's, in containerd's words.
_NAMESPACE = "k8s.io"


def load(node: Namespaces, archive: Path) -> None:
    """Put the images of an archive (``docker save``, ``buildah push … docker-archive:``) on the node.

    Raises:
        LabError: it is no such archive.
    """
    # By its content, as its folder may lie behind the node's own /run or /var/lib.
    with archive.open("rb") as content:
        finished = subprocess.run(
            node.command(*ctr("images", "import", "-")),
            stdin=content,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    if finished.returncode != 0:
        raise LabError(f"{archive} was not loaded: {finished.stdout.strip()}")


def names(node: Namespaces) -> list[str]:
    """List the images that the node has, by their full names."""
    found = node.run(*ctr("images", "list", "--quiet"), timeout_s=_TIMEOUT_S).stdout.split()
    return [name for name in found if not name.startswith("sha256:")]


def name_by_digest(node: Namespaces, name: str) -> str:
    """Give an image that is there its name by digest as well, and return it: a kubelet pulls no such image anew."""
    [line] = node.run(*ctr("images", "list", f"name=={name}"), timeout_s=_TIMEOUT_S).stdout.splitlines()[1:]
    [digest] = [word for word in line.split() if word.startswith("sha256:")]
    named = f"{name.rpartition(':')[0]}@{digest}"
    tag(node, name, named)
    return named


def tag(node: Namespaces, name: str, other: str) -> None:
    """Give an image that is there another name as well."""
    node.run(*ctr("images", "tag", "--force", name, other), timeout_s=_TIMEOUT_S)


def runtime_answers(node: Namespaces) -> bool:
    """Report whether the container runtime runs already."""
    return node.run(*ctr("version"), check=False, timeout_s=_TIMEOUT_S).returncode == 0


def ctr(*arguments: str) -> list[str]:
    """A call of containerd's own client, to be run inside."""
    return ["ctr", f"--address={config.CONTAINERD_SOCKET}", f"--namespace={_NAMESPACE}", *arguments]
