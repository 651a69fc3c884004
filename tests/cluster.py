"""Fixtures for tests that need a Kubernetes API: ``cluster``, one for the session; ``namespace``, one for each test.

There are two, the simulator and a real control plane. A test runs on each where the server has a part in what it shows,
unless ``--cluster`` says otherwise. By the mark ``cluster`` it runs on one alone:

- on the simulator where any server would do, as what it shows is the process: its flags, files, lines, probes, metrics
  and how it ends; so do all tests that need no server.
- on the real one where that one alone can say it, and where it shows at length how the operator bears a fault, another
  manager or an hour of work: what the simulator does, the tests of conformance have shown.

In the gate, each test of the integration runs once. One of the mark ``core`` runs there on the real server, and not in
``./dev test`` alone: its subject is something that a real API server decides (patches and conflicts, watches, garbage
collection, scale, permissions, leases, what its controllers do). All others run on the simulator. CONTRIBUTING.md has
the rule.
"""

import contextlib
import os
import subprocess
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Protocol

import pytest

from lab.audit import START, AuditEvent, Mark
from lab.cache import BuildError, NotBuiltError
from lab.control_plane import ControlPlane, Options
from lab.programs import kubernetes, kubernetes_releases
from operator_runtime.testing.waiting import eventually
from tests.conformance.api import Api

# Set by the test runner: what cannot be had is a failure then, and not a skip.
REQUIRED_VARIABLE = "MEMCACHED_OPERATOR_TEST_CLUSTER_REQUIRED"

CLUSTERS = ("simulator", "kubernetes")


# Off by default, and on in some distributions. Permissions that are enough with it are enough without.
ADMISSION_PLUGINS = ("OwnerReferencesPermissionEnforcement",)


def await_established(kubectl: Callable[..., object], *what: str) -> None:
    """Wait until CustomResourceDefinitions are served.

    `kubectl wait` for a condition fails at once while a new one has no conditions. They come with the accepted names.

    Args:
        kubectl: runs kubectl with these arguments.
        what: names them as `kubectl wait` does.
    """
    kubectl("wait", "--for=jsonpath={.status.acceptedNames.listKind}", *what, "--timeout=60s")
    kubectl("wait", "--for=condition=Established", *what, "--timeout=60s")


class Cluster(Protocol):
    """What tests may ask of a Kubernetes API; ``lab.control_plane.ControlPlane`` says what each part does."""

    server: str
    ca_path: Path
    kubeconfig_path: Path

    def kubectl(
        self, *arguments: str, input: str | None = None, check: bool = True, kubeconfig: Path | None = None
    ) -> subprocess.CompletedProcess[str]: ...
    def user_kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path: ...
    def service_account_dir(self, namespace: str, name: str, *, duration_s: int = 3600) -> Path: ...
    @property
    def in_cluster_environment(self) -> dict[str, str]: ...

    def audit_mark(self) -> Mark: ...
    def audit_events(
        self, *, since: Mark = START, user: str | None = None, user_agent: str | None = None
    ) -> list[AuditEvent]: ...

    def kill_apiserver(self) -> None: ...
    def start_apiserver(self) -> None: ...
    def restart_apiserver(self) -> None: ...
    def hanging_apiserver(self) -> AbstractContextManager[None]: ...
    def stop_controller_manager(self) -> None: ...
    def start_controller_manager(self) -> None: ...


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare ``--cluster``."""
    parser.addoption("--cluster", choices=CLUSTERS, help="run on this Kubernetes API alone (default: on both)")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marks ``cluster``, ``since`` and ``core``."""
    config.addinivalue_line("markers", "cluster(name): runs on this Kubernetes API alone, simulator or kubernetes")
    config.addinivalue_line("markers", "since(release, lacks): skipped on older Kubernetes, which lacks that")
    config.addinivalue_line("markers", "core: in the gate it runs on the real API server, and not on the simulator")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once on each Kubernetes API that it may run on."""
    if "cluster" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("cluster")
        desired = CLUSTERS if mark is None else mark.args
        chosen = metafunc.config.option.cluster
        selected = [name for name in desired if chosen in (None, name)]
        metafunc.parametrize("cluster", selected or desired, indirect=True, scope="session")


def lacking(item: pytest.Item, release: str) -> str | None:
    """What a release of Kubernetes, such as 1.30, does not have of what a test is about; None if it has everything."""
    for mark in item.iter_markers("since"):
        first, lacks = mark.args
        if _number(release) < _number(first):
            return f"Kubernetes {release} has no {lacks}: that came with {first}"
    return None


def _number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what does not run on the chosen Kubernetes API."""
    chosen = config.option.cluster
    release = os.environ.get(kubernetes_releases.VARIABLE)
    for item in items if release else ():
        if lacks := lacking(item, str(release)):
            item.add_marker(pytest.mark.skip(reason=lacks))
    if chosen is None:
        return
    unfit = {item for item in items if chosen not in _clusters_of(item)}
    if unfit:
        config.hook.pytest_deselected(items=unfit)
        items[:] = [item for item in items if item not in unfit]


