"""Three thousand Memcacheds on the simulator, which runs as people run it: in a process of its own."""

from __future__ import annotations

import asyncio
import collections
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from lab import audit
from lab.programs.kubernetes import kubectl_path
from memcached_operator.memcached.kinds import MEMCACHEDS
from operator_runtime.client.access.auth import load_access
from operator_runtime.client.api_client import ApiClient
from tests.cluster import await_established
from tests.integration.conftest import CRD, memcached
from tests.operator_process import PROJECT, OperatorProcess

COUNT, SIZE = 3_000, 2
# Nothing beside the servers: the simulator's controllers look at each Service and budget of a namespace for each pod.
BARE = {"service": {"type": "Disabled"}, "disruptionBudget": {"maxUnavailable": "100%"}}
NAMES = [f"cache-{number:04}" for number in range(COUNT)]
NAMESPACE = "default"
# No speed is asserted: it takes a minute on two cores that have nothing else to do.
DEADLINE_S = 900.0
_READY = "Ctrl-C ends it"
# How many are being created at a time.
_CREATORS = 20
# A line for each change: its name, how many of its servers are ready, and whether all is done.
_LINE = '{.metadata.name}{" "}{.status.readyReplicas}{" "}{.status.conditions[?(@.type=="Progressing")].reason}{"\\n"}'


class Lines:
    """A process, and the lines of its output as they come; a context manager that ends it."""

    def __init__(self, *command: str | Path, home: Path, on_line: Callable[[str], None]) -> None:
        self._ended = False
        self._on_line = on_line
        self._changed = threading.Condition()
        self._process = subprocess.Popen(
            command,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), "HOME": str(home), "TMPDIR": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        self._reader.join()

    def wait_until(self, holds: Callable[[], bool], otherwise: Callable[[], str], deadline_s: float) -> None:
        """Wait until that is true, looking again after each line."""
        with self._changed:
            in_time = self._changed.wait_for(lambda: holds() or self._ended, deadline_s)
        assert in_time, f"not within {deadline_s:.0f} s: {otherwise()}"
        assert holds(), f"the process ended: {otherwise()}"

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                with self._changed:
                    self._on_line(line)
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """Of a simulator whose pods are ready soon."""
    path, said = tmp_path / "kubeconfig", list[str]()
    options = ("--kubeconfig", path, "--ready-after", "0.1", "--no-memcached")
    command = (sys.executable, "-m", "kube_simulator", *options)
    with Lines(*command, home=tmp_path, on_line=said.append) as simulator:
        simulator.wait_until(lambda: _READY in "".join(said), lambda: "".join(said), 60.0)
        yield path


@pytest.mark.slow
@pytest.mark.timeout(2 * DEADLINE_S)
@pytest.mark.cluster("simulator")
def test_three_thousand_memcacheds_complete_with_one_create_each_and_kubectl_still_answers(
    kubeconfig: Path, tmp_path: Path
) -> None:
    def kubectl(*arguments: str | Path) -> str:
        command = (kubectl_path(), "--kubeconfig", kubeconfig, *arguments)
        finished = subprocess.run(
            command, env={"HOME": str(tmp_path)}, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    kubectl("apply", "--server-side", "-f", CRD)
    await_established(kubectl, "crd/memcacheds.cache.example.com")
    operator = OperatorProcess("--kubeconfig", str(kubeconfig), environment={})
    seen: set[str] = set()
    done: set[str] = set()

    def changed(line: str) -> None:
        name, _, state = line.strip().partition(" ")
        seen.add(name)
        if state == f"{SIZE} Complete":
            done.add(name)
        else:
            done.discard(name)

    def missing() -> str:
        return f"{len(seen)} seen, {len(done)} done, not {sorted(set(NAMES) - done)[:5]}; the operator:\n{operator.log}"

    watch = (kubectl_path(), "--kubeconfig", kubeconfig, "get", "mc", "--watch", "-o", f"jsonpath={_LINE}")
    try:
        operator.ready()
        with Lines(*watch, home=tmp_path, on_line=changed) as watching:
            asyncio.run(_create(NAMES[:1], kubeconfig))
            watching.wait_until(lambda: NAMES[0] in seen, missing, DEADLINE_S)  # so it is there before the others
            asyncio.run(_create(NAMES[1:], kubeconfig))
            watching.wait_until(lambda: done >= set(NAMES), missing, DEADLINE_S)
        assert seen == set(NAMES)

        assert kubectl("get", "mc", "--no-headers").count("\n") == COUNT
        assert kubectl("get", "deployments,pods", "-o", "name").count("\n") == COUNT * (1 + SIZE)
        assert "cache-2999" in kubectl("describe", "mc", NAMES[-1])
    finally:
        code = operator.stop()
    assert code == 0, operator.log
    (log,) = tmp_path.glob("memcached-operator-simulator-*/*/audit.log")
    requests = [each for each in audit.read(log) if each.user_agent.startswith("memcached-operator/")]
    made = collections.Counter(each.name for each in requests if each.resource == "deployments" and each.code == 201)
    assert made == dict.fromkeys(NAMES, 1)
    # A 409 is no failure: where the echo of a write is late, the operator asks again.
    assert [each for each in requests if each.code >= 500] == []


async def _create(names: Sequence[str], kubeconfig: Path) -> None:
    """As many users do together: in no order."""
    left = iter(names)
    access = load_access(kubeconfig=str(kubeconfig), environ={})
    async with ApiClient(access, user_agent="users") as client:

        async def create() -> None:
            for name in left:
                body = memcached(name, SIZE, **BARE)
                await client.create(MEMCACHEDS.resource, NAMESPACE, body, field_manager="users")

        await asyncio.gather(*(create() for _ in range(_CREATORS)))
