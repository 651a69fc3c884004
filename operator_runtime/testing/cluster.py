"""A Kubernetes API for tests: the simulator on a thread of its own.

    with SimulatedCluster() as cluster:
        cluster.install(SHOPS_CRD)
        async with cluster.operator(set_up) as operator, cluster.client() as client:
            await client.create(SHOPS, {"metadata": {"name": "corner", "namespace": "default"}, "spec": {"size": 3}})
            await async_eventually(lambda: client.get(DEPLOYMENTS, key), is_scaled, ignoring=NotFound)

One starts in about 10 ms, the first of a process in 30 ms, after some 0.7 s of imports: each test can have its own. The
thread is why a test may block (`subprocess.run`, `eventually`) while the API server answers. `docs/simulator.md` has
what it does as Kubernetes does, and what not.

It needs the extra `testing`, and no pytest; `plugin` has it as a fixture.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import orjson
import uvloop
import yaml

from kube_simulator.faults import Fault, Rule
from kube_simulator.simulator import Options, Simulator
from operator_runtime.client.access.auth import load_access
from operator_runtime.client.api_client import APPLY_PATCH, ApiClient
from operator_runtime.client.resources import Resource
from operator_runtime.controller.client import Client
from operator_runtime.crd.crd_generation import CustomResource, custom_resource_definition
from operator_runtime.identity import Program
from operator_runtime.operator import Operator
from operator_runtime.settings.runtime_settings import RuntimeSettings, S
from operator_runtime.testing.running import running_operator, settings_of
from operator_runtime.testing.waiting import DEADLINE_S, async_eventually

T = TypeVar("T")

Json = dict[str, Any]
Manifest = Mapping[str, object] | str | Path | CustomResource
"""One object as a dict; YAML of one or many, as text or as a file; a kind, of which its CRD is made."""

# Far above what anything here takes.
_CALL_DEADLINE_S = 60.0
_CRD: Final = "CustomResourceDefinition"
AGENT: Final = "memcached-operator-testing"
"""The field manager and the User-Agent of a test that acts as a user."""
OPTIONS: Final = Options(pods_ready_after_s=0.0, memcached=False)
"""Pods are ready as soon as they are made, and none is a process."""
UNDER_TEST: Final = Program("operator-under-test", "0.0.0")
"""An operator whose test does not name it."""


class SimulatedCluster:
    """One simulator, from the beginning to the end of a `with` block. Its methods are for one thread at a time.

    `options` is how the simulator differs from others: `pods_ready_after_s`, `streaming_lists`, ... Methods that are no
    coroutines block until the simulator's thread has done the work, which is well below a millisecond unless
    documented.
    """

    def __init__(self, options: Options = OPTIONS) -> None:
        self._options = options
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="simulator", daemon=True)
        self._ends = AsyncExitStack()
        self._api: ApiClient
        self.simulator: Simulator
        """The simulator itself, for its own thread alone: see `call` and `run`."""
        self.server: str
        """Its URL."""
        self.ca_path: Path
        """The certificate of the authority that clients are to trust."""
        self.kubeconfig_path: Path
        """The administrator's kubeconfig."""

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.simulator = self.run(self._begin())
        except BaseException:
            self._end_thread()
            raise
        self.server = self.simulator.server
        self.ca_path = self.simulator.ca_path
        self.kubeconfig_path = self.simulator.kubeconfig_path
        return self

    def __exit__(self, *_: object) -> None:
        try:
            # A client that is still connected would keep its connection open for longer than the loop lives.
            self.run(self.simulator.kill_apiserver())
            self.run(self._ends.aclose())
        finally:
            self._end_thread()

    async def _begin(self) -> Simulator:
        simulator = await self._ends.enter_async_context(Simulator(self._options))
        self._api = await self._ends.enter_async_context(_connection(simulator.kubeconfig_path))
        return simulator

    def _end_thread(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CALL_DEADLINE_S)
        self._loop.close()

    # What a user does.

    def install(self, *manifests: Manifest) -> list[Json]:
        """Apply manifests in a test or fixture that is no coroutine, before an operator runs. Blocks briefly."""
        return self.run(self._apply(manifests))

    async def apply(self, *manifests: Manifest) -> list[Json]:
        """Apply objects as the administrator, each server-side; what they are then.

        An object of a namespaced kind that names no namespace goes to `default`. A CustomResourceDefinition is served
        when this returns, so that objects of its kind may follow it.

        Args:
            manifests: dicts; YAML of one or many documents, as text or as a file's Path; a `crd.CustomResource`, which
                is a kind as pydantic models have it.

        Raises:
            ValueError: a document lacks apiVersion, kind or metadata.name, or nothing of that kind is served.
            KubeError: the API server refused one; those before it are applied.
        """
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._apply(manifests), self._loop))

    async def _apply(self, manifests: Sequence[Manifest]) -> list[Json]:
        return [await self._applied(body) for body in bodies(manifests)]

    async def _applied(self, body: Json) -> Json:
        resource = self._resource(body)
        namespace = (body["metadata"].get("namespace") or "default") if resource.namespaced else None
        name = body["metadata"]["name"]
        answer = await self._api.patch(
            resource, namespace, name, body, field_manager=AGENT, content_type=APPLY_PATCH, force=True
        )
        if resource.kind != _CRD:
            return _decoded(answer)
        return await async_eventually(
            lambda: self._get(resource, name), _is_established, what=f"{_CRD} {name} is established"
        )

    def _resource(self, body: Json) -> Resource:
        served = self.simulator.registry.of_kind(body["apiVersion"], body["kind"])
        if served is None:
            raise ValueError(
                f"the simulator serves no {body['kind']} of {body['apiVersion']}: "
                f"apply its {_CRD} first, or see docs/simulator.md for the built-in kinds"
            )
        return Resource(served.group, served.version, served.plural, served.kind, served.namespaced)

    async def _get(self, resource: Resource, name: str) -> Json:
        return _decoded(await self._api.get(resource, None, name))

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """A client on the test's event loop, the administrator; `AGENT` is its field manager and its User-Agent."""
        async with _connection(self.kubeconfig_path) as api:
            yield Client(api, field_manager=AGENT)

    def user_kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig of this user and these groups, who may do what RBAC gives them."""
        return self.simulator.user_kubeconfig(user, groups)

    def service_account_dir(self, namespace: str, name: str, *, duration_s: int = 3600) -> Path:
        """A folder with `token`, `ca.crt` and `namespace`, as a pod of this service account has it.

        The account is made if it is missing; a second call writes a new token, as a rotation does.
        """
        return self.run(self.simulator.service_account_dir(namespace, name, duration_s=duration_s))

    @property
    def in_cluster_environment(self) -> dict[str, str]:
        """The variables by which a pod finds the API server."""
        return self.simulator.in_cluster_environment

    # The operator.

    def operator(
        self,
        set_up: Callable[[Operator, S], None],
        *,
        settings: type[S] | None = None,
        program: Program = UNDER_TEST,
        deadline_s: float = DEADLINE_S,
        **values: object,
    ) -> AbstractAsyncContextManager[Operator]:
        """Run an operator on the test's event loop, from the time when its caches are in sync to the end of the block.

        One that ends before the block does cancels the block, and why it ended is raised. Its log is pytest's `caplog`.

        Args:
            set_up: as `process.command.run` takes it, and `settings`.
            deadline_s: for how many seconds to wait until it is in sync, and at the end for its end.
            values: settings by their names. Without: the administrator of this simulator, all namespaces, no leader
                election, neither probes nor metrics, and else the defaults. Environment variables do not count.

        Raises:
            OperatorEndedError: it ended by itself after it was in sync.
            CacheChangedError: the block ended well, but what the caches hold was changed in place.
            AssertionError: it did not come in sync, or did not end, before the deadline.
            Exception: whatever kept it from starting, what `set_up` raised among it.
            SettingsError: a setting has a value that is not allowed.
        """
        given = {"kubeconfig": str(self.kubeconfig_path), **values}
        model: type[Any] = settings or RuntimeSettings
        return running_operator(set_up, program, settings_of(program, model, given), deadline_s=deadline_s)

    # What goes wrong.

    @contextmanager
    def fault(
        self,
        fault: Fault,
        *,
        verb: str = "",
        resource: str = "",
        namespace: str = "",
        agent: str = "",
        times: int | None = None,
    ) -> Iterator[Rule]:
        """Misbehave from the next request on that fits, until the end of the block; what it stalls is answered then.

        Args:
            fault: Refuse, Delay, Stall, Break, End or SendError of `kube_simulator.faults`.
            verb: get, list, watch, create, update, patch, delete or deletecollection; what is empty fits all.
            resource: the plural, or plural/subresource.
            agent: how the User-Agent begins: an operator's is `NAME/VERSION`, a `client`'s `AGENT`.
            times: how many requests it is for; None for all. The rule's `used` counts those that it has met.
        """
        faults, where = self.simulator.faults, {"verb": verb, "resource": resource, "namespace": namespace}
        rule = self.call(lambda: faults.add(fault, **where, agent=agent, times=times))
        try:
            yield rule
        finally:
            self.call(lambda: faults.remove(rule))

    def end_watches(self) -> None:
        """End all running watches cleanly."""
        self.call(self.simulator.end_watches)

    def forget_history(self) -> None:
        """Answer 410 to a watch that wants to go on from a version before the present one; running watches go on."""
        self.call(self.simulator.forget_history)

    def kill_apiserver(self) -> None:
        """End the API server at once, as a crash would: connections are reset. The state stays."""
        self.run(self.simulator.kill_apiserver())

    def start_apiserver(self) -> None:
        """Start it again on the same port; watches of what was before are answered with 410."""
        self.run(self.simulator.start_apiserver())

    def restart_apiserver(self) -> None:
        self.kill_apiserver()
        self.start_apiserver()

    @contextmanager
    def hanging_apiserver(self) -> Iterator[None]:
        """Stop the simulator's thread until the end of the block, as SIGSTOP would; call nothing of this meanwhile."""
        stopped, resume = threading.Event(), threading.Event()

        def hang() -> None:
            stopped.set()
            resume.wait()

        self._loop.call_soon_threadsafe(hang)
        assert stopped.wait(_CALL_DEADLINE_S)
        try:
            yield
        finally:
            resume.set()

    def stop_controller_manager(self) -> None:
        """End the controllers behind the API server: Deployments are accepted, and nothing comes of them."""
        self.run(self.simulator.stop_controller_manager())

    def start_controller_manager(self) -> None:
        self.run(self.simulator.start_controller_manager())

    # For what has no method here.

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the simulator's loop, and return its result. Blocks."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_CALL_DEADLINE_S)

    def call(self, function: Callable[[], T]) -> T:
        """Call a function on the simulator's loop, as all that reads its store must be, and return its result."""

        async def called() -> T:
            return function()

        return self.run(called())


