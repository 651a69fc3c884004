"""A kubelet's part on a cluster without nodes: pods get an address and become ready, and those of the operator are real
processes.

So that a document's outputs are those of a cluster with nodes, and an operator that was installed from a manifest runs
with the manifest's flags, variables and account.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections.abc import Mapping
from typing import Any, Self

from lab.programs import kubernetes
from tests.cluster import Cluster
from tests.operator_process import IN_SYNC, OperatorProcess

_OPERATOR = "memcached-operator"
# Those that the manifests name are taken on this machine, maybe by another replica.
_NO_PORTS = ("--health-probe-bind-address=0", "--metrics-bind-address=0")
_WATCH = "/api/v1/pods?watch=1&timeoutSeconds=3600"


class FakeKubelet:
    """A context manager: as long as it is open, each pod runs."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._operators: dict[str, OperatorProcess] = {}
        self._seen: set[str] = set()
        self._watch: subprocess.Popen[str]
        self._thread = threading.Thread(target=self._run, name="fake kubelet", daemon=True)

    def __enter__(self) -> Self:
        self._watch = subprocess.Popen(
            [kubernetes.kubectl_path(), "--kubeconfig", str(self._cluster.kubeconfig_path), "get", "--raw", _WATCH],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.kill()
        self._watch.wait()
        self._thread.join()
        for operator in self._operators.values():
            operator.kill()

    @property
    def log(self) -> str:
        """What the operators logged, for the message of a test that fails."""
        return "\n".join(operator.log for operator in [*self._operators.values()])

    def _run(self) -> None:
        assert self._watch.stdout is not None
        with self._watch.stdout as events:
            for line in events:
                event = json.loads(line)
                self._see(event["type"], event["object"])

    def _see(self, type_: str, pod: dict[str, Any]) -> None:
        uid = pod["metadata"]["uid"]
        if type_ == "DELETED":
            if operator := self._operators.pop(uid, None):
                operator.stop()
            return
        if uid in self._seen or "deletionTimestamp" in pod["metadata"]:
            return
        self._seen.add(uid)
        self._end_disruption(pod)
        if pod["spec"]["containers"][0]["name"] == _OPERATOR:
            self._operators[uid] = self._start(pod)
            self._operators[uid].wait_for_log(IN_SYNC)
        self._report(pod)

    def _end_disruption(self, pod: Mapping[str, Any]) -> None:
        """Have budgets take a server for there whose former pod of the same name was evicted.

        Without a kubelet that pod is gone at once, and the disruption controller may never see that: it would wait two
        minutes for its end.
        """
        name, namespace = pod["metadata"]["name"], f"--namespace={pod['metadata']['namespace']}"
        if all(owner["kind"] != "StatefulSet" for owner in pod["metadata"].get("ownerReferences", ())):
            return
        budgets = json.loads(self._cluster.kubectl("get", "pdb", namespace, "--output=json").stdout)["items"]
        body = json.dumps({"status": {"disruptedPods": {name: None}}})
        for budget in budgets:
            if name in budget["status"].get("disruptedPods", {}):
                of = budget["metadata"]["name"]
                self._cluster.kubectl(
                    "patch", "pdb", of, namespace, "--subresource=status", "--type=merge", f"--patch={body}"
                )

    def _start(self, pod: Mapping[str, Any]) -> OperatorProcess:
        container = pod["spec"]["containers"][0]
        fields = {"metadata.name": pod["metadata"]["name"], "metadata.namespace": pod["metadata"]["namespace"]}
        variables = {
            variable["name"]: fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
            if "valueFrom" in variable
            else variable.get("value", "")
            for variable in container["env"]
        }
        account = self._cluster.service_account_dir(pod["metadata"]["namespace"], pod["spec"]["serviceAccountName"])
        return OperatorProcess(
            *container["args"],
            *_NO_PORTS,
            f"--service-account-dir={account}",
            environment={**self._cluster.in_cluster_environment, **variables},
        )

    def _report(self, pod: Mapping[str, Any]) -> None:
        running = [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": container["image"],
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": pod["metadata"]["creationTimestamp"]}},
            }
            for container in pod["spec"]["containers"]
        ]
        ready = [{"type": "Ready", "status": "True"}]
        number = len(self._seen)
        address = f"10.244.{number // 256}.{number % 256}"
        status = {"phase": "Running", "conditions": ready, "containerStatuses": running}
        body = {"status": status | {"podIP": address, "podIPs": [{"ip": address}]}}
        with contextlib.suppress(subprocess.SubprocessError):  # it may be gone
            self._cluster.kubectl(
                "patch",
                "pod",
                pod["metadata"]["name"],
                f"--namespace={pod['metadata']['namespace']}",
                "--subresource=status",
                "--type=strategic",
                f"--patch={json.dumps(body)}",
                check=False,
            )
