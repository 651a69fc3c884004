"""A Kubernetes API in this process, with the controllers behind it: the composition root.

    async with Simulator(Options(pods_ready_after_s=0.5)) as simulator:
        os.environ["KUBECONFIG"] = str(simulator.kubeconfig_path)
        ...
        await simulator.kill_apiserver()
        await simulator.start_apiserver()

Everything lives on the event loop that entered it, and in memory, save for a folder with certificates, kubeconfigs and
the audit log.
"""

from __future__ import annotations

import asyncio
import random
import re
import socket
import ssl
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from kube_simulator.access import bootstrap, kubeconfig, pki
from kube_simulator.access.authorizer import Authorizer
from kube_simulator.access.reviews import Reviews
from kube_simulator.access.tokens import Tokens
from kube_simulator.access.users import MASTERS
from kube_simulator.controllers.controller import Context
from kube_simulator.controllers.crds import CustomResources
from kube_simulator.controllers.manager import ControllerManager
from kube_simulator.faults import Faults
from kube_simulator.http.audit import AuditLog
from kube_simulator.http.discovery import Discovery
from kube_simulator.http.server import HttpServer, Parts
from kube_simulator.http.verbs import Verbs
from kube_simulator.requests.api import Api
from kube_simulator.requests.types import Caller, User
from kube_simulator.resources import Registry
from kube_simulator.schema import kubernetes
from kube_simulator.state import state_directory
from kube_simulator.store.store import Store
from kube_simulator.store.watches import Watches

ADMINISTRATOR = "lab-admin"
# Below Linux's ephemeral range (32768 and up): no outgoing connection can take the port while the server is down.
_PORTS = range(20_000, 32_000)
# Only something that never comes runs into it.
_READY_DEADLINE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options in which one simulator can differ from another."""

    host: str = "127.0.0.1"
    """The address to listen on; whoever reaches it and has a credential may come in."""
    port: int = 0
    """0 picks one that is free."""
    directory: Path | None = None
    """Where the folder of the simulator's state is made; None: under the temporary folder."""
    pods_ready_after_s: float | None = 1.0
    """How long a pod takes to be ready; None: there are no nodes, and pods stay Pending."""
    memcached: Literal["auto", False] = "auto"
    """`auto` runs memcached for pods where it is on the PATH."""
    streaming_lists: bool = True
    """False answers 422 to `sendInitialEvents`, as Kubernetes without the feature WatchList."""
    name: str = "simulator"
    """Of the cluster and of the context in kubeconfigs."""


