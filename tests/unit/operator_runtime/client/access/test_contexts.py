"""A context of a kubeconfig and the access that comes of it."""

from __future__ import annotations

import base64
import json
import os
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import load_kube_config

from operator_runtime.client.access.contexts import context_access
from operator_runtime.client.access.credentials import ClusterAccess, NoClusterAccess
from operator_runtime.client.access.kubeconfig import read_kubeconfigs
from operator_runtime.testing.clock import FakeClock
from tests.unit.operator_runtime.client.access.auth_support import Authority, handshake, server_context

AUTHORITY = Authority()
SECRET = "hunter2hunter2"
EXEC_V1 = "client.authentication.k8s.io/v1"


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def write(directory: Path, cluster: Mapping[str, object], user: Mapping[str, object] | None, **context: object) -> Path:
    main = {"cluster": "c", **({"user": "u"} if user is not None else {}), **context}
    contexts = {"main": main, "spare": {"cluster": "gone", "user": "u"}, "stranger": {"cluster": "c", "user": "gone"}}
    document = {
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}] if user is not None else [],
        "contexts": [{"name": name, "context": each} for name, each in contexts.items()],
    }
    path = directory / "config"
    path.write_text(yaml.safe_dump(document))
    return path


def load(
    directory: Path,
    cluster: Mapping[str, object] | None = None,
    user: Mapping[str, object] | None = None,
    *,
    context: str | None = None,
    environ: Mapping[str, str] | None = None,
    clock: FakeClock | None = None,
    **rest: object,
) -> ClusterAccess:
    path = write(directory, {"server": "https://127.0.0.1:6443", **(cluster or {})}, user, **rest)
    return context_access(
        read_kubeconfigs([path], home=directory),
        context,
        environ=environ or {},
        clock=clock or FakeClock(),
    )


@pytest.mark.parametrize(
    ("user", "sent"),
    [
        ({"token": "t"}, {"Authorization": "Bearer t"}),
        ({"username": "jane", "password": "pw"}, {"Authorization": "Basic amFuZTpwdw=="}),
        ({"username": "jané", "password": "p:w"}, {"Authorization": "Basic amFuw6k6cDp3"}),
        ({}, {}),
        (None, {}),
    ],
)
async def test_a_token_a_password_and_nobody(tmp_path: Path, user: dict[str, str] | None, sent: dict[str, str]) -> None:
    assert await load(tmp_path, user=user).credentials.headers() == sent


async def test_a_token_file_lies_beside_the_kubeconfig_goes_before_a_token_and_is_re_read(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/token").write_text("one\n")
    clock = FakeClock()
    credentials = load(tmp_path, user={"tokenFile": "secret/token", "token": "t"}, clock=clock).credentials
    assert await credentials.headers() == {"Authorization": "Bearer one"}
    (tmp_path / "secret/token").write_text("two\n")
    clock.advance(1)
    assert await credentials.refresh(clock.now - 0.5)
    assert await credentials.headers() == {"Authorization": "Bearer two"}


@pytest.mark.parametrize("scheme", ["http", "HTTP"])
async def test_nothing_is_sent_over_plain_http(tmp_path: Path, scheme: str) -> None:
    access = load(tmp_path, {"server": f"{scheme}://127.0.0.1:8001"}, {"token": SECRET})
    assert access.server == "http://127.0.0.1:8001"
    assert await access.credentials.headers() == {}
    assert access.credentials.ssl_context() is None


@pytest.mark.parametrize("as_files", [True, False])
def test_a_client_certificate_and_the_authority_may_be_data_or_files_beside_the_kubeconfig(
    tmp_path: Path, as_files: bool
) -> None:
    jane = AUTHORITY.issue("jane")
    contents = {"certificate-authority": AUTHORITY.pem, "client-certificate": jane.chain, "client-key": jane.key}
    fields: dict[str, object] = {}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        fields |= {name: name} if as_files else {name: "gone", f"{name}-data": encoded(content)}
    user = {name: value for name, value in fields.items() if name.startswith("client")}
    cluster = {name: value for name, value in fields.items() if name not in user}
    context = load(tmp_path, cluster, user).credentials.ssl_context()
    assert context is not None
    assert handshake(context, server_context(AUTHORITY, AUTHORITY.issue("server"), str(tmp_path))) == "jane"


def test_insecure_checks_nothing_and_excludes_an_authority(tmp_path: Path) -> None:
    context = load(tmp_path, {"insecure-skip-tls-verify": True}).credentials.ssl_context()
    assert context is not None
    assert context.verify_mode == ssl.CERT_NONE
    with pytest.raises(NoClusterAccess, match=r"cluster c in ~/config: insecure-skip-tls-verify .* exclude each other"):
        load(tmp_path, {"insecure-skip-tls-verify": True, "certificate-authority": "ca.crt"})


@pytest.mark.parametrize(
    ("entry", "server"),
    [
        ({"server": "https://api.test/k8s/clusters/c-1/"}, "https://api.test/k8s/clusters/c-1"),
        ({"server": "api.test:8080"}, "http://api.test:8080"),
        ({"server": "api.test:6443", "insecure-skip-tls-verify": True}, "https://api.test:6443"),
    ],
)
def test_the_servers_url_is_taken_as_kubectl_does(tmp_path: Path, entry: dict[str, object], server: str) -> None:
    assert load(tmp_path, entry).server == server


def test_proxy_url_goes_before_the_environments_and_socks_is_refused(tmp_path: Path) -> None:
    environ = {"HTTPS_PROXY": "http://env:1"}
    cluster = {"server": "https://api.test"}
    assert load(tmp_path, cluster, environ=environ).proxy == "http://env:1"
    assert load(tmp_path, {**cluster, "proxy-url": "http://own:2"}, environ=environ).proxy == "http://own:2"
    with pytest.raises(NoClusterAccess, match="the proxy-url of cluster c in ~/config is a SOCKS proxy"):
        load(tmp_path, {**cluster, "proxy-url": "socks5://own:2"})


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ("nope", "--context nope: no such context exists; ~/config has main, spare"),
        ("spare", r"context spare of ~/config names the cluster 'gone', .*known: c"),
        ("stranger", r"context stranger of ~/config names the user 'gone', .*known: u"),
    ],
)
def test_a_context_that_is_not_there_or_names_what_is_not_is_explained(
    tmp_path: Path, context: str, message: str
) -> None:
    with pytest.raises(NoClusterAccess, match=message):
        load(tmp_path, context=context, user={})


