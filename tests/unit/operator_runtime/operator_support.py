"""Settings for an operator that nobody started from a command line."""

from __future__ import annotations

from typing import Any

from operator_runtime.config import RuntimeConfig


def config(**settings: Any) -> RuntimeConfig:
    """The settings of an operator for all namespaces that serves nothing and elects nobody."""
    plain: dict[str, Any] = {
        "kubeconfig": None,
        "context": None,
        "service_account_dir": "/nowhere",
        "request_timeout_s": 30.0,
        "page_size": 500,
        "watch_namespaces": (),
        "operator_name": "shells",
        "workers": 2,
        "reconcile_timeout_s": 60.0,
        "shutdown_timeout_s": 10.0,
        "leader_elect": False,
        "leader_elect_mode": "lease",
        "leader_elect_id": None,
        "leader_elect_namespace": None,
        "leader_elect_lease_duration_s": 15,
        "leader_elect_renew_deadline_s": 10.0,
        "leader_elect_retry_period_s": 2.0,
        "watch_silence_limit_s": 70.0,
        "health_probe_bind_address": "0",
        "metrics_bind_address": "0",
        "metrics_secure": False,
        "metrics_cert_dir": None,
        "tracing_endpoint": None,
        "log_format": "text",
        "log_level": "info",
    }
    return RuntimeConfig(**plain | settings)
