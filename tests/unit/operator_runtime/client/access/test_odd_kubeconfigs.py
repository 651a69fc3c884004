"""Kubeconfigs that nobody should write: whatever is in them, what comes of it is an error of the closed set."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from operator_runtime.client.access.auth import load_access
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import KubeError, Unreachable

SECRET = "hunter2hunter2"
LONG_LABEL = "a" * 64
EXEC = "apiVersion: client.authentication.k8s.io/v1"
EXTENSION = "name: client.authentication.k8s.io/exec, extension:"
PROVIDES_CLUSTER_INFO = f"exec: {{command: 'false', provideClusterInfo: true, {EXEC}}}"


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of the loopback that is taken, and where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def text(
    *, cluster: str = "server: 'https://SERVER'", user: str = "token: t", context: str = "", more: str = ""
) -> str:
    return (
        f"current-context: m\ncontexts: [{{name: m, context: {{cluster: c, user: u{context}}}}}]\n"
        f"clusters: [{{name: c, cluster: {{{cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n{more}"
    )


def with_cluster_field(field: str) -> str:
    """The text with one more field of its cluster."""
    return text(cluster=f"server: 'https://SERVER', {field}")


def extended(extension: str) -> str:
    """The text with an extension of its cluster for its plugin."""
    return text(
        cluster=f"server: 'https://SERVER', extensions: [{{{EXTENSION} {extension}}}]", user=PROVIDES_CLUSTER_INFO
    )


async def outcome(directory: Path, content: str | bytes, port: int) -> str:
    """What is said when the first request fails, as it does for each of them: nobody listens."""
    if isinstance(content, str):
        content = content.encode()
    path = directory / "config"
    path.write_bytes(content.replace(b"SERVER", f"127.0.0.1:{port}".encode()))
    environ = {"HOME": str(directory), "PATH": os.environ["PATH"]}
    with pytest.raises(KubeError) as failure:
        async with ApiClient(load_access(kubeconfig=str(path), environ=environ), user_agent="test") as client:
            await client.request("GET", "/api")
    message = str(failure.value)
    assert message.isprintable()
    assert SECRET not in message
    assert failure.value.__suppress_context__ or failure.value.__context__ is None
    assert "~/config" in message or isinstance(failure.value, Unreachable)
    return message


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        # Values that YAML's own types do not have.
        (
            text(more="x: !!timestamp foo\n"),
            "~/config, line 5, column 4: not valid YAML of at most 100 levels; correct it there",
        ),
        (text(more=f"x: !!int {SECRET}\n"), "line 5, column 4"),
        (text(more=f"x: !!binary {SECRET}é\n"), "line 5, column 4"),
        (text(more="x: !!float ''\n"), "line 5, column 4"),
        (text(more=f"x: {'1' * 5000}\n"), "line 5, column 4"),
        (text(more="x: !!python/object:os.system a\n"), "line 5, column 4"),
        (text(more="<<: 1\n"), "line 5"),
        (text(more="? [a]\n: b\n"), "line 5"),
        (text(more=f"x: {'[' * 500}{']' * 500}\n"), "line 5, column 102: not valid YAML of at most 100 levels;"),
        (text(more=f"x: {'[' * 5000}{']' * 5000}\n"), "line 5, column [0-9]+: not valid YAML of at most 100 levels;"),
        ("[" * 100_000, "line 1, column [0-9]+: not valid YAML of at most 100 levels;"),
        (text() + "---\n" + text(), "line 5"),
        ("a: \0", "not a text in YAML; give the path of a kubeconfig"),
        (b"a: \xe9", "not a text in YAML"),
        ("[]", "not a kubeconfig: Expected `object`, got `array`; correct it there"),
        (text(user="token: 1"), r"got `int` - at `\$.users\[0\].user.token`; correct it there"),
        ("clusters: [null]", r"at `\$.clusters\[0\]`"),
        ("clusters: [{cluster: {server: x}}]", "missing required field `name`"),
        (f"users:\n- name: u\n  user: {{password: *{SECRET}}}\n", "config, line 3, column 20: not valid YAML"),
        (f"{SECRET}\n", "not a kubeconfig"),
        # Names.
        ('current-context: "a\\nb"\n', r"current-context 'a\\nb': no such context exists"),
        ('current-context: m\ncontexts: [{name: m}, {name: "a\\nb"}]', "names the cluster None"),
        (text(context=", namespace: ../x"), "context m of ~/config: no namespace can be called '../x'; use at most 63"),
        ("users: []", "no context is chosen: give --context.*~/config has no context"),
        # Addresses.
        (text(cluster="server: null"), "cluster c in ~/config: server is not a URL such as https://"),
        (text(cluster="server: 'unix:///run/api.sock'"), "cluster c in ~/config: server is not a URL such as https://"),
        (text(cluster=f"server: 'https://{LONG_LABEL}.test'"), "cluster c in ~/config: server .* no host of such"),
        (text(cluster='server: "https://a\\0b"'), "white space or control characters"),
        (text(cluster=f"server: 'admin:{SECRET}@SERVER'"), "it holds a user name or a password"),
        (text(cluster=f"server: 'HTTP:/{SECRET}@SERVER'"), "two slashes stand after its scheme"),
        (
            with_cluster_field(f"tls-server-name: {LONG_LABEL}.test"),
            "tls-server-name 'a*.test' is not the name of a host",
        ),
        (with_cluster_field('tls-server-name: "a\\0b"'), "tls-server-name"),
        (
            with_cluster_field(f"proxy-url: 'http://{LONG_LABEL}.test'"),
            "the proxy-url of cluster c in ~/config is not the URL",
        ),
        (with_cluster_field(f'proxy-url: "http://u:{SECRET}@a\\0b"'), "white space or control characters"),
        (with_cluster_field(f"proxy-url: 'http:/u:{SECRET}@SERVER'"), "it names no host"),
        (with_cluster_field(f"proxy-url: 'http://u:12/{SECRET}@SERVER'"), "within a password as %2F"),
        (with_cluster_field(f"proxy-url: 'http://u:{SECRET}€@SERVER'"), "characters beyond Latin-1"),
        (with_cluster_field(f"proxy-url: 'http://a%3Ab:{SECRET}@SERVER'"), "a user name with a colon"),
        # Files.
        (
            with_cluster_field('certificate-authority: "a\\0b"'),
            r"certificate-authority of cluster c .*a\\x00b' cannot be",
        ),
        (with_cluster_field("certificate-authority: ~nobody/ca.crt"), "No such file"),
        (with_cluster_field("certificate-authority-data: YQ=="), "no PEM certificate in it; one begins with"),
        (text(user='client-certificate: "a\\0b", client-key: k'), "client-certificate of user u .* correct its path"),
        (text(user="client-certificate-data: YQ==, client-key-data: YQ=="), "take both from one place"),
        (text(user='tokenFile: "a\\0b"'), r"a\\x00b' cannot be read .*correct tokenFile of user u in ~/config"),
        # Users.
        (text(user="client-certificate: a.crt"), "user u in ~/config: client-certificate and client-key go together"),
        (text(user=f"client-key-data: '*{SECRET}'"), "user u in ~/config: client-key-data is not base64"),
        (text(user=f"token: {SECRET} x"), "user u in ~/config: token holds white space"),
        (text(user=f"as: admin, token: {SECRET}"), "user u in ~/config: impersonation .* is not supported"),
        (text(user=f"auth-provider: {{name: gcp, config: {{access-token: {SECRET}}}}}"), "gke-gcloud-auth-plugin"),
        # Plugins.
        (text(user="exec: {command: aws}"), "user u in ~/config: apiVersion must be one of client.authentication"),
        (text(user=f"exec: {{command: aws, interactiveMode: Always, {EXEC}}}"), "Always, but an operator asks nobody"),
        (text(user=f"exec: {{command: '', {EXEC}}}"), "exec of user u in ~/config: command is empty; name the plugin"),
        (text(user=f'exec: {{command: "a\\nb", {EXEC}}}'), r"no command 'a\\nb'"),
        (text(user=f'exec: {{command: "./a\\0b", {EXEC}}}'), "embedded null byte.*correct `command`"),
        (text(user=f'exec: {{command: gone-x, installHint: "a\\nb", {EXEC}}}'), "a b"),
        (text(user=f"exec: {{command: 'false', args: [{'a' * 200_000}], {EXEC}}}"), "Argument list too long"),
        (extended("{null: {1.5: !!binary YQ==}}"), "cluster c in ~/config: the extension .*exec cannot be written as"),
        (extended("&a [*a]"), "the extension client.authentication.k8s.io/exec cannot be written as JSON"),
    ],
    ids=lambda value: repr(value)[-60:],
)
async def test_the_message_names_file_and_field(tmp_path: Path, closed_port: int, content: str, expected: str) -> None:
    message = await outcome(tmp_path, content, closed_port)
    assert re.search(expected, message), message


@pytest.mark.parametrize(
    "content",
    [
        text(more="x: 2001-99-99\n"),
        text(context=", namespace: 2001-99-99"),
        text(user="token: 2001-01-01"),
        text(more="x: 0x\ny: 1:99:99\nz: &a [*a]\n"),
        with_cluster_field(f"extensions: [{{{EXTENSION} &a [*a]}}]"),
        with_cluster_field("proxy-url: 'http://SERVER/path?query#fragment'"),
        with_cluster_field("tls-server-name: ''"),
        text(cluster="server: 'HTTP://SERVER'"),
        text(cluster="server: 'https://127.0.0.1:0'"),
        text(user='username: "€", password: "\\n"'),
        "\ufeff" + text(),
        text().replace("contexts: [", "contexts: [{name: x, cluster: c, user: u}, "),
    ],
)
async def test_what_kubectl_takes_goes_as_far_as_the_server(tmp_path: Path, closed_port: int, content: str) -> None:
    assert "connection refused" in await outcome(tmp_path, content, closed_port)
