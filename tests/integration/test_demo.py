"""The demo as people run it: as lines, in a terminal; and that it leaves nothing, however it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from kube_simulator.state import state_directory
from lab.programs import kubernetes
from memcached_operator.demo.script import CONFLICTING, EXAMPLE, NAMED, STEPS
from tests.cluster import REQUIRED_VARIABLE
from tests.conformance import sample_objects
from tests.integration.demo_process import (
    ALL_CAME_TRUE,
    ALL_CAME_TRUE_AND_MORE,
    DEADLINE_S,
    ENDED,
    KUBECONFIG_LINE,
    SHOWN_CHARACTERS,
    SIMULATED,
    SMALL,
    WIDE,
    Demos,
    await_ends,
    needs_memcached,
)
from tests.operator_process import PROJECT

# It brings an API server of its own, so it need not run once for each that the other tests know.
pytestmark = [pytest.mark.cluster("simulator"), pytest.mark.timeout(600)]

# Python imports a module of this name as it starts; this one ends the operator, by a fault of its own.
_DIES = """
import sys
if "demo" in sys.orig_argv:
    from operator_runtime.events.recorder import EventRecorder
    async def run(_):
        raise ValueError("a fault of the test's")
    EventRecorder.run = run
"""
# The demo goes on, once it has told of itself, when there is this file beside the module.
_GATE = "gate"
_WAITS = f"""
import asyncio, os, sys
if "demo" in sys.orig_argv:
    from memcached_operator.demo import demo_command
    install_crd = demo_command.install_crd
    async def waits(client):
        while not os.path.exists(os.path.join(os.path.dirname(__file__), "{_GATE}")):
            await asyncio.sleep(0.02)
        await install_crd(client)
    demo_command.install_crd = waits
"""
# This one is for the demo: it gives no eyes a while.
_HURRIES = """
import sys
if "demo" in sys.orig_argv:
    from memcached_operator.demo.view import View
    async def takes_in(_):
        pass
    View.takes_in = takes_in
"""
# So is this: it plays one step and waits for a signal.
_STAYS_AT_THE_FIRST_STEP = f"""
import asyncio, sys
if "demo" in sys.orig_argv:
    from memcached_operator.demo.plain import Plain
    async def takes_in(_):
        await asyncio.sleep({DEADLINE_S})
    Plain.takes_in = takes_in