# Answers with what it was token as its token, and counts its runs.
PLUGIN = """#!{python} -S
import json, os, sys
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
with open(os.environ["RUNS"], "a") as runs:
    runs.write("x")
with open(os.environ["RUNS"]) as runs:
    count = len(runs.read())
token = json.dumps([count, info["spec"], sys.argv[1:]], separators=(",", ":"))
answer = {{"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": {{"token": token}}}}
print(json.dumps(answer))
"""


def exec_user(directory: Path, **more: object) -> dict[str, object]:
    (directory / "bin").mkdir(exist_ok=True)
    script = directory / "bin/plugin"
    script.write_text(PLUGIN.format(python=sys.executable))
    script.chmod(0o755)
    plugin = {
        "apiVersion": EXEC_V1,
        "command": "./bin/plugin",
        "args": ["get", "token"],
        "interactiveMode": "IfAvailable",
    }
    return {"exec": plugin | {"env": [{"name": "RUNS", "value": str(directory / "runs")}]} | more}


def credential_of(given: Mapping[str, str]) -> list[object]:
    answer: list[object] = json.loads(given["Authorization"].removeprefix("Bearer "))
    return answer


@pytest.mark.parametrize("mode", ["IfAvailable", "Never"])
async def test_an_exec_plugin_beside_the_kubeconfig_runs_once_and_again_after_a_401(tmp_path: Path, mode: str) -> None:
    clock, user = FakeClock(), exec_user(tmp_path, interactiveMode=mode)
    access = load(tmp_path, user=user, environ=dict(os.environ), clock=clock)
    credentials = access.credentials
    assert credential_of(await credentials.headers()) == [1, {"interactive": False}, ["get", "token"]]
    clock.advance(3600)
    assert credential_of(await credentials.headers())[0] == 1
    clock.advance(1)
    assert await credentials.refresh(clock.now - 0.5)
    assert credential_of(await credentials.headers())[0] == 2


async def test_provide_cluster_info_hands_over_the_cluster_with_its_authority_read_in(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.pem)
    cluster = {
        "certificate-authority": "ca.crt",
        "tls-server-name": "api.internal",
        "proxy-url": "http://proxy:1",
        "extensions": [
            {"name": "other", "extension": {"a": 1}},
            {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}},
        ],
    }
    access = load(tmp_path, cluster, exec_user(tmp_path, provideClusterInfo=True), environ=dict(os.environ))
    assert credential_of(await access.credentials.headers())[1] == {
        "interactive": False,
        "cluster": {
            "server": "https://127.0.0.1:6443",
            "tls-server-name": "api.internal",
            "certificate-authority-data": encoded(AUTHORITY.pem),
            "proxy-url": "http://proxy:1",
            "config": {"audience": "x"},
        },
    }


async def test_the_fields_usual_reader_reads_the_same_file_alike(tmp_path: Path) -> None:
    cluster = {
        "server": "https://api.test:6443",
        "tls-server-name": "api.internal",
        "proxy-url": "http://proxy:1",
        "certificate-authority-data": encoded(AUTHORITY.pem),
    }
    access = load(tmp_path, cluster, {"token": "t"})
    oracle = Configuration()
    await load_kube_config(str(tmp_path / "config"), client_configuration=oracle, temp_file_path=str(tmp_path))
    assert access.server == oracle.host
    assert access.tls_server_name == oracle.tls_server_name
    assert access.proxy == oracle.proxy
    assert (await access.credentials.headers())["Authorization"] == oracle.api_key["BearerToken"]
