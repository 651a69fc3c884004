"""The Operator Lifecycle Manager on a node, with a catalog of this project's bundles.

OLM's controllers and the catalog's server run in the node's namespaces as its other programs do, not in pods; only what
unpacks a bundle runs in one. Its images are made of the programs that OLM's own have.
"""

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lab.image import archives, bases, debian
from lab.image.images import images_dir
from lab.node import image_store
from lab.node.node import Node
from lab.packaging import catalog
from lab.packaging.catalog import Release
from lab.process import Program
from lab.programs import olm

NAMESPACE = "olm"
CATALOG = "lab"

_PORT = 50051
_UTIL, _OPM = "localhost/lab-olm:1", "localhost/lab-opm:1"
# OLM's pods run as no root, and its images name no other user.
_USER = "1001"
_CATALOG_SOURCE = {
    "apiVersion": "operators.coreos.com/v1alpha1",
    "kind": "CatalogSource",
    "metadata": {"name": CATALOG, "namespace": NAMESPACE},
}


class Olm:
    """OLM beside one node; a context manager. Blocking, as the node is.

    Raises:
        BuildError: from the constructor, when its programs are not built and cannot be.
        LabError: from every method, when a program does not do its part.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._bin, self._validators = olm.controllers(), olm.validators()
        self._folder = Path(tempfile.mkdtemp(prefix="olm-", dir=node.directory))
        self._server = self._serve(self._folder / "no-catalog-yet")
        util, opm = self._load_programs()
        flags = [f"--namespace={NAMESPACE}", "--writeStatusName="]
        unpacking = [f"--util-image={util}", f"--opmImage={opm}", f"--configmapServerImage={opm}"]
        self._controllers = [
            self._program("olm", [str(self._bin / "olm"), *flags]),
            self._program("catalog", [str(self._bin / "catalog"), *flags, *unpacking]),
        ]

    def __enter__(self) -> "Olm":
        node = self._node
        node.kubectl("create", "namespace", NAMESPACE)
        node.kubectl("apply", "--server-side", "-f", str(self._bin / "crds"))
        node.kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", str(self._bin / "crds"))
        config = {"apiVersion": "operators.coreos.com/v1", "kind": "OLMConfig", "metadata": {"name": "cluster"}}
        node.kubectl("apply", "-f", "-", input=json.dumps(config))
        for controller in self._controllers:
            controller.start()
        return self

    def __exit__(self, *_: object) -> None:
        # Its objects have finalizers, which it takes away itself.
        self._node.kubectl("delete", "--ignore-not-found", "-f", str(self._bin / "crds"))
        for program in (*self._controllers, self._server):
            program.kill()
        self._node.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found")

    @property
    def address(self) -> str:
        """Address of the catalog, as a CatalogSource has it."""
        return f"{self._node.address}:{_PORT}"

    def load_bundle(self, folder: Path, name: str) -> Release:
        """Put the image of a bundle's folder on the node, and return what a catalog says of it.

        Args:
            folder: holds `manifests/` and `metadata/`.
            name: the image's, with a tag.
        """
        return Release(folder, self._load(folder, name))

    def publish(self, releases: Sequence[Release]) -> None:
        """Serve a catalog of these releases, oldest first, in the place of the one before."""
        folder = Path(tempfile.mkdtemp(prefix="catalog-", dir=self._folder))
        catalog.write(releases, folder)
        self._server.kill()
        self._server = self._serve(folder)
        self._server.start()
        # A changed source is looked at at once.
        spec = {"sourceType": "grpc", "address": self.address, "displayName": folder.name}
        self._node.kubectl("apply", "-f", "-", input=json.dumps({**_CATALOG_SOURCE, "spec": spec}))

    def logs(self) -> str:
        """The last lines of its programs' logs, for a message."""
        return "\n".join(f"{program.name}:\n{program.log_tail()}" for program in (*self._controllers, self._server))

    def _load_programs(self) -> tuple[str, str]:
        with tempfile.TemporaryDirectory() as temporary:
            util, opm = Path(temporary) / "util", Path(temporary) / "opm"
            shutil.copytree(bases.unpacked(bases.BUSYBOX, images_dir()), util, symlinks=True)
            (opm / "bin").mkdir(parents=True)
            shutil.copy2(self._bin / "cpb", util / "bin")
            shutil.copy2(self._validators / "opm", opm / "bin")
            return self._load(util, _UTIL), self._load(opm, _OPM)

    def _load(self, root: Path, name: str) -> str:
        """Put a folder as an image on the node; its name by digest, as OLM pulls any other."""
        config = archives.Config(
            architecture=debian.architecture(), command=("opm",), user=_USER, environment={"PATH": "/bin"}
        )
        with tempfile.TemporaryDirectory() as temporary:
            archive = Path(temporary) / "image.tar"
            archives.write(root, archive, name, config)
            self._node.load_image(archive)
        return image_store.name_by_digest(self._node.namespaces, name)

    def _serve(self, folder: Path) -> Program:
        flags = [f"--port={_PORT}", f"--termination-log={folder}.end", f"--cache-dir={folder}.cache"]
        command = [str(self._validators / "opm"), "serve", str(folder), *flags, "--cache-enforce-integrity=false"]
        return self._program("opm", command)

    def _program(self, name: str, command: Sequence[str]) -> Program:
        environment = ["env", f"KUBECONFIG={self._node.kubeconfig_path}"]
        return self._node.namespaces.program(name, [*environment, *command], self._folder / f"{name}.log")