"""


class TestPlain:
    def test_a_line_a_step_and_keys_in_real_servers_and_a_kubeconfig_that_works(
        self, demos: Demos, tmp_path: Path
    ) -> None:
        needs_memcached()
        (tmp_path / "sitecustomize.py").write_text(_WAITS)
        demo = demos()  # plain by itself, as there is no terminal
        assert "default" in demo.kubectl("get", "namespaces")
        (tmp_path / _GATE).touch()
        assert demo.wait() == 0
        assert re.search(r"https://127\.0\.0\.1:\d+$", demo.lines[0])
        assert KUBECONFIG_LINE.search(demo.lines[1])
        assert demo.lines[2] == "demo: pods are real memcached processes on loopback addresses"
        ok_lines = [line for line in demo.lines if line.startswith("demo: ok")]
        for number, (step, line) in enumerate(zip(STEPS, ok_lines, strict=True), start=1):
            assert line.startswith(f"demo: ok {number}: {step.deed}: {step.outcome} (")
        for size, line in zip((3, 4, 4, 4), ok_lines, strict=False):
            assert f"a key was stored and read in each of the {size} pods" in line
        assert "is not changed" in ok_lines[4]
        assert f"{NAMED}-0.{NAMED}.default.svc:11211, {NAMED}-1.{NAMED}" in ok_lines[6]
        counted = re.search(rf"of 60 keys (\d+) are hits; (\d+) are misses, all of them {NAMED}-1's", ok_lines[7])
        assert counted is not None
        assert int(counted[1]) + int(counted[2]) == 60
        assert re.fullmatch(r"demo: [1-9]\d* writes by the operator", demo.lines[-2])
        assert demo.lines[-1] == f"demo: {ALL_CAME_TRUE}"
        assert demo.left_nothing()

    def test_asked_to_end_it_leaves_nothing_and_does_not_claim_success(self, demos: Demos, tmp_path: Path) -> None:
        (tmp_path / "sitecustomize.py").write_text(_STAYS_AT_THE_FIRST_STEP)
        demo = demos("--plain")
        demo.wait_for("demo: ok 1")
        demo.send(signal.SIGTERM)
        assert demo.wait() == 130
        assert demo.left_nothing()
        assert "Traceback" not in demo.text, demo.text[-SHOWN_CHARACTERS:]
        assert "succeeded" not in demo.text

    def test_killed_it_leaves_no_process_and_a_folder_that_the_next_one_removes(
        self, demos: Demos, tmp_path: Path
    ) -> None:
        (tmp_path / "sitecustomize.py").write_text(_STAYS_AT_THE_FIRST_STEP)
        demo = demos("--plain")
        demo.wait_for("demo: ok 1")
        if "real memcached" in demo.text:
            assert sum(" -l 127." in line for line in demo.processes().values()) >= 3
        demo.send(signal.SIGKILL)
        assert demo.wait() == -signal.SIGKILL
        await_ends(demo)
        (folder,) = demo.folders()
        with state_directory(folder.parent):
            assert not folder.exists()


class TestFailures:
    def test_a_step_that_is_refused_is_named_and_the_exit_code_is_1(self, demos: Demos, tmp_path: Path) -> None:
        (tmp_path / "sitecustomize.py").write_text(_WAITS)
        demo = demos("--plain", SIMULATED, terminal=SMALL)
        # The name of the script's own.
        demo.kubectl("create", "-f", "-", input=json.dumps(sample_objects.deployment(CONFLICTING)))
        (tmp_path / _GATE).touch()
        assert demo.wait() == 1
        (failed,) = (line for line in demo.lines if "FAILED" in line)
        assert failed.startswith(f"demo: FAILED 5: {STEPS[4].deed}: ")
        assert f'"{CONFLICTING}" already exists' in failed
        assert demo.lines[-1] == f"demo: 4 of {len(STEPS)} steps succeeded"
        # Lines also in a terminal, as they were asked for, and they say what pods are.
        assert demo.lines[2].startswith("demo: pods are simulated")
        assert "stored and read" not in demo.text
        assert "\x1b" not in demo.text
        assert demo.left_nothing()

    def test_an_operator_that_ends_fails_the_step_at_once_with_its_last_words(
        self, demos: Demos, tmp_path: Path
    ) -> None:
        (tmp_path / "sitecustomize.py").write_text(_DIES)
        demo = demos("--plain", SIMULATED)
        assert demo.wait() == 1
        (failed,) = (line for line in demo.lines if "FAILED" in line)
        assert failed.startswith(f"demo: FAILED 1: {STEPS[0].deed}: ")
        assert "its last log line: " in failed
        assert demo.lines[-1] == f"demo: 0 of {len(STEPS)} steps succeeded"
        assert demo.left_nothing()

    def test_a_temporary_folder_that_it_cannot_use_is_named(self, demos: Demos, tmp_path: Path) -> None:
        in_the_way = tmp_path / f"memcached-operator-simulator-{os.getuid()}"
        in_the_way.touch()
        demo = demos("--plain", SIMULATED)
        assert demo.wait() == 2
        assert demo.text.startswith("memcached-operator: ")
        assert str(in_the_way) in demo.text
        assert demo.text.count("\n") == 1


class TestTerminal:
    def test_it_stays_for_kubectl_with_a_memcached_to_play_with_until_ctrl_c_and_that_is_no_failure(
        self, demos: Demos, tmp_path: Path
    ) -> None:
        (tmp_path / "sitecustomize.py").write_text(_HURRIES)
        demo = demos(terminal=WIDE)
        demo.wait_for(f"{ALL_CAME_TRUE_AND_MORE}; press Ctrl-C to exit")
        demo.kubectl("scale", f"mcd/{EXAMPLE}", "--replicas=2")
        demo.kubectl("create", "-f", "-", input=_memcached("default-size"))
        for name, size in {EXAMPLE: 2, "default-size": 1}.items():
            ready = f"jsonpath={{.status.readyReplicas}}={size}"
            demo.kubectl("wait", f"mcd/{name}", f"--for={ready}", f"--timeout={DEADLINE_S:.0f}s")
        demo.wait_for("create deployments")  # among the operator's writes
        demo.press_ctrl_c()
        assert demo.wait() == 0
        assert ALL_CAME_TRUE_AND_MORE in demo.last_screen
        for step in STEPS:
            assert f"✓ {step.deed}" in demo.last_screen
        assert demo.lines[-1] == ENDED
        assert "Traceback" not in demo.text, demo.text[-SHOWN_CHARACTERS:]
        assert demo.left_nothing()

    @pytest.mark.parametrize("command", [(), (PROJECT / "dev",)], ids=["python", "dev"])
    def test_ctrl_c_before_the_end_is_no_failure_either_and_leaves_nothing(
        self, demos: Demos, command: tuple[Path, ...]
    ) -> None:
        if command and Path(sys.prefix) != PROJECT / ".venv":
            pytest.skip("./dev would set up a .venv first")
        demo = demos(terminal=SMALL, command=command)
        demo.wait_for("✓")  # there are servers, and Ctrl-C reaches those too
        demo.press_ctrl_c()
        assert demo.wait() == 0
        assert demo.lines[-1] == ENDED
        assert ALL_CAME_TRUE not in demo.last_screen
        assert "Traceback" not in demo.text, demo.text[-SHOWN_CHARACTERS:]
        assert demo.left_nothing()


@pytest.mark.cluster("kubernetes")
class TestOnTheLabsControlPlane:
    @pytest.fixture(autouse=True)
    def built(self) -> None:
        if not kubernetes.is_built() and not (os.environ.get(REQUIRED_VARIABLE) or os.environ.get("CI")):
            pytest.skip("the lab is not built: ./dev cluster")

    def test_each_step_comes_true_on_a_real_control_plane(self, demos: Demos) -> None:
        demo = demos("--real", "--plain", module="lab")
        assert demo.wait() == 0, demo.text
        assert demo.lines[0].startswith("demo: a real kube-apiserver")
        assert demo.lines[2].startswith("demo: pods are simulated")
        assert sum(line.startswith("demo: ok") for line in demo.lines) == len(STEPS)
        assert demo.lines[-1] == f"demo: {ALL_CAME_TRUE}"
        assert demo.left_nothing()


def _memcached(name: str, size: int | None = None) -> str:
    spec = {} if size is None else {"spec": {"size": size}}
    kind = {"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached"}
    return json.dumps({**kind, "metadata": {"name": name}, **spec})
