"""The settings as an operator's process takes them, without what validates them."""

from __future__ import annotations

from typing import Literal

import msgspec


class RuntimeConfig(msgspec.Struct, frozen=True):
    """What every operator is told: `--help` says what each means, `settings.RuntimeSettings` why.

    A plain struct, so that the operator's process need not load pydantic. An operator with settings of its own has a
    subclass, with a field of the same name for each of them.
    """

    kubeconfig: str | None
    context: str | None
    service_account_dir: str
    request_timeout_s: float
    page_size: int
    watch_namespaces: tuple[str, ...] | None
    operator_name: str
    workers: int
    reconcile_timeout_s: float
    shutdown_timeout_s: float
    leader_elect: bool
    leader_elect_mode: Literal["lease", "life"]
    leader_elect_id: str | None
    leader_elect_namespace: str | None
    leader_elect_lease_duration_s: int
    leader_elect_renew_deadline_s: float
    leader_elect_retry_period_s: float
    watch_silence_limit_s: float
    health_probe_bind_address: str
    metrics_bind_address: str
    metrics_secure: bool
    metrics_cert_dir: str | None
    tracing_endpoint: str | None
    log_format: Literal["text", "json"]
    log_level: str
