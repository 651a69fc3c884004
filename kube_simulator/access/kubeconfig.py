"""Kubeconfig files, with all credentials embedded so that a file can be copied anywhere, and what a pod has instead."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from kube_simulator.access.pki import Pair


def write(path: Path, *, name: str, server: str, authority: Path, user: str, credential: Pair | str) -> Path:
    """Write a kubeconfig for one server and one user, readable by its owner alone; its namespace is ``default``.

    Args:
        name: of the cluster and of the context.
        authority: the certificate that the server's is signed with, as a PEM file.
        user: what the file calls the user; the credential, a certificate or a token, says who it is to the server.
    """
    if isinstance(credential, str):
        shown = {"token": credential}
    else:
        pair = {"certificate": credential.certificate, "key": credential.key}
        shown = {f"client-{part}-data": _embedded(file) for part, file in pair.items()}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority-data": _embedded(authority)}}],
        "users": [{"name": user, "user": shown}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user, "namespace": "default"}}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.touch(mode=0o600)
    new.write_text(json.dumps(config, indent=2) + "\n")
    return new.replace(path)


def write_account(directory: Path, *, token: str, authority: Path, namespace: str) -> Path:
    """Write the folder that a pod has of its service account: ``token``, ``ca.crt``, ``namespace``, each at once."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in (("token", token), ("ca.crt", authority.read_text()), ("namespace", namespace)):
        new = directory / f".{name}"
        new.write_text(content)
        new.replace(directory / name)
    return directory


def _embedded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
