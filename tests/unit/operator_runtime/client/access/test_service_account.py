"""A pod's own account: where the server is, what is missing, and files that rotate under a running process."""

from __future__ import annotations

from pathlib import Path

import pytest

from operator_runtime.client.access.auth import ServiceAccount
from operator_runtime.client.access.credentials import ClusterAccess, NoClusterAccess
from operator_runtime.client.errors import AuthenticationUnavailable
from operator_runtime.testing.clock import FakeClock
from tests.unit.operator_runtime.client.access.auth_support import Authority


def environ(host: str = "10.96.0.1", **more: str) -> dict[str, str]:
    return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443", **more}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("first\n")
    (tmp_path / "ca.crt").write_bytes(Authority().pem)
    (tmp_path / "namespace").write_text("memcached-system\n")
    return tmp_path


def load(directory: Path, variables: dict[str, str] | None = None, clock: FakeClock | None = None) -> ClusterAccess:
    account = ServiceAccount(directory, variables or environ())
    assert account.missing() == ()
    return account.access(clock=clock or FakeClock())


@pytest.mark.parametrize(
    ("host", "server"),
    [
        ("10.96.0.1", "https://10.96.0.1:443"),
        ("fd00::1", "https://[fd00::1]:443"),
        ("kubernetes.default.svc", "https://kubernetes.default.svc:443"),
    ],
)
def test_the_server_is_built_from_the_variables_with_brackets_around_ipv6(
    directory: Path, host: str, server: str
) -> None:
    assert load(directory, environ(host)).server == server


@pytest.mark.parametrize(
    "variables",
    [
        {"KUBERNETES_SERVICE_HOST": f"{'a' * 64}.test"},
        {"KUBERNETES_SERVICE_HOST": "hunter2@10.96.0.1"},
        {"KUBERNETES_SERVICE_HOST": "u:hunter2@10.96.0.1"},
        {"KUBERNETES_SERVICE_PORT": "hunter2"},
        {"KUBERNETES_SERVICE_PORT": "443?hunter2"},
    ],
)
def test_variables_that_make_no_address_are_named_and_not_quoted(directory: Path, variables: dict[str, str]) -> None:
    with pytest.raises(NoClusterAccess, match=r"the variables .*_HOST and .*_PORT make no URL .*; correct") as failure:
        load(directory, environ() | variables)
    assert "hunter2" not in str(failure.value)


@pytest.mark.parametrize("content", [b"../x", b"a\nb", b"\xff"])
def test_a_namespace_that_is_none_is_refused(directory: Path, content: bytes) -> None:
    (directory / "namespace").write_bytes(content)
    with pytest.raises(NoClusterAccess, match="/namespace holds no namespace's name; mount the service account's vol"):
        load(directory)


def test_the_namespace_is_the_pods_and_may_be_missing(directory: Path) -> None:
    assert load(directory).namespace == "memcached-system"
    (directory / "namespace").unlink()
    assert load(directory).namespace is None


def test_a_proxy_of_the_environment_is_used_unless_no_proxy_has_the_service_network(directory: Path) -> None:
    proxy = {"HTTPS_PROXY": "http://proxy:3128"}
    assert load(directory, environ(**proxy)).proxy == "http://proxy:3128"
    assert load(directory, environ(**proxy, NO_PROXY="example.com,10.96.0.0/12")).proxy is None


async def test_the_authority_is_read_again_at_once_when_the_server_was_not_trusted(directory: Path) -> None:
    (directory / "ca.crt").write_bytes(Authority("old").pem)
    clock = FakeClock()
    credentials = load(directory, clock=clock).credentials
    await credentials.headers()
    before = credentials.ssl_context()
    await credentials.reload_ca(clock.now)
    assert credentials.ssl_context() is before, "the file is the same"

    (directory / "ca.crt").write_bytes(Authority("new").pem)
    clock.advance(1)
    await credentials.reload_ca(clock.now)
    assert credentials.ssl_context() is not before


async def test_what_is_missing_is_named_and_what_nobody_can_look_at_when_it_is_read(tmp_path: Path) -> None:
    assert ServiceAccount(tmp_path, {"KUBERNETES_SERVICE_HOST": "x"}).missing() == (
        f"no file {tmp_path}/token",
        f"no file {tmp_path}/ca.crt",
        "KUBERNETES_SERVICE_PORT is not set",
    )
    with pytest.raises(AuthenticationUnavailable, match=r"token file .*cannot be read .File name too long"):
        await load(tmp_path / ("a" * 300)).credentials.headers()
