"""The operator of docs/comparison.md on this runtime, on kopf and on controller-runtime: all three do the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.operators import GREETING_LOCK, PEERS, go_peer, kopf_environment
from lab.cache import BuildError
from operator_runtime.testing.waiting import DEADLINE_S, eventually, until
from tests.cluster import Cluster, await_established
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import PROJECT
from tests.shell_blocks import files

pytestmark = pytest.mark.cluster("kubernetes")

PROGRAM = files((PROJECT / "docs" / "write-your-own.md").read_text())
GREETING = {
    "apiVersion": "example.com/v1",
    "kind": "Greeting",
    "metadata": {"name": "world"},
    "spec": {"name": "World"},
}
TEXT = ".data.text"

Command = tuple[list[str], Mapping[str, str]]


def own_operator(namespace: str, folder: Path) -> Command:
    nowhere = {f"GREETING_OPERATOR_{server}_BIND_ADDRESS": "0" for server in ("METRICS", "HEALTH_PROBE")}
    variables = {"PYTHONPATH": str(PROJECT), "WATCH_NAMESPACE": namespace, **nowhere}
    return [sys.executable, str(folder / "greeting_operator.py")], variables


def kopf(namespace: str, folder: Path) -> Command:
    python = kopf_environment(GREETING_LOCK)
    flags = ["--namespace", namespace, "--standalone"]
    return [str(python), "-m", "kopf", "run", *flags, str(PEERS / "greeting_kopf.py")], {}


def controller_runtime(namespace: str, folder: Path) -> Command:
    return [str(go_peer("greeting"))], {"METRICS_ADDRESS": "0"}


@pytest.fixture
def greetings(cluster: Cluster, namespace: str, tmp_path: Path) -> Kubectl:
    """On a cluster that knows the kind as the other page makes it."""
    for path, text in PROGRAM.items():
        (tmp_path / path).write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    crd = subprocess.run(
        [sys.executable, str(tmp_path / "greeting_api.py")], env=environment, check=True, capture_output=True, text=True
    )
    cluster.kubectl("apply", "--server-side", "-f", "-", input=crd.stdout)
    await_established(cluster.kubectl, "crd/greetings.example.com")
    return Kubectl(cluster, namespace)


@pytest.fixture(params=[own_operator, kopf, controller_runtime], ids=lambda each: str(each.__name__))
def log(request: pytest.FixtureRequest, greetings: Kubectl, tmp_path: Path) -> Iterator[Path]:
    """One of the operators at work, until the end of the test; its log."""
    prepare: Callable[[str, Path], Command] = request.param
    try:
        arguments, variables = prepare(greetings.namespace, tmp_path)
    except BuildError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"cannot be had here: {error}")
    bare = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "KUBECONFIG": str(greetings.cluster.kubeconfig_path)}
    log = tmp_path / "log"
    with (
        log.open("w") as output,
        subprocess.Popen(arguments, env={**bare, **variables}, stdout=output, stderr=output) as process,
    ):
        try:
            yield log
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(DEADLINE_S)
            except subprocess.TimeoutExpired:
                process.kill()
            print(log.read_text())


@pytest.mark.timeout(300)
def test_a_greeting_s_config_map_is_made_follows_it_is_put_back_and_goes(greetings: Kubectl, log: Path) -> None:
    def config_map() -> Any:
        return greetings.get("configmap/world")

    greetings.apply(GREETING)
    greetings.wait_field("configmap/world", TEXT, "Hello, World!")
    greetings.wait_field("greeting/world", ".status.text", "Hello, World!")
    greetings("patch", "greeting/world", "--type=merge", "-p", '{"spec":{"salutation":"Good morning"}}')
    greetings.wait_field("configmap/world", TEXT, "Good morning, World!")
    greetings.wait_field("greeting/world", ".status.text", "Good morning, World!")

    before = config_map()["metadata"]["uid"]
    greetings("delete", "configmap/world")
    greetings.wait_field("configmap/world", TEXT, "Good morning, World!")
    assert config_map()["metadata"]["uid"] != before
    greetings("patch", "configmap/world", "--type=merge", "-p", '{"data":{"text":"Go away!"}}')
    eventually(config_map, lambda found: found["data"] == {"text": "Good morning, World!"})

    (owner,) = config_map()["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["controller"]) == ("Greeting", True)
    greetings("delete", "greeting/world")
    until("the Greeting is still there", lambda: not greetings("get", "greetings", "-o", "name"))
