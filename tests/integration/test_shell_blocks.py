"""What a reader of the documents types does what the documents say."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab import build
from lab.helm import build as build_helm
from tests.cluster import Cluster
from tests.integration.paper_node import PaperNode
from tests.integration.shell_blocks import How, Step, alike, fits, steps
from tests.operator_process import IN_SYNC, NO_PORTS, PROJECT
from tests.waiting import DEADLINE_S, eventually

_INSTALLED = (
    "kubectl apply -f manifests/install/cluster.yaml",
    "kubectl rollout status deployment/memcached-operator -n memcached-operator-system --timeout=60s",
)
_EXAMPLE = (
    "kubectl apply -f manifests/samples/cache_v1alpha1_memcached_cr.yaml",
    "kubectl wait mc/example-memcached --for=condition=Available --timeout=60s",
)


@dataclass(frozen=True, slots=True)
class Page:
    """A document, and what its reader has done before and has; without a node, pods stay Pending."""

    path: str
    before: tuple[str, ...] = ()
    node: bool = True
    helm: bool = False


PAGES = (Page("docs/tutorial.md", node=False),)
# Those that install a PodDisruptionBudget along, which the simulator does not serve.
PAGES_FOR_KUBERNETES = (
    Page("docs/first-install.md"),
    Page("docs/install.md"),
    Page("docs/upgrade.md", (*_INSTALLED, *_EXAMPLE)),
    Page("docs/helm.md", helm=True),
    Page("docs/uninstall.md", (*_INSTALLED, *_EXAMPLE)),
    Page("docs/namespaces.md"),
    Page("docs/from-the-guides.md"),
    Page("docs/monitoring.md", _INSTALLED),
    Page("docs/leader-election.md", _INSTALLED),
    Page("docs/drain.md", (*_INSTALLED, *_EXAMPLE)),
    Page("docs/clients.md", (*_INSTALLED, *_EXAMPLE)),
    Page("docs/troubleshooting.md", (*_INSTALLED, *_EXAMPLE)),
)
# What a document may name of the repository; a copy, as the guides' `sed -i` changes them.
_FOLDERS = ("manifests", "charts")
# Commands that only look. What they show may take a moment to be so.
_LOOKS = re.compile(r"(\./dev )?kubectl (get|describe|events|top)\b(?!.*(-w\b|--watch))")
_LOOK_AGAIN_S = 20.0


@dataclass(frozen=True, slots=True)
class Came:
    """What a command printed, standard error included, and its exit code: that of the last one that failed."""

    code: int
    text: str


class Shell:
    """One bash for a whole page, so that what it exports stays; a context manager."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._folder = folder
        self._background: list[int] = []
        self._count = 0

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        for group in [*self._background, self._process.pid]:
            try:
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def run(self, command: str) -> Came:
        """Run it to its end; a deadline ends the shell, and the test with it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._count += 1
        mark = f"=== end of command {self._count} ==="
        counted = f"failed=0; trap 'failed=$?' ERR\neval {shlex.quote(command)} </dev/null"
        self._process.stdin.write(f"{counted}\nprintf '\\n{mark} %s\\n' $failed\n")
        self._process.stdin.flush()
        alarm = threading.Timer(DEADLINE_S, self._process.kill)
        alarm.start()
        lines: list[str] = []
        try:
            for line in self._process.stdout:
                if line.startswith(mark):
                    return Came(int(line.split()[-1]), "".join(lines))
                lines.append(line)
        finally:
            alarm.cancel()
        raise AssertionError(f"no end of\n{command}\nIt printed:\n{''.join(lines)}")

    def begin(self, command: str) -> None:
        """Start an operator that runs on, and return when it works."""
        log = self._folder / f"background-{len(self._background)}.log"
        log.touch()
        came = self.run(f"setsid bash -c {shlex.quote(command)} >{log} 2>&1 & echo $!")
        self._background.append(int(came.text))
        eventually(log.read_text, lambda text: IN_SYNC in text)


@pytest.fixture
def shell(cluster: Cluster, page: Page, tmp_path: Path) -> Iterator[Shell]:
    """A terminal in a checkout, with kubectl and the kubeconfig of a cluster that nobody else uses."""
    for name in _FOLDERS:
        if (PROJECT / name).exists():
            shutil.copytree(PROJECT / name, tmp_path / name)
    # Not ./dev itself, which may set up .venv first: a test installs nothing.
    just = f"{PROJECT}/.venv/bin/just --justfile {PROJECT}/justfile"
    (tmp_path / "dev").write_text(f'#!/bin/sh\nexec {just} "$@"\n')
    (tmp_path / "dev").chmod(0o755)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "kubectl").symlink_to(build.kubectl_path())
    if page.helm:
        (programs / "helm").symlink_to(build_helm())
    with ExitStack() as ends:
        own = ends.enter_context(cluster.another(streaming_lists=True))
        kubeconfig = tmp_path / "kubeconfig"
        shutil.copy(own.kubeconfig_path, kubeconfig)
        environment = {
            "PATH": f"{programs}:{PROJECT / '.venv' / 'bin'}:{os.environ['PATH']}",
            "HOME": os.environ["HOME"],  # where the control plane's programs are kept
            "KUBECACHEDIR": str(tmp_path / "kubectl-cache"),
            "KUBECONFIG": str(kubeconfig),
            **NO_PORTS,
        }
        node = ends.enter_context(PaperNode(own)) if page.node else None
        yield ends.enter_context(Shell(tmp_path, environment))
        if node is not None:
            print(node.log)


def do(shell: Shell, where: str, step: Step) -> None:
    """One step, and whether it came out as it says."""
    where = f"{where}, line {step.line}: {step.command}"
    if step.how is How.NOT_RUN:
        return
    if step.how is How.BACKGROUND:
        shell.begin(step.command)
        return
    came = shell.run(step.command)
    assert (came.code != 0) == (step.how is How.FAILS), f"{where}\nended with {came.code}:\n{came.text}"
    shown = step.shown
    if shown is None or step.how is How.OUTPUT_VARIES:
        return
    ends = time.monotonic() + (_LOOK_AGAIN_S if _LOOKS.match(step.command) else 0)
    while not fits(shown, came.text) and time.monotonic() < ends:
        came = shell.run(step.command)
    assert fits(shown, came.text), f"{where}\nshould print:\n{alike(shown)}\nand printed:\n{came.text}"


def do_all(shell: Shell, page: Page) -> None:
    """A page from top to bottom."""
    for command in page.before:
        do(shell, "before", Step(0, command, None, How.RUN))
    for step in steps((PROJECT / page.path).read_text()):
        do(shell, page.path, step)


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
"""


def test_the_steps_of_a_page_are_found_with_what_is_said_about_them() -> None:
    assert [(step.command, step.shown, step.how) for step in steps(PAGE)] == [
        ("a", "", How.NOT_RUN),
        ("b \\\nc", "one\ntwo", How.RUN),
        ("d", "", How.RUN),
        ("e\n  f\n", None, How.FAILS),
        ("g", None, How.RUN),
        ("h\n", None, How.RUN),
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


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_the_shell_blocks_of_a_page_do_what_it_says(shell: Shell, page: Page) -> None:
    do_all(shell, page)


@pytest.mark.timeout(300)
@pytest.mark.cluster("kubernetes")
@pytest.mark.parametrize("page", PAGES_FOR_KUBERNETES, ids=lambda page: page.path)
def test_the_shell_blocks_of_a_page_about_installing_do_what_it_says(shell: Shell, page: Page) -> None:
    do_all(shell, page)
