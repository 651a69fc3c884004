"""The API server, the namespaces and the name to it, from an operator's settings."""

from __future__ import annotations

import os
from pathlib import Path

from operator_runtime.client.access.auth import ClusterAccess, load_access
from operator_runtime.settings.runtime_settings import RuntimeSettings


def watched_namespaces(configured: tuple[str, ...] | None, own: str | None) -> tuple[str, ...]:
    """The namespaces to watch, () for all: the settings', or where these have none, the pod's or the context's own."""
    if configured is not None:
        return configured
    return (own or "default",)


def cluster_access(settings: RuntimeSettings) -> ClusterAccess:
    """Choose the API server and the identity; NoClusterAccess has the remedy where that cannot be done."""
    return load_access(
        kubeconfig=settings.kubeconfig,
        context=settings.context,
        service_account_dir=Path(settings.service_account_dir),
        environ=os.environ,
    )
