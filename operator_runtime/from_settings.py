"""Configuration of an operator's parts, from its settings."""

from __future__ import annotations

import os
from pathlib import Path

from operator_runtime.client.access.auth import ClusterAccess, load_access
from operator_runtime.election.elections import ElectionConfig
from operator_runtime.identity import Program
from operator_runtime.serving.monitoring import MonitoringConfig
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


def election_config(settings: RuntimeSettings, program: Program) -> ElectionConfig | None:
    if not settings.leader_elect:
        return None
    return ElectionConfig(
        mode=settings.leader_elect_mode,
        name=settings.leader_elect_id or f"{settings.operator_name}-lock",
        namespace=settings.leader_elect_namespace,
        timing=settings.timing,
        user_agent=user_agent_of(settings, program),
        field_manager=program.name,
    )


def user_agent_of(settings: RuntimeSettings, program: Program) -> str:
    return f"{settings.operator_name}/{program.version}"


def monitoring_config(settings: RuntimeSettings, program: Program) -> MonitoringConfig:
    return MonitoringConfig(
        probes=settings.health_probe_bind_address,
        metrics=settings.metrics_bind_address,
        secure=settings.metrics_secure,
        cert_dir=Path(settings.metrics_cert_dir) if settings.metrics_cert_dir else None,
        user_agent=user_agent_of(settings, program),
    )
