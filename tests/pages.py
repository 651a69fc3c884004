"""The documents whose shell blocks are run, and what their reader has done before."""

from __future__ import annotations

from dataclasses import dataclass

INSTALLED = (
    "kubectl apply --server-side -f manifests/install/cluster.yaml",
    "kubectl rollout status deployment/memcached-operator -n memcached-operator-system --timeout=60s",
)
EXAMPLE = (
    "kubectl apply -f manifests/samples/cache_v1alpha1_memcached_cr.yaml",
    "kubectl wait memcached/example-memcached --for=condition=Available --timeout=60s",
)


@dataclass(frozen=True, slots=True)
class Page:
    """A document, and what its reader has done before and has; without a node, pods stay Pending.

    Attributes:
        author: its reader writes an operator, and installs this project for it.
    """

    path: str
    before: tuple[str, ...] = ()
    node: bool = True
    author: bool = False


# What readers copy from top to bottom.
PAGES = (
    Page("docs/tutorial.md", node=False),
    Page("docs/write-your-own.md", node=False, author=True),
    Page("examples/my_own_shell/README.md", node=False),
)
# Those that need more than the simulator has, such as protobuf, which kubectl sends to create a namespace.
PAGES_FOR_KUBERNETES = (
    Page("examples/publisher/README.md", node=False),
    Page("README.md"),
    Page("docs/first-install.md"),
    Page("docs/install.md"),
    Page("docs/backup.md", INSTALLED),
    Page("docs/uninstall.md", (*INSTALLED, *EXAMPLE)),
    Page("docs/from-the-guides.md"),
)
RUN = frozenset(page.path for page in (*PAGES, *PAGES_FOR_KUBERNETES))
