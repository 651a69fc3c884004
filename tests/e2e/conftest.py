"""One node for all tests of a run, and what they put on it."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.cache import BuildError
from lab.image import example, images
from lab.image.builders import ImageError
from lab.kubectl import LabError
from lab.node import config, dns
from lab.node.node import Node, check_machine
from lab.programs import kubernetes
from tests.cluster import REQUIRED_VARIABLE
from tests.e2e.node_cluster import (
    BUSYBOX,
    EXAMPLE_BUSYBOX,
    INSTALL,
    MEMCACHED,
    OPERATOR,
    OTHER_MEMCACHED,
    PYMEMCACHE,
    SYSTEM,
    fresh_namespace,
)
from tests.kubectl_in_namespace import Kubectl

_HERE = Path(__file__).parent
_NODE_FIXTURES = {"node", "real_machine"}
# Those that need the operator's image on the node.
_OPERATOR_FIXTURES = {"operator_images"}
_EXAMPLE_FIXTURES = {"example_images"}
_CLIENT_FIXTURES = {"client_image"}
_OTHER_FIXTURES = {"other_memcached"}

# The first test of a run starts the node, the first of a file installs the operator, each within its own timeout.
_TIMEOUT_S = 300


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests here more time, but for those that have chosen for themselves."""
    for item in items:
        if item.path.is_relative_to(_HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_TIMEOUT_S))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build here what tests will need: inside a test, the first build would run into the test's timeout."""
    if session.config.option.collectonly:
        return
    requested = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    with contextlib.suppress(BuildError, ImageError, LabError):  # the fixtures meet it again, and decide
        if requested & _NODE_FIXTURES:
            check_machine()
            kubernetes.build()
            images.pause_image(config.PAUSE_IMAGE)
            images.busybox_image(BUSYBOX)
            dns.image()
        if requested & _OPERATOR_FIXTURES:
            images.operator_image()
            images.memcached_image(MEMCACHED)
        if requested & _EXAMPLE_FIXTURES:
            example.example_image()
            images.busybox_image(EXAMPLE_BUSYBOX)
        if requested & _CLIENT_FIXTURES:
            images.client_image(PYMEMCACHE)
        if requested & _OTHER_FIXTURES:
            images.memcached_image(OTHER_MEMCACHED)


@pytest.fixture(scope="session")
def real_machine() -> None:
    """A machine that can have a node; where a run must be complete, one that cannot is a failure."""
    try:
        check_machine()
        kubernetes.build()
        dns.image()
    except (BuildError, LabError) as error:
        if os.environ.get(REQUIRED_VARIABLE) or os.environ.get("CI"):
            raise
        pytest.skip(f"no node: {error}")


@pytest.fixture(scope="session")
def node(real_machine: None) -> Iterator[Node]:
    """A single-node cluster with an image to look around with, started when the first test asks for it."""
    with Node() as started:
        started.load_image(images.busybox_image(BUSYBOX))
        yield started


@pytest.fixture(scope="session")
def operator_images(node: Node) -> None:
    """The node has what the install files and the sample name."""
    node.load_image(images.operator_image())
    node.load_image(images.memcached_image(MEMCACHED))


@pytest.fixture(scope="session")
def example_images(node: Node) -> None:
    """The node has what the example's manifests name, and what its shells run."""
    node.load_image(example.example_image())
    node.load_image(images.busybox_image(EXAMPLE_BUSYBOX))


@pytest.fixture(scope="session")
def client_image(node: Node) -> None:
    """The node has what `HashingPod` runs."""
    node.load_image(images.client_image(PYMEMCACHE))


@pytest.fixture(scope="session")
def other_memcached(node: Node) -> None:
    """The node has memcached under another name as well."""
    node.load_image(images.memcached_image(OTHER_MEMCACHED))


@pytest.fixture
def kubectl(node: Node) -> Iterator[Kubectl]:
    """kubectl in a fresh namespace."""
    with fresh_namespace(node, f"test-{uuid.uuid4().hex[:10]}") as found:
        yield found


@contextlib.contextmanager
def installed(node: Node) -> Iterator[Kubectl]:
    """kubectl in the namespace of the operator for all namespaces, whose two pods are ready; uninstalled at the end."""
    found = Kubectl(node.plane, SYSTEM)
    node.kubectl("apply", "--server-side", "-f", str(INSTALL / "cluster.yaml"))
    found("rollout", "status", f"deployment/{OPERATOR}", "--timeout=55s")
    try:
        yield found
    finally:
        uninstall(node)


def uninstall(node: Node) -> None:
    """In the order of docs/uninstall.md, but that the operator's pods go before their namespace.

    Where a namespace that is being deleted has pods with a grace period of 30 s, Kubernetes looks again after 16 s.
    """
    node.kubectl("delete", "memcacheds", "--all", "--all-namespaces", "--cascade=foreground", check=False)
    pods_first = ("delete", "deployment", OPERATOR, "--ignore-not-found", "--cascade=foreground")
    node.kubectl("--namespace", SYSTEM, *pods_first)
    node.kubectl("delete", "--ignore-not-found", "-f", str(INSTALL / "cluster.yaml"))


@pytest.fixture(scope="module")
def system(node: Node, operator_images: None) -> Iterator[Kubectl]:
    """See `installed`, for all tests of a module."""
    with installed(node) as found:
        yield found
