"""What a reader of the documents types does what the documents say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster import Cluster, another
from tests.integration.fake_kubelet import FakeKubelet
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import PROJECT
from tests.pages import PAGES, PAGES_FOR_KUBERNETES, RUN, Page
from tests.shell import Shell, read, terminal
from tests.shell_blocks import manifests


@pytest.fixture
def shell(cluster: Cluster, page: Page, tmp_path: Path) -> Iterator[Shell]:
    """A terminal in a checkout, with kubectl and the kubeconfig of a cluster that nobody else uses."""
    with ExitStack() as ends:
        own = ends.enter_context(another(cluster))
        node = ends.enter_context(FakeKubelet(own)) if page.node else None
        yield ends.enter_context(terminal(tmp_path, own.kubeconfig_path, {}, author=page.author))
        if node is not None:
            print(node.log)


# What most readers type, and so the page that the gate runs.
FOR_KUBERNETES = [
    pytest.param(page, id=page.path, marks=[pytest.mark.core] if page.path == "README.md" else [])
    for page in PAGES_FOR_KUBERNETES
]


@pytest.mark.timeout(300)
@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_the_shell_blocks_of_a_page_do_what_it_says(shell: Shell, page: Page) -> None:
    read(shell, page.path, before=page.before)


@pytest.mark.timeout(300)
@pytest.mark.cluster("kubernetes")
@pytest.mark.parametrize("page", FOR_KUBERNETES)
def test_the_shell_blocks_of_a_page_about_installing_do_what_it_says(shell: Shell, page: Page) -> None:
    read(shell, page.path, before=page.before)


# What an API server without more than this project's kinds has.
_SERVED = ("apps/v1", "cache.example.com/v1alpha1", "policy/v1", "rbac.authorization.k8s.io/v1", "v1")
SHOWN = {
    path.relative_to(PROJECT).as_posix(): objects
    for path in sorted((PROJECT / "docs").glob("*.md"))
    if (objects := [each for each in manifests(path.read_text()) if each["apiVersion"] in _SERVED])
}


@pytest.mark.parametrize("page", sorted(SHOWN.keys() - RUN))
def test_the_objects_that_a_page_shows_are_taken(page: str, kubectl: Kubectl) -> None:
    for shown in SHOWN[page]:
        metadata = {name: value for name, value in shown["metadata"].items() if name != "namespace"}
        kubectl("apply", "--dry-run=server", "-f", "-", input=json.dumps({**shown, "metadata": metadata}))
