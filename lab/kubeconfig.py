"""Kubeconfig files, with all certificates embedded so that a file can be copied anywhere."""

import base64
import json
from pathlib import Path

from lab.pki import Pair


def write(path: Path, server: str, authority: Path, client: Pair, user: str) -> Path:
    """Write a kubeconfig for one server and one user by client certificate; its namespace is ``default``."""
    credentials = {
        "client-certificate-data": _embedded(client.certificate),
        "client-key-data": _embedded(client.key),
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "clusters": [
            {"name": "lab", "cluster": {"server": server, "certificate-authority-data": _embedded(authority)}}
        ],
        "users": [{"name": user, "user": credentials}],
        "contexts": [
            {"name": "lab", "context": {"cluster": "lab", "user": user, "namespace": "default"}},
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.touch(mode=0o600)
    new.write_text(json.dumps(config, indent=2) + "\n")
    new.replace(path)
    return path


def _embedded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