def _connection(kubeconfig: Path) -> ApiClient:
    # No variable of the developer's counts, that of a proxy among them.
    return ApiClient(load_access(kubeconfig=str(kubeconfig), environ={}), user_agent=AGENT)


def _decoded(answer: bytes) -> Json:
    decoded: Json = orjson.loads(answer)
    return decoded


def _is_established(crd: Json) -> bool:
    conditions = crd.get("status", {}).get("conditions", ())
    return any((each["type"], each["status"]) == ("Established", "True") for each in conditions)


def bodies(manifests: Iterable[Manifest]) -> Iterator[Json]:
    """The objects in the order in which they stand.

    Raises:
        ValueError: something is no object of Kubernetes: apiVersion, kind or metadata.name are missing.
        OSError: there is no such file.
    """
    for manifest in manifests:
        for number, document in enumerate(_documents(manifest), 1):
            origin = f"{manifest}" if isinstance(manifest, Path) else "a manifest"
            yield _checked(document, f"{origin}, document {number}")


def _documents(manifest: Manifest) -> Iterable[object]:
    match manifest:
        case CustomResource():
            return [custom_resource_definition(manifest)]
        case Path():
            return _parsed(manifest.read_text())
        case str():
            return _parsed(manifest)
        case _:
            return [manifest]


def _parsed(text: str) -> Iterable[object]:
    # Files of many documents end or begin with `---`.
    return [each for each in yaml.safe_load_all(text) if each is not None]


def _checked(document: object, origin: str) -> Json:
    if not isinstance(document, Mapping):
        raise ValueError(f"{origin}: an object of Kubernetes is a mapping, and this is {document!r}")
    body = dict(document)
    missing = [name for name in ("apiVersion", "kind") if not (isinstance(body.get(name), str) and body[name])]
    if missing:
        raise ValueError(f"{origin}: it has no {' and no '.join(missing)}")
    metadata = body.get("metadata")
    if not isinstance(metadata, Mapping) or not metadata.get("name"):
        raise ValueError(f"{origin}: the {body['kind']} has no metadata.name")
    return body
