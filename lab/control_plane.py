"""A real control plane: etcd, kube-apiserver and kube-controller-manager with fresh state, on loopback by itself.

There is no kubelet and no scheduler: Deployments become ReplicaSets and Pods, and Pods stay Pending. ``lab.node`` adds
what is missing.
"""

import contextlib
import http
import ipaddress
import json
import random
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kube_simulator.access import kubeconfig, pki
from lab import audit, kubectl
from lab.kubectl import LabError
from lab.process import Program
from lab.programs import kubernetes, kubernetes_releases
from lab.state import StateDir

_HOST = "127.0.0.1"
# Below Linux's ephemeral range (32768 and up): no outgoing connection can take the API server's port while it is down.
_PORTS = range(20_000, 32_000)
_READY_DEADLINE_S = 60.0
_POLL_S = 0.05
_PROBE_TIMEOUT_S = 5.0
_REQUEST_TIMEOUT_S = 60.0
# Well above what two cores can do, so that a load test measures the operator and not the controllers' defaults.
_CONTROLLER_QPS = 2_000
# etcd refuses writes beyond 2 GiB by default; tens of thousands of objects with all versions of minutes come near it.
_ETCD_QUOTA_BYTES = 8 * 2**30
_CONTROLLER_SYNCS = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options in which one control plane can differ from another."""

    audit_users: Sequence[str] | None = None
    """Whose requests the audit log has; None: everybody's but the control plane's own."""
    admission_plugins: Sequence[str] = ()
    """Admission plugins besides the default ones, such as ``OwnerReferencesPermissionEnforcement``."""
    apiserver_arguments: Sequence[str] = ()
    """More arguments for kube-apiserver."""
    address: str = _HOST
    """Where the API server listens; one that is not loopback is also published to the cluster."""
    service_range: str = "10.96.0.0/16"
    """The addresses of Services, in CIDR notation."""


class _ExistsError(LabError):
    """Error for a name that exists already."""


class ControlPlane:
    """One control plane; a context manager. Not thread-safe, and blocking: for tests, benchmarks and people.

    Raises:
        BuildError: from the constructor, when the programs are not built and cannot be.
        LabError: from every method, when a program does not do its part.
    """

    def __init__(self, options: Options = Options(), state: StateDir | None = None) -> None:
        """
        Args:
            state: where everything of it lies, and ends with it; without one it makes its own.
        """
        self._bin = kubernetes_releases.chosen()
        self._kubectl = kubernetes.kubectl()
        self._state = state or StateDir()
        self.directory = self._state.path
        self.address = options.address
        self.port, etcd_port, peer_port = _free_ports(3)
        self.server = f"https://{self.address}:{self.port}"
        self.authority = pki.Authority(self.directory / "pki", "memcached-operator lab")
        self.ca_path = self.authority.certificate
        # People copy its path: a short one fits into a line of a terminal.
        self.kubeconfig_path = self.directory / "kubeconfig"
        self.kubeconfig_path.symlink_to(self.user_kubeconfig("lab-admin", ["system:masters"]))
        self._context = self._client_context()
        self._etcd = self._program("etcd", _etcd_arguments(self.directory, etcd_port, peer_port))
        self._apiserver = self._program("kube-apiserver", self._apiserver_arguments(options, etcd_port))
        self._controller_manager = self._program("kube-controller-manager", self._controller_arguments())

    def start(self) -> "ControlPlane":
        """Start everything and return when a client can work: ready, and in the default namespace what each has."""
        self._etcd.start()
        self._apiserver.start()
        self._controller_manager.start()
        self._await(self._apiserver, "/readyz")
        # Once more, if it ended: it gives up on an API server that takes more than 10 s, as on a busy machine.
        self._controller_manager.start()
        self._await(self._controller_manager, "/api/v1/namespaces/default/serviceaccounts/default")
        self._await(self._controller_manager, "/api/v1/namespaces/default/configmaps/kube-root-ca.crt")
        return self

    def stop(self) -> None:
        """End everything and remove all state; can be called twice."""
        for program in (self._controller_manager, self._apiserver, self._etcd):
            program.kill()
        self._state.close()

    def __enter__(self) -> "ControlPlane":
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()

    # The parts, for tests of what happens when one goes away.

    def kill_apiserver(self) -> None:
        """End the API server at once, as a crash would."""
        self._apiserver.kill()

    def start_apiserver(self) -> None:
        """Start the API server again, on the same port and state."""
        self._apiserver.start()
        self._await(self._apiserver, "/readyz")

    def restart_apiserver(self) -> None:
        """Crash the API server and start it again."""
        self.kill_apiserver()
        self.start_apiserver()

    def hanging_apiserver(self) -> AbstractContextManager[None]:
        """Stop the API server until the end of the block, with its connections open."""
        return self._apiserver.frozen()

    def hanging_etcd(self) -> AbstractContextManager[None]:
        """Stop etcd until the end of the block: the API server answers from its caches, and writes nothing."""
        return self._etcd.frozen()

    def stop_controller_manager(self) -> None:
        """End the controller-manager: Deployments are accepted, and nothing comes of them."""
        self._controller_manager.kill()

    def start_controller_manager(self) -> None:
        """Start the controller-manager again."""
        self._controller_manager.start()

    @property
    def apiserver_pid(self) -> int | None:
        """The API server's process id while it runs."""
        return self._apiserver.pid

    @property
    def etcd_pid(self) -> int | None:
        """etcd's process id while it runs."""
        return self._etcd.pid

    # What a user has.

    def kubectl(
        self, *arguments: str, input: str | None = None, check: bool = True, kubeconfig: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the real kubectl, as the administrator or as the user of another kubeconfig.

        Raises:
            LabError: it failed, and ``check`` is true.
        """
        return kubectl.run(
            self._kubectl,
            *arguments,
            kubeconfig=kubeconfig or self.kubeconfig_path,
            home=self.directory,
            input=input,
            check=check,
        )

    def user_kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig that authenticates as this user and these groups, and may do what RBAC gives them."""
        file_name = user.replace(":", "-").replace("/", "-")
        client = self.authority.client(file_name, user, groups)
        return kubeconfig.write(
            self.directory / "users" / f"{file_name}.kubeconfig",
            name="lab",
            server=self.server,
            authority=self.ca_path,
            user=user,
            credential=client,
        )

    def service_account_dir(self, namespace: str, name: str, *, duration_s: int = 3600) -> Path:
        """A folder with ``token``, ``ca.crt`` and ``namespace`` as a pod of this service account has it.

        The account is made if it is missing; a second call writes a new token into the same folder, as a rotation
        does. The API server grants no token shorter than 600 s.
        """
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        with contextlib.suppress(_ExistsError):
            self._create(accounts, {"metadata": {"name": name}})
        request = self._create(f"{accounts}/{name}/token", {"spec": {"expirationSeconds": duration_s}})
        token = request["status"]["token"]
        directory = self.directory / "service-accounts" / namespace / name
        return kubeconfig.write_account(directory, token=token, authority=self.ca_path, namespace=namespace)

    @property
    def in_cluster_environment(self) -> dict[str, str]:
        """The variables by which a pod finds the API server."""
        return {"KUBERNETES_SERVICE_HOST": self.address, "KUBERNETES_SERVICE_PORT": str(self.port)}

    # What the API server was asked.

    def audit_mark(self) -> audit.Mark:
        """The present moment, for ``audit_events(since=…)``."""
        return audit.mark(self.audit_log)

    def audit_events(
        self, *, since: audit.Mark = audit.START, user: str | None = None, user_agent: str | None = None
    ) -> list[audit.AuditEvent]:
        """The requests since a mark, by one user or by programs whose User-Agent begins so; one for each request."""
        return audit.read(self.audit_log, since, user=user, user_agent=user_agent)

    @property
    def audit_log(self) -> Path:
        """A JSON line for each stage of each request."""
        return self.directory / "audit.log"

    def _program(self, name: str, arguments: Sequence[str]) -> Program:
        return Program([str(self._bin / name), *arguments], self.directory / f"{name}.log")

    def _apiserver_arguments(self, options: Options, etcd_port: int) -> list[str]:
        policy = self.directory / "audit-policy.json"
        policy.write_text(audit.policy(options.audit_users))
        names = [f"kubernetes{suffix}" for suffix in ("", ".default", ".default.svc", ".default.svc.cluster.local")]
        # Clients inside the cluster come by the first service address.
        service = str(ipaddress.ip_network(options.service_range)[1])
        serving = self.authority.server("apiserver", ["localhost", self.address, service, *names])
        loopback = ipaddress.ip_address(self.address).is_loopback
        token_key = pki.token_key(self.directory / "pki")
        plugins = ",".join(options.admission_plugins)
        return [
            f"--etcd-servers=http://{_HOST}:{etcd_port}",
            f"--bind-address={self.address}",
            f"--secure-port={self.port}",
            f"--advertise-address={self.address}",
            # No other than `none` publishes a loopback address.
            f"--endpoint-reconciler-type={'none' if loopback else 'master-count'}",
            f"--tls-cert-file={serving.certificate}",
            f"--tls-private-key-file={serving.key}",
            f"--client-ca-file={self.ca_path}",
            f"--cert-dir={self.directory}/pki",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={token_key}",
            f"--service-account-signing-key-file={token_key}",
            f"--service-cluster-ip-range={options.service_range}",
            "--authorization-mode=Node,RBAC",
            f"--audit-policy-file={policy}",
            f"--audit-log-path={self.audit_log}",
            "--audit-log-maxsize=100000",  # MiB: no rotation in the middle of a measurement
            *([f"--enable-admission-plugins={plugins}"] if plugins else []),
            *options.apiserver_arguments,
        ]

    def _controller_arguments(self) -> list[str]:
        config = self.user_kubeconfig("system:kube-controller-manager")
        concurrent = ("deployment", "replicaset", "gc", "namespace")
        return [
            f"--kubeconfig={config}",
            "--leader-elect=false",
            "--secure-port=0",
            f"--root-ca-file={self.ca_path}",
            f"--service-account-private-key-file={self.directory}/pki/service-accounts.key",
            "--use-service-account-credentials=true",
            f"--flex-volume-plugin-dir={self.directory}/volume-plugins",  # else made below /usr/libexec
            f"--kube-api-qps={_CONTROLLER_QPS}",
            f"--kube-api-burst={2 * _CONTROLLER_QPS}",
            *(f"--concurrent-{name}-syncs={_CONTROLLER_SYNCS}" for name in concurrent),
        ]

    def _client_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca_path)
        pki_dir = self.directory / "pki"
        context.load_cert_chain(pki_dir / "lab-admin.crt", pki_dir / "lab-admin.key")
        return context

    def _create(self, path: str, body: object) -> Any:
        """Create an object as the administrator, without a kubectl, of which there would be hundreds in a run."""
        request = urllib.request.Request(
            self.server + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=_REQUEST_TIMEOUT_S, context=self._context) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                words = error.read().decode(errors="replace")
            raise (_ExistsError if error.code == http.HTTPStatus.CONFLICT else LabError)(
                f"POST {path}: {words}"
            ) from None
        except OSError as error:
            raise LabError(f"POST {path}: {error}") from error

    def _await(self, program: Program, path: str) -> None:
        def answers() -> bool:
            try:
                with urllib.request.urlopen(
                    self.server + path, timeout=_PROBE_TIMEOUT_S, context=self._context
                ) as answer:
                    return bool(answer.status == 200)
            except (urllib.error.URLError, OSError):
                return False

        _wait_until(answers, program, f"GET {path} does not give 200")


def _wait_until(condition: Callable[[], bool], program: Program, complaint: str) -> None:
    deadline = time.monotonic() + _READY_DEADLINE_S
    while not condition():
        if program.pid is None:
            raise LabError(f"{program.name} ended; its last words:\n{program.log_tail()}")
        if time.monotonic() > deadline:
            raise LabError(f"{complaint} after {_READY_DEADLINE_S:.0f} s; {program.name} says:\n{program.log_tail()}")
        time.sleep(_POLL_S)


def _etcd_arguments(directory: Path, client_port: int, peer_port: int) -> list[str]:
    client, peer = f"http://{_HOST}:{client_port}", f"http://{_HOST}:{peer_port}"
    return [
        f"--data-dir={directory}/etcd",
        "--name=lab",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=lab={peer}",
        f"--quota-backend-bytes={_ETCD_QUOTA_BYTES}",
        "--unsafe-no-fsync",  # the state does not outlive the process anyway
        "--log-level=warn",
    ]


def _free_ports(count: int) -> list[int]:
    ports: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as candidate:
            try:
                candidate.bind((_HOST, port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise LabError(f"no {count} free ports between {_PORTS.start} and {_PORTS.stop}")
