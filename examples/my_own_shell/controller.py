"""The controller: of each MyOwnShell it makes a Deployment of the same name, and it cleans up before either goes."""

import logging
from typing import Any

from msgspec.structs import replace

from examples.my_own_shell.api import DEPLOYMENTS, GROUP, PODS, SHELLS, Deployment, MyOwnShellStatus, Pod, Shell
from operator_runtime import (
    Change,
    Condition,
    Finalizer,
    Forbidden,
    Invalid,
    NotOwned,
    ObjectKey,
    Operator,
    Result,
    RuntimeSettings,
    Stage,
    condition_of,
    owner_reference,
    reference,
    set_conditions,
)

logger = logging.getLogger(__name__)

FINALIZER = f"myownshell.{GROUP}/finalizer"
APP, SHELL_OF_POD = "myownshell", "myownshell_cr"
COMMAND = "echo The app is running, You can now ssh into for a while! && sleep 99999999 "


def set_up(operator: Operator, _settings: RuntimeSettings) -> None:
    """Put the operator together: what it watches, and what reconciles it."""
    shells = ShellController(operator)
    controller = operator.controller("myownshell", SHELLS, shells.reconcile)
    controller.owns(DEPLOYMENTS).watches(DEPLOYMENTS, shells.shell_of_deployment)
    controller.watches(PODS, shell_of_pod, labels=f"app={APP}")


def deployment_of(shell: Shell) -> dict[str, Any]:
    """Return the Deployment that a MyOwnShell specifies."""
    labels = {"app": APP, SHELL_OF_POD: shell.name}
    container = {
        "name": "busybox",
        "image": "docker.io/library/busybox:latest",
        "imagePullPolicy": "IfNotPresent",  # for :latest the default is to query a registry at each start
        "command": ["sh", "-c", COMMAND],
    }
    return {
        "metadata": {
            "name": shell.name,
            "namespace": shell.namespace,
            "finalizers": [FINALIZER],
            "ownerReferences": [owner_reference(SHELLS, shell)],
        },
        "spec": {
            "replicas": shell.spec.size,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def shell_of_pod(pod: Pod) -> ObjectKey | None:
    """Return the MyOwnShell of a pod."""
    name = pod.labels.get(SHELL_OF_POD)
    return ObjectKey(pod.namespace, name) if name else None


class ShellController:
    """Reconciles one MyOwnShell at a time: reads what there is, and changes what is not as desired."""

    def __init__(self, operator: Operator) -> None:
        client, events = operator.client, operator.events
        self._client, self._events = client, events
        self._shells, self._deployments = operator.informer(SHELLS), operator.informer(DEPLOYMENTS)
        self._owned = operator.owned(SHELLS, DEPLOYMENTS, on_change=self._log_change)
        self._pods = operator.informer(PODS, labels=f"app={APP}")
        self._pods.add_index("shell", shell_of_pod)
        self._finalizer = Finalizer(FINALIZER, client, SHELLS, self.clean_up, events=events, report=self._report)
        self._finalizer_of_deployments = Finalizer(
            FINALIZER, client, DEPLOYMENTS, self.clean_up_deployment, events=events, report=self._report_to_shell
        )

    async def clean_up(self, shell: Shell) -> None:
        """Clean up before a MyOwnShell is deleted, and again after a failure."""
        logger.info("Successfully finalized MyOwnShell")

    async def clean_up_deployment(self, deployment: Deployment) -> None:
        """Clean up before a Deployment is deleted, with its MyOwnShell or without, and again after a failure."""
        logger.info("Successfully finalized Deployment")

    def shell_of_deployment(self, deployment: Deployment) -> ObjectKey | None:
        """Return the MyOwnShell of a Deployment without an owner: it awaits the cleanup, or blocks a MyOwnShell."""
        concerned = FINALIZER in deployment.finalizers or self._shells.get(deployment.key) is not None
        return deployment.key if concerned else None

    async def reconcile(self, key: ObjectKey) -> Result:
        """Reconcile one MyOwnShell, whatever has happened to its objects."""
        shell, deployment = self._shells.get(key), self._deployments.get(key)
        if deployment is not None and deployment.deleting:
            await self._finalizer_of_deployments.finalize(deployment)
        if shell is not None:
            stage, shell = await self._finalizer.finalize(shell)
            if stage is Stage.LIVE:
                try:
                    condition = await self._ensure_deployment(shell)
                except (Forbidden, Invalid) as error:  # by a quota, for example
                    await self._report(shell, Condition("Ready", "False", "Refused", str(error)))
                    raise
                await self._report(shell, condition)
        return Result()

    async def _ensure_deployment(self, shell: Shell) -> Condition:
        """Ensure the Deployment; return the condition Ready as it is then."""
        last = condition_of(shell.status.conditions, "Ready")
        desired_changed = last is None or last.observedGeneration != shell.generation
        try:
            deployment, waiting = await self._owned.ensure(
                shell, deployment_of(shell), seen=last is not None, desired_changed=desired_changed
            )
        except NotOwned as error:  # its deletion requests a reconcile, as all Deployments are watched
            about = reference(SHELLS, shell)
            self._events.emit(about, type="Warning", reason="NotControlled", action="Create", note=str(error))
            return Condition("Ready", "False", "NotControlled", str(error))
        if deployment is None:
            return Condition("Ready", "False", "DeploymentGoing", waiting)
        ready, size = deployment.status.readyReplicas, shell.spec.size
        message = f"{ready} of {size} shells are ready."
        if ready == size:
            return Condition("Ready", "True", "ShellsReady", message)
        return Condition("Ready", "False", "ShellsNotReady", message)

    def _log_change(self, shell: Shell, change: Change[Deployment]) -> None:
        logger.info("Updating the Deployment" if change.before else "Creating a new Deployment")

    async def _report(self, shell: Shell, condition: Condition) -> None:
        """Write the status of a MyOwnShell, if it differs."""
        pods = [pod for pod in self._pods.by_index("shell", shell.key) if pod.status.phase in ("Pending", "Running")]
        ready = replace(condition, type="Ready")  # also where it says that a cleanup failed
        status = MyOwnShellStatus(
            nodes=tuple(sorted(pod.name for pod in pods if not pod.deleting)),
            conditions=set_conditions(shell.status.conditions, [ready], generation=shell.generation),
        )
        await self._client.patch_status(SHELLS, shell, status)

    async def _report_to_shell(self, deployment: Deployment, condition: Condition) -> None:
        if (shell := self._shells.get(deployment.key)) is not None:
            await self._report(shell, condition)
