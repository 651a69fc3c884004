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
from tests.shell import Shell, only_reads, read, terminal
from tests.shell_blocks import How, fits, manifests, steps


@pytest.fixture
def shell(cluster: Cluster, page: Page, tmp_path: Path) -> Iterator[Shell]:
    """A terminal in a checkout, with kubectl and the kubeconfig of a cluster that nobody else uses."""
    with ExitStack() as ends:
        own = ends.enter_context(another(cluster))
        node = ends.enter_context(FakeKubelet(own)) if page.node else None
        yield ends.enter_context(terminal(tmp_path, own.kubeconfig_path, {}, author=page.author))
        if node is not None:
            print(node.log)


PAGE = """
<!-- not run: it needs a node -->
```console
$ a
```

```console
$ b \\
> c
one
two
$ d
```

1. Indented:

   <!-- fails -->
   ```sh
   e
     f
   ```

<!-- first: g -->
```sh
h
```

```python title="i.py"
print("i")
```
"""


def test_the_steps_of_a_page_are_found_with_what_is_said_about_them() -> None:
    assert [(step.command, step.shown, step.how) for step in steps(PAGE)] == [
        ("a", "", How.NOT_RUN),
        ("b \\\nc", "one\ntwo", How.RUN),
        ("d", "", How.RUN),
        ("e\n  f\n", None, How.FAILS),
        ("g", None, How.RUN),
        ("h\n", None, How.RUN),
        ("cat > i.py <<'END OF FILE'\nprint(\"i\")\nEND OF FILE\n", None, How.RUN),
    ]


@pytest.mark.parametrize("mark", ["not run:", "not run", "nonsense"])
def test_a_comment_that_means_nothing_is_an_error(mark: str) -> None:
    with pytest.raises(ValueError, match="means nothing"):
        list(steps(f"<!-- {mark} -->\n```sh\na\n```\n"))


def test_a_block_of_console_without_a_prompt_is_an_error() -> None:
    with pytest.raises(ValueError, match="prompt"):
        list(steps("```console\nls\n```\n"))


@pytest.mark.parametrize(
    ("shown", "came"),
    [
        ("", ""),
        ("NAME   AGE\nweb-84d46f9b75-dhr98   5s", "NAME                AGE\nweb-6fd7c98d8-zzzzz   2m10s\n\n"),
        ("uid: 0b808374-1f2f-4fa7-8da1-a717da693edb", "uid: 26cc97aa-3536-11e8-bd83-0800274106a1"),
        ("a\n…\nd", "a\nb\nc\nd"),
        ("a\n…", "a\nb"),
        ("…\nd", "d"),
        ("a … d", "a b c d"),
    ],
)
def test_what_differs_from_run_to_run_fits(shown: str, came: str) -> None:
    assert fits(shown, came)


@pytest.mark.parametrize(
    ("shown", "came"),
    [("", "a"), ("a", ""), ("3/3", "2/3"), ("a\n…\nd", "a\nb\nc"), ("a", "a\nb"), ("a … d", "a\nd"), ("a.c", "abc")],
)
def test_what_must_be_the_same_does_not_fit_otherwise(shown: str, came: str) -> None:
    assert not fits(shown, came)


@pytest.mark.parametrize(
    ("command", "reads"),
    [
        ("kubectl get pods", True),
        ("./dev kubectl describe mcd/shop | grep Ready", True),
        ("kubectl get mcd shop \\\n  -o yaml", True),
        ("kubectl wait mcd/shop --for=delete\nkubectl get mcd", True),
        ("kubectl auth can-i create pods -n shop", True),
        ("kubectl get pods --watch", False),
        ("kubectl get mcd -o yaml | kubectl apply -f -", False),
        ("kubectl get mcd; kubectl delete mcd/shop", False),
        ("kubectl wait mcd/shop --for=delete\nkubectl apply -f shop.yaml", False),
        ("kubectl delete pod $(kubectl get pods -o name)", False),
        ("helm list", False),
    ],
)
def test_a_command_is_typed_again_if_it_only_reads(command: str, reads: bool) -> None:
    assert only_reads(command) is reads


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
