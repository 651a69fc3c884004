"""Settings for an operator that nobody started from a command line."""

from __future__ import annotations

from typing import Any

from operator_runtime import RuntimeSettings


def settings(**values: Any) -> RuntimeSettings:
    """The settings of an operator for all namespaces that serves nothing and elects nobody."""
    plain: dict[str, Any] = {
        "service_account_dir": "/nowhere",
        "watch_namespaces": (),
        "operator_name": "shells",
        "workers": 2,
        "shutdown_timeout_s": 10.0,
        "health_probe_bind_address": "0",
        "metrics_bind_address": "0",
    }
    return RuntimeSettings(**plain | values)
