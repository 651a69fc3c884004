"""The recipes for images, as a person types them: built, sent to a registry, and found there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.image import builders, images
from lab.image.builders import ImageError
from memcached_operator import __version__
from tests.cluster import REQUIRED_VARIABLE
from tests.image.registry import Registry, serving
from tests.operator_process import PROJECT

# The first one builds an image and what stands in for its bases.
pytestmark = pytest.mark.timeout(900)

# What the recipes work with of a checkout.
_FILES = ("justfile", "pyproject.toml", "Dockerfile", ".dockerignore", "requirements-image.lock", "LICENSE", "NOTICE")
_FOLDERS = ("lab", "manifests", "memcached_operator", "operator_runtime")
_UNTRUSTED = "--tls-verify=false"


@dataclass(frozen=True, slots=True)
class Checkout:
    """A copy of the checkout, whose builder has a store of its own."""

    folder: Path
    environment: dict[str, str]

    def just(self, *words: str, **variables: str) -> str:
        """Run a recipe, which must not fail; its standard output."""
        finished = subprocess.run(
            [PROJECT / ".venv" / "bin" / "just", "--justfile", self.folder / "justfile", *words],
            cwd=self.folder,
            env=self.environment | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert finished.returncode == 0, finished.stdout + finished.stderr
        return finished.stdout

    def push(self, recipe: str, **variables: str) -> None:
        """Run a recipe that sends to a registry without TLS; docker takes one on loopback without being told."""
        self.just(recipe, *([] if self.environment[builders.VARIABLE] == "docker" else [_UNTRUSTED]), **variables)


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with serving() as found:
        yield found


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    try:
        builder = builders.find(images.APART)
    except ImageError as error:
        if os.environ.get(REQUIRED_VARIABLE) or os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    base = tmp_path_factory.mktemp("recipes")
    folder = base / "checkout"
    for name in _FOLDERS:
        shutil.copytree(PROJECT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in _FILES:
        shutil.copy(PROJECT / name, folder / name)
    # podman's and buildah's, https://github.com/containers/storage/blob/main/docs/containers-storage.conf.5.md
    store = {"graphroot": base / "store", "runroot": base / "run"}
    settings = base / "storage.conf"
    settings.write_text("[storage]\n" + "".join(f'{name} = "{path}"\n' for name, path in store.items()))
    environment = os.environ | {
        "PATH": f"{PROJECT / '.venv' / 'bin'}:{os.environ['PATH']}",
        "CONTAINERS_STORAGE_CONF": str(settings),
        builders.VARIABLE: builder.name,
    }
    for variable in ("IMG", "BUNDLE_IMG"):
        environment.pop(variable, None)
    yield Checkout(folder, environment)
    shutil.rmtree(base, ignore_errors=True)  # hundreds of megabytes


@pytest.fixture(scope="module")
def image(registry: Registry) -> str:
    """The operator's, in the registry."""
    return f"{registry.address}/example/memcached-operator:v0.0.1"


@pytest.fixture(scope="module")
def archive(checkout: Checkout, image: str) -> Path:
    """What `./dev image` writes."""
    path = checkout.folder.parent / "image.tar"
    assert f"{image} is in the store of" in checkout.just("image", "--archive", str(path), IMG=image)
    return path


def in_archive(archive: Path) -> tuple[list[str], dict[str, Any]]:
    """Names and configuration of a docker-archive's image."""
    with tarfile.open(archive) as opened:

        def document(name: str) -> Any:
            file = opened.extractfile(name)
            assert file is not None
            return json.load(file)

        (manifest,) = document("manifest.json")
        return manifest["RepoTags"], document(manifest["Config"])


def test_dev_image_builds_the_image_under_its_name_and_writes_it_to_a_file(archive: Path, image: str) -> None:
    names, made = in_archive(archive)
    assert names == [image]
    assert made["config"]["Entrypoint"] == ["python", "-m", "memcached_operator"]
    assert made["config"]["Labels"]["org.opencontainers.image.version"] == __version__


def test_dev_push_sends_the_image_to_the_registry_of_its_name(
    checkout: Checkout, registry: Registry, archive: Path, image: str
) -> None:
    assert image not in registry.manifests
    checkout.push("push", IMG=image)
    _, made = in_archive(archive)
    sent = registry.config(image)
    assert sent["config"]["Entrypoint"] == made["config"]["Entrypoint"]
    assert sent["rootfs"]["diff_ids"] == made["rootfs"]["diff_ids"]


def test_dev_bundle_names_the_image_and_its_own_image_is_built_and_pushed_with_it(
    checkout: Checkout, registry: Registry, image: str
) -> None:
    checkout.just("bundle", IMG=image)
    made = {
        str(path.relative_to(checkout.folder / "bundle")): path.read_bytes()
        for path in (checkout.folder / "bundle").rglob("*")
        if path.is_file()
    }
    described = yaml.safe_load(made["manifests/memcached-operator.clusterserviceversion.yaml"])
    assert described["metadata"]["annotations"]["containerImage"] == image

    name = f"{registry.address}/example/memcached-operator-bundle:v0.0.1"
    assert f"{name} is in the store of" in checkout.just("bundle-build", BUNDLE_IMG=name)
    assert name not in registry.manifests
    checkout.push("bundle-push", BUNDLE_IMG=name)
    assert registry.files(name) == made
    annotations = yaml.safe_load(made["metadata/annotations.yaml"])["annotations"]
    labels = registry.config(name)["config"]["Labels"]
    assert {label: labels.get(label) for label in annotations} == annotations
