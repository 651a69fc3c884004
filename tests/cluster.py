"""Fixtures for tests that need a Kubernetes API: ``cluster``, one for the session; ``namespace``, one for each test."""

import contextlib
import os
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest

from lab.audit import AuditEvent
from lab.build import BuildError, build
from lab.control_plane import ControlPlane

# Set by the test runner: what cannot be had is a failure then, and not a skip.
REQUIRED_VARIABLE = "MEMCACHED_OPERATOR_TEST_CLUSTER_REQUIRED"


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

    def audit_mark(self) -> int: ...
    def audit_events(
        self, *, since: int = 0, user: str | None = None, user_agent: str | None = None
    ) -> list[AuditEvent]: ...

    def stop_apiserver(self, *, wait: bool = True) -> None: ...
    def kill_apiserver(self) -> None: ...
    def start_apiserver(self, *, wait: bool = True) -> None: ...
    def restart_apiserver(self) -> None: ...
    def stop_controller_manager(self) -> None: ...
    def start_controller_manager(self) -> None: ...


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build here what tests will need: inside a test, the first build would run into the test's timeout."""
    needed = any("cluster" in getattr(item, "fixturenames", ()) for item in session.items)
    if needed and not session.config.option.collectonly:
        with contextlib.suppress(BuildError):  # the fixture meets it again, and decides
            build()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A real control plane, started when the first test asks for it; a test that breaks it mends it again."""
    try:
        control_plane = ControlPlane()
    except BuildError as error:
        if os.environ.get(REQUIRED_VARIABLE) or os.environ.get("CI"):
            raise
        pytest.skip(f"no real control plane: {error}")
    with control_plane:
        yield control_plane


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A fresh namespace whose name is not used twice; its deletion is asked for and not awaited."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")
