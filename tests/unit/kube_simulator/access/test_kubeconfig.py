"""Kubeconfig files: what a client reads there."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from kube_simulator.access import kubeconfig
from kube_simulator.access.pki import Authority, token_key


def test_a_kubeconfig_has_everything_within_itself(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "pki")
    pair = authority.client("jane", "jane", [])
    path = kubeconfig.write(
        tmp_path / "new folder" / "config",
        name="here",
        server="https://127.0.0.1:1",
        authority=authority.certificate,
        user="jane",
        credential=pair,
    )
    assert path.stat().st_mode & 0o777 == 0o600
    config = json.loads(path.read_text())
    assert config["current-context"] == "here"
    assert config["contexts"] == [
        {"name": "here", "context": {"cluster": "here", "user": "jane", "namespace": "default"}}
    ]
    (cluster,) = config["clusters"]
    assert (cluster["name"], cluster["cluster"]["server"]) == ("here", "https://127.0.0.1:1")
    embedded = base64.b64decode(cluster["cluster"]["certificate-authority-data"])
    assert embedded == authority.certificate.read_bytes()
    (user,) = config["users"]
    assert base64.b64decode(user["user"]["client-certificate-data"]) == pair.certificate.read_bytes()
    assert base64.b64decode(user["user"]["client-key-data"]) == pair.key.read_bytes()


def test_a_user_may_come_with_a_token_instead(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    common = {"name": "here", "server": "https://h", "user": "u"}
    path = kubeconfig.write(tmp_path / "config", authority=authority.certificate, credential="secret", **common)
    assert json.loads(path.read_text())["users"] == [{"name": "u", "user": {"token": "secret"}}]


def test_the_key_of_the_tokens_is_one_that_an_api_server_reads(tmp_path: Path) -> None:
    assert token_key(tmp_path).read_text().startswith("-----BEGIN EC PRIVATE KEY-----")
