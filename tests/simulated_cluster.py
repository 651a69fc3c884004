"""The simulator as a cluster of our tests: the testing kit's, with the real kubectl and the lab's audit log."""

from __future__ import annotations

import contextlib
import json
import subprocess
from functools import partial
from pathlib import Path

from kube_simulator import Options
from lab import audit, kubectl
from lab.cache import NotBuiltError
from lab.programs import kubernetes
from operator_runtime.testing import cluster


class SimulatedCluster(cluster.SimulatedCluster):
    """One simulator with pods that stay Pending, as on a control plane without nodes; a context manager.

    ``tests.cluster.Cluster`` says what each part does.

    Raises:
        BuildError: from the constructor, when there is no kubectl and none can be built; in a run that builds nothing,
            from the first call of ``kubectl``.
    """

    def __init__(self, *, streaming_lists: bool = True) -> None:
        with contextlib.suppress(NotBuiltError):
            kubernetes.kubectl_path()
        super().__init__(Options(pods_ready_after_s=None, memcached=False, streaming_lists=streaming_lists))

    def kubectl(
        self, *arguments: str, input: str | None = None, check: bool = True, kubeconfig: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the real kubectl, as the administrator or as the user of another kubeconfig.

        Raises:
            BuildError: there is no kubectl, and none can be built.
            LabError: it failed, and ``check`` is true.
        """
        run = partial(
            kubectl.run,
            kubernetes.kubectl_path(),
            kubeconfig=kubeconfig or self.kubeconfig_path,
            home=self.simulator.directory,
            check=check,
        )
        if "create" not in arguments or {"-f", "--raw"} & set(arguments):
            return run(*arguments, input=input)
        # It would send its own kinds in protobuf, which the simulator does not read: it writes the JSON instead.
        dry = [each for each in arguments if each.startswith("--dry-run")]
        made = run(*(each for each in arguments if each not in dry), "--dry-run=client", "--output=json", input=input)
        if made.returncode != 0:
            return made
        namespace = json.loads(made.stdout)["metadata"].get("namespace")  # by a flag before or after the command
        where = ("--namespace", namespace) if namespace else ()
        return run(*arguments[: arguments.index("create") + 1], *where, *dry, "-f", "-", input=made.stdout)

    def audit_mark(self) -> audit.Mark:
        return audit.mark(self.simulator.audit_log)

    def audit_events(
        self, *, since: audit.Mark = audit.START, user: str | None = None, user_agent: str | None = None
    ) -> list[audit.AuditEvent]:
        return audit.read(self.simulator.audit_log, since, user=user, user_agent=user_agent)