def _clusters_of(item: pytest.Item) -> Sequence[str]:
    mark = item.get_closest_marker("cluster")
    if mark is not None:
        return mark.args
    return CLUSTERS if "cluster" in getattr(item, "fixturenames", ()) else ("simulator",)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build here what tests will need: inside a test, the first build would run into the test's timeout."""
    needed = any("cluster" in getattr(item, "fixturenames", ()) for item in session.items)
    if needed and not session.config.option.collectonly:
        with contextlib.suppress(BuildError):  # the fixture meets it again, and decides
            if session.config.option.cluster == "simulator":
                kubernetes.kubectl_path()
            else:
                kubernetes_releases.chosen()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None]:
    """Skip, with the reason, what wants a program that the quick run has not and must not build."""
    try:
        yield
    except NotBuiltError as error:
        pytest.skip(str(error))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    """As in the setup."""
    try:
        yield
    except NotBuiltError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The simulator or a real control plane, started when the first test asks for it.

    A test that breaks it mends it again.
    """
    try:
        started = _cluster(request.param)
    except BuildError as error:
        if os.environ.get(REQUIRED_VARIABLE) or os.environ.get("CI"):
            raise
        pytest.skip(f"no {request.param} and no kubectl: {error}")
    with started as found:
        yield found


def another(cluster: Cluster, *, streaming_lists: bool = True) -> AbstractContextManager[Cluster]:
    """A second one of its kind with a state of its own, like an older release without streaming lists if told so."""
    return _cluster("kubernetes" if isinstance(cluster, ControlPlane) else "simulator", streaming_lists)


def _cluster(name: str, streaming_lists: bool = True) -> AbstractContextManager[Cluster]:
    if name == "kubernetes":
        gates = () if streaming_lists else ("--feature-gates=WatchList=false",)
        return ControlPlane(Options(admission_plugins=ADMISSION_PLUGINS, apiserver_arguments=gates))
    # It needs the extra `demo`, and a real control plane does not.
    from tests.simulated_cluster import SimulatedCluster

    return SimulatedCluster(streaming_lists=streaming_lists)


# What Kubernetes makes in each namespace, by and by: before the first pods are refused, before the second none starts.
_OF_ITSELF = ("serviceaccounts/default", "configmaps/kube-root-ca.crt")


def make_namespace(cluster: Cluster, name: str) -> None:
    """Create a namespace, and return when it has what Kubernetes makes in each.

    Without kubectl: some runs of it take longer than many a test.
    """
    client = Api(cluster, cluster.kubeconfig_path)
    try:
        client.post("/api/v1/namespaces", {"metadata": {"name": name}}).expect(201)
        for each in _OF_ITSELF:
            path = f"/api/v1/namespaces/{name}/{each}"
            eventually(partial(client.get, path), lambda answer: answer.status == 200, what=path)
    finally:
        client.close()


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A fresh namespace whose name is not used twice; its deletion is asked for and not awaited."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    make_namespace(cluster, name)
    yield name
    client = Api(cluster, cluster.kubeconfig_path)
    deleted = client.delete(f"/api/v1/namespaces/{name}")
    client.close()
    assert deleted.status in (200, 404, 409), deleted  # a test may have done so, and then it is gone or going
