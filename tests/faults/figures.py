"""What an operator's metrics say of a fault, and of its end."""

from __future__ import annotations

from operator_runtime.testing.waiting import await_none
from tests.integration.monitoring import METRICS, PROBES, Scrape, fetch, url_of
from tests.operator_process import OperatorProcess

# Flags by which an operator serves metrics and probes at ports that its log names.
SERVING = (METRICS, PROBES)


class Reading(Scrape):
    """One scrape, in the words of faults."""

    def sum(self, name: str, /, **labels: str) -> float:
        """The sum of the series of that name that have these labels and perhaps more."""
        assert any(of == name for of, _ in self.series), f"there is no {name}"
        return sum(self.values(name, **labels))

    def restarts(self, cause: str, resource: str = "") -> float:
        """How many requests of watches ended so, of one kind or of all."""
        return self.sum("watch_stream_restarts_total", cause=cause, **({"resource": resource} if resource else {}))

    def relists(self, resource: str) -> float:
        """How many complete snapshots of a kind were taken."""
        return self.sum("watch_stream_relists_total", resource=resource)

    def requests(self, code: str) -> float:
        """How many requests the API server answered so; "<error>" where no answer came."""
        return self.sum("rest_client_requests_total", code=code)


class Figures:
    """Those of an operator that was started with `SERVING`."""

    def __init__(self, operator: OperatorProcess) -> None:
        self._metrics, self._probes = url_of(operator, "metrics"), url_of(operator, "probes")

    def read(self) -> Reading:
        """Everything as it is now."""
        return Reading(self._metrics)

    def await_ready(self, ready: bool) -> None:
        """Wait until /readyz says that."""
        desired = 200 if ready else 500
        await_none(lambda: None if fetch(f"{self._probes}/readyz")[0] == desired else f"/readyz does not say {desired}")
