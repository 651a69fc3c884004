"""A release, from a commit to servers on a node, looked at as a stranger would."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab import ROOT
from lab.image import builders, images
from lab.node.node import Node
from lab.programs.go_tools import ToolError
from lab.programs.helm import helm
from lab.release import parts, stranger
from lab.release.registry import Registry
from lab.release.release import MACHINES, NAME, push_images
from lab.release.signatures import Key
from memcached_operator import __version__
from tests.e2e.node_cluster import MEMCACHED, OPERATOR, SAMPLE, SYSTEM, fresh_namespace
from tests.image.container import unpack
from tests.integration.conftest import ACCOUNT, ACCOUNT_NAMESPACE, memcached
from tests.kubectl_in_namespace import Kubectl
from tests.release.conftest import Published

# The first test makes the release.
pytestmark = pytest.mark.timeout(1500)


def test_a_stranger_finds_all_signed_and_what_is_in_the_images(published: Published, tmp_path: Path) -> None:
    found = published.look(tmp_path)
    assert (found.image, found.commit) == (published.release.image, parts.commit()[0])
    assert sorted(found.contents) == sorted(MACHINES)
    lock = (ROOT / "requirements-image.lock").read_text()
    for listed in found.contents.values():
        assert f"aiohttp=={listed['aiohttp']} " in lock
        assert listed["libc6"]
    assert f"# memcached-operator {__version__}\n" in (published.release.folder / "RELEASE_NOTES.md").read_text()


def test_the_same_commit_makes_the_same_images(published: Published) -> None:
    again = push_images(f"{published.registry.host}/again", parts.commit()[1])
    assert _digests(again) == _digests(published.release.by_machine)


def a_file_with_another_byte(published: Published, work: Path) -> None:
    file = _copied_files(published, work) / "cluster.yaml"
    file.write_bytes(_flipped(file.read_bytes()))
    published.look(work, files=file.parent)


def a_file_more(published: Published, work: Path) -> None:
    files = _copied_files(published, work)
    (files / "install.sh").write_text("true\n")
    published.look(work, files=files)


def another_key(published: Published, work: Path) -> None:
    (work / "key").mkdir()
    published.look(work, public=Key(work / "key", "other").make().public)


def a_chart_of_another_version(published: Published, work: Path) -> None:
    shutil.unpack_archive(published.release.folder / f"{NAME}-{__version__}.tgz", work)
    helm("package", str(work / NAME), "--version=9.9.9", f"--destination={work}")
    with _copied_registry(published, work) as registry:
        helm("push", str(work / f"{NAME}-9.9.9.tgz"), f"oci://{registry.host}/charts", "--plain-http")
        stranger.pulled_chart(registry.host, f"charts/{NAME}", "9.9.9", published.public, work, published.release.image)


def a_tag_that_was_moved(published: Published, work: Path) -> None:
    """By one who may push: the same images under another index."""
    with _copied_registry(published, work) as registry:
        _, manifest = stranger.manifest_of(registry.host, NAME, __version__)
        body = json.dumps(manifest | {"annotations": {"by": "another"}}).encode()
        address = f"http://{registry.host}/v2/{NAME}/manifests/{__version__}"
        type_ = {"Content-Type": manifest["mediaType"]}
        urllib.request.urlopen(urllib.request.Request(address, body, type_, method="PUT")).close()
        published.look(work, host=registry.host)


def another_layer(published: Published, work: Path) -> None:
    """The registry itself gives other bytes for a layer."""
    with _copied_registry(published, work) as registry:
        of_image = published.release.by_machine["amd64"].partition("@")[2]
        _, manifest = stranger.manifest_of(registry.host, NAME, of_image)
        digest = manifest["layers"][-1]["digest"].partition(":")[2]
        [blob] = registry.storage.glob(f"docker/registry/v2/blobs/sha256/*/{digest}/data")
        blob.write_bytes(_flipped(blob.read_bytes()))
        with _pulled(f"{registry.host}/{NAME}@{of_image}", work):
            pass


REFUSED: dict[Callable[[Published, Path], None], str] = {
    a_file_with_another_byte: "cluster.yaml: FAILED",
    a_file_more: "names other files than there are: .*install.sh",
    another_key: "invalid signature|no matching signatures|no matching attestations",
    a_chart_of_another_version: "no signatures found",
    a_tag_that_was_moved: "no signatures found",
    another_layer: "[Dd]igest did not match",
}
"""How each is told, by the program that refuses it."""


@pytest.mark.parametrize("tried", REFUSED, ids=lambda tried: str(tried.__name__))
def test_what_is_not_as_it_was_released_is_refused(
    published: Published, tmp_path: Path, tried: Callable[[Published, Path], None]
) -> None:
    with pytest.raises((stranger.Refused, ToolError, builders.ImageError), match=REFUSED[tried]):
        tried(published, tmp_path)


@pytest.mark.cluster("simulator")
def test_the_image_for_another_machine_does_its_work_emulated(
    published: Published, tmp_path: Path, kubectl: Kubectl
) -> None:
    with _pulled(published.release.by_machine["arm64"], tmp_path) as archive:
        image = unpack(archive, tmp_path / "image")
    assert image.python("import platform; print(platform.machine())").strip() == "aarch64"
    assert image.run("version").stdout == f"memcached-operator {__version__}\n"
    account_dir = kubectl.cluster.service_account_dir(ACCOUNT_NAMESPACE, ACCOUNT)
    arguments = ("--all-namespaces", "--metrics-bind-address=0", "--health-probe-bind-address=0")
    with image.start(*arguments, account_dir=account_dir, **kubectl.cluster.in_cluster_environment) as operator:
        kubectl.apply(memcached("emulated", 2))
        try:
            kubectl.wait_field("mcd/emulated", ".status.replicas", 2)
        except Exception:
            print(operator.log)
            raise


def test_chart_and_file_install_it_on_a_node_that_pulls_by_digest(
    published: Published, tmp_path: Path, node: Node
) -> None:
    found = published.look(tmp_path)
    node.load_image(images.memcached_image(MEMCACHED))
    chart = (f"oci://{published.registry.host}/charts/{NAME}", f"--version={__version__}", "--plain-http")
    with (
        Registry(published.storage, published.registry.port, inside=node.namespaces),
        fresh_namespace(node, f"test-{uuid.uuid4().hex[:10]}") as kubectl,
    ):
        release = ("--namespace", kubectl.namespace, "--wait", "--timeout=120s")
        helm("install", OPERATOR, *chart, *release, kubeconfig=node.kubeconfig_path)
        assert _images_of(Kubectl(node.plane, kubectl.namespace)) == {found.image}
        kubectl("apply", "-f", str(SAMPLE))
        kubectl.wait_field("mcd/example-memcached", ".status.readyReplicas", 3)
        helm("uninstall", OPERATOR, *release, kubeconfig=node.kubeconfig_path)

        file = published.release.folder / "cluster.yaml"
        node.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(file))
        system = Kubectl(node.plane, SYSTEM)
        system("rollout", "status", f"deployment/{OPERATOR}", "--timeout=120s")
        assert _images_of(system) == {found.image}
        kubectl("scale", "mcd/example-memcached", "--replicas=1")
        kubectl.wait_field("mcd/example-memcached", ".status.replicas", 1)


def _images_of(kubectl: Kubectl) -> set[str]:
    pods = kubectl.get("pods", "-l", f"app.kubernetes.io/name={OPERATOR}")["items"]
    return {each["image"] for pod in pods for each in pod["spec"]["containers"]}


def _digests(by_machine: Mapping[str, str]) -> dict[str, str]:
    return {machine: image.partition("@")[2] for machine, image in by_machine.items()}


def _copied_files(published: Published, work: Path) -> Path:
    return Path(shutil.copytree(published.release.folder, work / "files"))


@contextmanager
def _copied_registry(published: Published, work: Path) -> Iterator[Registry]:
    shutil.copytree(published.storage, work / "registry")
    with Registry(work / "registry") as registry:
        yield registry


@contextmanager
def _pulled(image: str, work: Path) -> Iterator[Path]:
    """An image of the registry as a docker-archive, pulled by its digest."""
    with tempfile.TemporaryDirectory(prefix="pulled-") as store:
        builder = builders.find(("buildah",)).stored_in(Path(store))
        command = [builder.name, *builder.options, "pull", "--quiet", "--tls-verify=false", image]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        if finished.returncode != 0:
            raise builders.ImageError(finished.stderr.strip())
        subprocess.run([builder.name, *builder.options, "tag", image, f"localhost/{NAME}:pulled"], check=True)
        builder.save(f"localhost/{NAME}:pulled", work / "image.tar")
        yield work / "image.tar"


def _flipped(body: bytes) -> bytes:
    """The same with another byte in its midst."""
    at = len(body) // 2
    return body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
