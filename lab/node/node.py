"""A real node: the lab's control plane with a kubelet, containers, a pod network, Services and DNS beside it.

All of the node runs in process, mount and network namespaces of its own. The API server listens on the machine's end
of the link to them, so that tests and kubectl reach it without entering, and pods reach it by the Service
``kubernetes``. The machine reaches pods and Services by their addresses.
"""

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lab.control_plane import ControlPlane, Options
from lab.image import images
from lab.kubectl import LabError
from lab.node import config, dns, image_store, network, remains
from lab.node.namespace import OwnNamespaces
from lab.process import Program
from lab.programs import kubernetes
from lab.state import StateDir

NODE_NAME = "node"

_READY_DEADLINE_S = 120.0
_POLL_S = 0.05
_NODE_USER = f"system:node:{NODE_NAME}"
# Whom the kubelet takes for the API server, when it asks for logs or to run a command in a container.
_APISERVER_USER = "kube-apiserver-kubelet-client"


class Node:
    """One single-node cluster; a context manager. Not thread-safe, and blocking: for tests and people.

    Raises:
        BuildError: from the constructor, when the programs are not built and cannot be.
        LabError: from every method, when a program does not do its part; from the constructor also when the machine
            lacks a program or the caller a privilege.
    """

    def __init__(self) -> None:
        check_machine()
        self._bin = kubernetes.build()
        self._images = (images.pause_image(config.PAUSE_IMAGE), dns.image())
        self._state = StateDir()
        try:
            self._make()
        except BaseException:
            self._state.close()
            raise

    def _make(self) -> None:
        self.directory = self._state.path
        remains.make_cgroups(self.directory)
        self.namespaces = OwnNamespaces(self.directory)
        self.addresses = network.connect(remains.link_name(self.directory), self.namespaces.pid)
        pki = self.directory / "pki"
        client = [f"--kubelet-client-{kind}={pki}/{_APISERVER_USER}.{end}" for kind, end in _CLIENT_FILES]
        self.plane = ControlPlane(
            Options(
                address=self.addresses.host,
                service_range=self.addresses.services,
                apiserver_arguments=[
                    *client,
                    f"--kubelet-certificate-authority={pki}/ca.crt",
                    "--kubelet-preferred-address-types=InternalIP",
                    "--allow-privileged",
                ],
            ),
            self._state,
        )
        self.plane.authority.client(_APISERVER_USER, _APISERVER_USER, ["system:masters"])
        self._containerd = self._containerd_program()
        self._kubelet = self._kubelet_program()
        self._proxy = self._proxy_program()
        self._scheduler = self._scheduler_program()

    @property
    def kubeconfig_path(self) -> Path:
        """The administrator's."""
        return self.plane.kubeconfig_path

    @property
    def server(self) -> str:
        """The API server's URL, for clients on this machine; a pod has the variables of the Service."""
        return self.plane.server

    @property
    def address(self) -> str:
        """The node's InternalIP, reached from this machine."""
        return self.addresses.node

    def start(self) -> "Node":
        """Start everything and return when pods can be made: the node is ready, and DNS answers."""
        self._containerd.start()
        self.plane.start()
        self._await(lambda: image_store.runtime_answers(self.namespaces), self._containerd, "no answer to ctr")
        for archive in self._images:
            self.load_image(archive)
        for program in (self._kubelet, self._proxy, self._scheduler):
            program.start()
        self.kubectl("apply", "-f", "-", input=dns.objects(self.addresses))
        self._await(self._is_ready, self._kubelet, "the node is not ready")
        self._await(self._has_dns, self._kubelet, "CoreDNS is not available")
        return self

    def stop(self) -> None:
        """End everything and leave nothing behind; can be called twice."""
        for program in (self._scheduler, self._proxy, self._kubelet, self._containerd):
            program.kill()
        self.plane.stop()
        self.namespaces.close()

    def __enter__(self) -> "Node":
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()

    def kubectl(
        self, *arguments: str, input: str | None = None, check: bool = True, kubeconfig: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the real kubectl, as the administrator or as the user of another kubeconfig.

        Raises:
            LabError: it failed, and ``check`` is true.
        """
        return self.plane.kubectl(*arguments, input=input, check=check, kubeconfig=kubeconfig)

    def load_image(self, archive: Path) -> None:
        """Put the images of an archive (``docker save``, ``buildah push … docker-archive:``) on the node.

        Pods name them as they are tagged there, with an ``imagePullPolicy`` other than Always: no registry is reached.
        """
        image_store.load(self.namespaces, archive)

    def images(self) -> list[str]:
        """The names of the images on the node, in full."""
        return image_store.names(self.namespaces)

    def exec_in_network(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program of this machine in the node's network, where it is what a process of the node would be.

        Raises:
            LabError: it failed.
        """
        return self.namespaces.run(*command, only_network=True, timeout_s=60.0)

    def container_pid(self, namespace: str, pod: str, container: str) -> int:
        """The process id, on this machine, of a container's first process: to send it signals.

        Raises:
            LabError: it does not run.
        """
        path = f"{{.status.containerStatuses[?(@.name=='{container}')].containerID}}"
        found = self.kubectl("-n", namespace, "get", "pod", pod, "-o", f"jsonpath={path}").stdout
        pids = {
            pid: inside
            for pid in remains.processes(self.directory, found.removeprefix("containerd://"))
            if (inside := _namespace_pids(pid))
        }
        if pids:  # not 1 where the containers of a pod share their processes
            return min(pids, key=lambda pid: pids[pid][-1])
        raise LabError(f"container {container} of pod {namespace}/{pod} does not run")

    def _is_ready(self) -> bool:
        path = "jsonpath={.status.conditions[?(@.type=='Ready')].status}"
        return self.kubectl("get", "node", NODE_NAME, "-o", path, check=False).stdout == "True"

    def _has_dns(self) -> bool:
        path = "jsonpath={.status.readyReplicas}"
        found = self.kubectl("-n", "kube-system", "get", "deployment", "coredns", "-o", path, check=False)
        return found.stdout == "1"

    def _await(self, condition: Callable[[], bool], program: Program, complaint: str) -> None:
        deadline = time.monotonic() + _READY_DEADLINE_S
        while not condition():
            ended = program.pid is None
            if ended or time.monotonic() > deadline:
                state = "ended" if ended else f"is still at it after {_READY_DEADLINE_S:.0f} s"
                pods = self.kubectl("get", "pods,events", "-A", check=False).stdout
                raise LabError(f"{complaint}; {program.name} {state}:\n{program.log_tail()}\n{pods}")
            time.sleep(_POLL_S)

    def _containerd_program(self) -> Program:
        cni = self._file("cni/10-lab.conflist", network.cni_configuration(self.addresses)).parent
        file = self._file("containerd.toml", config.containerd(cni))
        return self._program("containerd", ["containerd", f"--config={file}"])

    def _kubelet_program(self) -> Program:
        identity = config.KubeletIdentity(
            authority=self.plane.ca_path,
            serving=self.plane.authority.server("kubelet", [self.address, NODE_NAME]),
            kubeconfig=self.plane.user_kubeconfig(_NODE_USER, ["system:nodes"]),
        )
        file = config.kubelet(
            self.addresses,
            identity,
            cgroup_root=remains.cgroup_name(self.directory),
            resolv_conf=self._file("resolv.conf", ""),  # of pods that want no cluster DNS: there is no other
        )
        command = [
            str(self._bin / "kubelet"),
            f"--config={self._file('kubelet.json', file)}",
            f"--kubeconfig={identity.kubeconfig}",
            f"--hostname-override={NODE_NAME}",
            f"--node-ip={self.address}",
        ]
        return self._program("kubelet", command)

    def _proxy_program(self) -> Program:
        kubeconfig = self.plane.user_kubeconfig("system:kube-proxy")
        file = config.kube_proxy(self.addresses, kubeconfig, NODE_NAME)
        command = [str(self._bin / "kube-proxy"), f"--config={self._file('kube-proxy.json', file)}"]
        return self._program("kube-proxy", command)

    def _scheduler_program(self) -> Program:
        kubeconfig = self.plane.user_kubeconfig("system:kube-scheduler")
        command = [str(self._bin / "kube-scheduler"), f"--kubeconfig={kubeconfig}", "--leader-elect=false"]
        # Of no node, it runs beside the controller-manager.
        return Program([*command, "--secure-port=0"], self.directory / "kube-scheduler.log")

    def _program(self, name: str, command: Sequence[str]) -> Program:
        return self.namespaces.program(name, command, self.directory / f"{name}.log")

    def _file(self, name: str, content: str) -> Path:
        path = self.directory / "node-config" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path


_CLIENT_FILES = (("certificate", "crt"), ("key", "key"))


def check_machine() -> None:
    """Check that a node can be started here at all. Raises LabError: it cannot; the message says what to do."""
    if os.geteuid() != 0:
        raise LabError("a node takes root, for namespaces and containers; start it with sudo")
    if lacking := config.missing():
        packages = " ".join(sorted(set(lacking.values())))
        raise LabError(f"a node needs {', '.join(lacking)}: on Debian, apt-get install {packages}")


def _namespace_pids(pid: int) -> list[int]:
    """List the process's ids in each of the namespaces that it is in, the innermost last; none if it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return []
    return next(([*map(int, line.split()[1:])] for line in status.splitlines() if line.startswith("NSpid:")), [])