class Simulator:
    """One simulated cluster, from the beginning to the end of an `async with` block."""

    def __init__(self, options: Options = Options()) -> None:
        self.options = options
        self.faults = Faults()
        """Misbehaviour that the server is asked for; see `simulator.faults`."""
        self._ends = AsyncExitStack()
        self._stopped_controllers = False
        self._users = 0

    async def __aenter__(self) -> Self:
        """Start everything and return when a client can work: the default service account is there.

        Raises:
            OSError: the port is taken, or the folder cannot be made.
        """
        try:
            await self._begin()
        except BaseException:
            await self._ends.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End everything, with the pods' processes, and remove the folder."""
        await self._ends.aclose()

    async def _begin(self) -> None:
        """Start one part after another; they end in the opposite order."""
        options = self.options
        self.directory = self._ends.enter_context(state_directory(options.directory))
        """The folder with the certificates, the kubeconfigs and the audit log."""
        self._authority = pki.Authority(self.directory / "pki", f"memcached-operator {options.name}")
        self.ca_path = self._authority.certificate
        """The certificate of the authority that clients are to trust."""
        self.port = options.port or _free_port(options.host)
        self.server = f"https://{options.host}:{self.port}"
        """The URL under which it is reached."""
        self.audit_log = self.directory / "audit.log"
        """A JSON line for each request, as audit.k8s.io/v1 has it."""
        self._tls = self._serving_context()
        # People copy its path: a short one fits into a line of a terminal.
        self.kubeconfig_path = self.directory / "kubeconfig"
        self.kubeconfig_path.symlink_to(self.user_kubeconfig(ADMINISTRATOR, [MASTERS]))
        """The administrator's kubeconfig."""
        self._compose()
        self._ends.callback(self._audit.close)
        self._ends.push_async_callback(self._http.stop)
        self._ends.callback(self.faults.clear)
        for collection, found in bootstrap.objects(_now(), self.port):
            self.store.put(collection, found)
        self._crds.start()
        self._ends.push_async_callback(self._crds.stop)
        self._controllers.kubelet.controller.start()
        self._ends.push_async_callback(self._controllers.kubelet.stop)
        self._ends.push_async_callback(self._controllers.stop)
        await self.start_apiserver()
        await self._default_account()

    def _compose(self) -> None:
        options = self.options
        self.store, self.registry = Store(), Registry()
        for resource in kubernetes.builtin_resources():
            self.registry.put(resource)
        self._tokens = Tokens(self.store, _now)
        authorizer = Authorizer(self.store)
        watches = self._watches = Watches(self.store, time.monotonic)
        self._api = Api(self.store, self.registry, now=_now, may_create=authorizer.check_creation)
        context = self._context = Context(self._api, self.store, self.registry, _now)
        self._crds = CustomResources(context, watches)
        self._controllers = ControllerManager(
            context,
            ca_certificate=self.ca_path.read_text(),
            ready_after_s=options.pods_ready_after_s,
            real_memcached=options.memcached == "auto",
        )
        self._audit = AuditLog(self.audit_log, _now)
        self._http = HttpServer(
            Parts(
                verbs=Verbs(self._api, Reviews(authorizer, self._tokens), self._tokens, _now),
                watches=watches,
                discovery=Discovery(self.registry, lambda: f"{options.host}:{self.port}"),
                authenticate=self._tokens.authenticate,
                authorizer=authorizer,
                faults=self.faults,
                audit=self._audit,
                registry=self.registry,
                now=_now,
                streaming_lists=options.streaming_lists,
            )
        )

    # The parts, for tests of what happens when one goes away.

    async def stop_apiserver(self) -> None:
        """End the API server as an upgrade does: no new connections, streams end cleanly. The state stays."""
        await self._controllers.stop()
        await self._http.stop()

    async def kill_apiserver(self) -> None:
        """End the API server at once, as a crash would: connections are reset. The state stays."""
        self._http.kill()
        await self._controllers.stop()

    async def start_apiserver(self) -> None:
        """Start the API server again on the same port; watches of what was before are answered with 410.

        Raises:
            OSError: the port is taken.
        """
        await self._http.start(self.options.host, self.port, self._tls)
        if not self._stopped_controllers:
            await self._restart_controllers()

    async def stop_controller_manager(self) -> None:
        """End the controllers: Deployments are accepted, and nothing comes of them."""
        self._stopped_controllers = True
        await self._controllers.stop()

    async def start_controller_manager(self) -> None:
        """Start the controllers again."""
        self._stopped_controllers = False
        if self._http.serving:
            await self._restart_controllers()

    async def _restart_controllers(self) -> None:
        await self._controllers.stop()
        self._controllers.start()

    def crash_pod(self, namespace: str, name: str) -> None:
        """Kill the containers of a pod, as a want of memory does; the node starts them again.

        Raises:
            KeyError: no such pod runs.
        """
        self._controllers.kubelet.crash(namespace, name)

    def end_watches(self) -> None:
        """End all running watches cleanly."""
        self._watches.end_all()

    def forget_history(self) -> None:
        """Answer 410 to whoever wants to go on from a version before the present one; running watches go on."""
        self.store.forget()

    # What a user has.

    def user_kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig that authenticates as this user and these groups, and may do what RBAC gives them."""
        # Two users may differ in what no file name can have, or in their groups alone.
        self._users += 1
        file_name = f"{re.sub('[^-.0-9A-Za-z_]', '-', user)}-{self._users}"
        return kubeconfig.write(
            self.directory / "users" / f"{file_name}.kubeconfig",
            name=self.options.name,
            server=self.server,
            authority=self.ca_path,
            user=user,
            credential=self._authority.client(file_name, user, groups),
        )

    async def service_account_dir(self, namespace: str, name: str, *, duration_s: int = 3600) -> Path:
        """A folder with `token`, `ca.crt` and `namespace` as a pod of this service account has it.

        The account is made if it is missing; a second call writes a new token into the same folder, as a rotation does.

        Raises:
            ApiError: there is no such namespace, or the duration is less than 600 s.
        """
        if self.store.get("serviceaccounts", namespace, name) is None:
            body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
            caller = Caller(User(ADMINISTRATOR, frozenset({MASTERS})), "simulator")
            await self._api.create(self._context.target("serviceaccounts", namespace), body, caller)
        issued = self._tokens.request(namespace, name, {"spec": {"expirationSeconds": duration_s}})
        directory, token = self.directory / "service-accounts" / namespace / name, issued["status"]["token"]
        return kubeconfig.write_account(directory, token=token, authority=self.ca_path, namespace=namespace)

    @property
    def in_cluster_environment(self) -> dict[str, str]:
        """The variables by which a pod finds the API server."""
        return {"KUBERNETES_SERVICE_HOST": self.options.host, "KUBERNETES_SERVICE_PORT": str(self.port)}

    def _serving_context(self) -> ssl.SSLContext:
        names = [f"kubernetes{suffix}" for suffix in ("", ".default", ".default.svc", ".default.svc.cluster.local")]
        pair = self._authority.server("apiserver", ["localhost", self.options.host, *names])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        context.load_verify_locations(self.ca_path)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.set_alpn_protocols(["http/1.1"])
        return context

    async def _default_account(self) -> None:
        """Wait until the controllers have made what every namespace has."""
        made = asyncio.Event()
        unsubscribe = self.store.subscribe(lambda _: made.set(), "serviceaccounts")
        try:
            async with asyncio.timeout(_READY_DEADLINE_S):
                while self.store.get("serviceaccounts", "default", "default") is None:
                    await made.wait()
                    made.clear()
        finally:
            unsubscribe()


def _now() -> datetime:
    return datetime.now(UTC)


def _free_port(host: str) -> int:
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as candidate:
            try:
                candidate.bind((host, port))
            except OSError:
                continue
        return port
    raise OSError(f"no free port between {_PORTS.start} and {_PORTS.stop} on {host}")
