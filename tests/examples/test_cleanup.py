"""A cleanup that fails is retried and seen, and what is left from an operator that was away is cleaned up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from examples.my_own_shell.controller import ShellController, set_up
from operator_runtime import Program, RuntimeSettings, TerminalError
from operator_runtime.testing.running import running_operator, settings_of
from operator_runtime.testing.waiting import async_eventually, async_until, eventually
from tests.examples.conftest import Start
from tests.examples.shells import (
    DEPLOYMENT,
    FINALIZER,
    MANIFESTS,
    SAMPLE,
    SHELL,
    await_cleanups,
    await_condition,
    cleanups,
    shell,
)
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess

PROGRAM = Program("my-own-shell", "0.1.0")
WITHOUT_FINALIZERS = '{"metadata":{"finalizers":null}}'


@asynccontextmanager
async def operator_here(kubectl: Kubectl) -> AsyncIterator[None]:
    """The operator on the test's own event loop, for one namespace, so that a test can reach into it."""
    values = {"kubeconfig": str(kubectl.cluster.kubeconfig_path), "watch_namespaces": (kubectl.namespace,)}
    settings = settings_of(PROGRAM, RuntimeSettings, values)
    async with running_operator(set_up, PROGRAM, settings):
        yield


class Failing:
    """A cleanup that fails until it is mended."""

    def __init__(self) -> None:
        self.mended = False
        self.calls = 0

    def method(self, error: Exception) -> object:
        async def clean_up(_controller: ShellController, _obj: object) -> None:
            self.calls += 1
            if not self.mended:
                raise error

        return clean_up


@pytest.mark.parametrize(
    ("method", "kind", "what"),
    [("clean_up", "MyOwnShell", SHELL), ("clean_up_deployment", "Deployment", DEPLOYMENT)],
)
async def test_a_cleanup_that_fails_is_retried_and_seen_until_it_succeeds(
    kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch, method: str, kind: str, what: str
) -> None:
    failing = Failing()
    monkeypatch.setattr(ShellController, method, failing.method(OSError("the register does not answer")))

    async def run(*arguments: str) -> str:
        # kubectl waits, and the operator's event loop must not.
        return await asyncio.to_thread(kubectl, *arguments)

    async with operator_here(kubectl):
        await asyncio.to_thread(kubectl.apply, shell(size=1))
        await asyncio.to_thread(await_condition, kubectl, "ShellsNotReady")
        await run("delete", what, "--wait=false")
        condition = await asyncio.to_thread(await_condition, kubectl, "CleanupFailed")
        assert (condition["status"], "the register does not answer" in condition["message"]) == ("False", True)
        await async_until("it is not retried", lambda: failing.calls >= 3)
        events = await async_eventually(
            lambda: run("events", f"--for={what}", "--no-headers"), lambda found: "CleanupFailed" in found
        )
        assert f"{kind} {SAMPLE} cannot go" in events
        assert FINALIZER in await run("get", what, "-o", "yaml")
        failing.mended = True
        if kind == "MyOwnShell":
            await run("wait", SHELL, "--for=delete", "--timeout=60s")
            await run("wait", DEPLOYMENT, "--for=delete", "--timeout=60s")
        else:
            await asyncio.to_thread(await_condition, kubectl, "ShellsNotReady")


async def test_a_cleanup_that_gives_up_says_so_and_keeps_its_object(
    kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Failing()
    monkeypatch.setattr(ShellController, "clean_up", failing.method(TerminalError("the register knows no such shell")))
    async with operator_here(kubectl):
        await asyncio.to_thread(kubectl.apply, shell(size=0))
        await asyncio.to_thread(await_condition, kubectl, "ShellsReady")
        await asyncio.to_thread(kubectl, "delete", SHELL, "--wait=false")
        condition = await asyncio.to_thread(await_condition, kubectl, "CleanupFailed")
        assert "the register knows no such shell" in condition["message"]
        await asyncio.to_thread(kubectl, "patch", SHELL, "--type=merge", "-p", WITHOUT_FINALIZERS)
        await asyncio.to_thread(kubectl, "wait", SHELL, "--for=delete", "--timeout=60s")


def came_and_went(kubectl: Kubectl, start: Start) -> OperatorProcess:
    """An operator that made what the sample asks for, and has ended."""
    operator = start(f"--namespace={kubectl.namespace}").ready()
    kubectl("apply", "-f", str(MANIFESTS / "sample.yaml"))
    await_condition(kubectl, "ShellsNotReady")
    assert operator.stop() == 0
    return operator


def test_a_deployment_under_deletion_whose_owner_is_gone_is_cleaned_up_when_the_operator_is_back(
    kubectl: Kubectl, start: Start
) -> None:
    first = came_and_went(kubectl, start)
    kubectl("delete", SHELL, "--wait=false")
    kubectl("patch", SHELL, "--type=merge", "-p", WITHOUT_FINALIZERS)
    kubectl.wait(SHELL, "delete")
    eventually(lambda: kubectl("get", DEPLOYMENT, "-o", "yaml"), lambda found: "deletionTimestamp" in found)
    assert cleanups(first, kubectl) == []
    second = start(f"--namespace={kubectl.namespace}").ready()
    kubectl.wait(DEPLOYMENT, "delete")
    await_cleanups(second, kubectl, "Deployment")


def test_what_was_deleted_while_the_operator_was_away_is_cleaned_up_when_it_is_back(
    kubectl: Kubectl, start: Start
) -> None:
    came_and_went(kubectl, start)
    kubectl("delete", SHELL, "--cascade=foreground", "--wait=false")
    eventually(lambda: kubectl("get", DEPLOYMENT, "-o", "yaml"), lambda found: "deletionTimestamp" in found)
    second = start(f"--namespace={kubectl.namespace}").ready()
    kubectl.wait(SHELL, "delete")
    kubectl.wait(DEPLOYMENT, "delete")
    eventually(lambda: sorted(cleanups(second, kubectl)), lambda found: found == ["Deployment", "MyOwnShell"])
