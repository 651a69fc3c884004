"""How often an operator looked at its objects, as it counts itself; for those whose metrics are on."""

from __future__ import annotations

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

_COUNTER = "controller_runtime_reconcile_total"
_DEADLINE_S = 10.0


class NotCounted(Exception):
    """The operator's metrics did not answer, or have no such counter."""


async def total_of(metrics_url: str) -> float:
    """All reconciles since the operator's start. Raises NotCounted: see there."""
    limit = aiohttp.ClientTimeout(total=_DEADLINE_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=limit) as session,
            session.get(metrics_url, raise_for_status=True) as answer,
        ):
            return total(await answer.text())
    except (aiohttp.ClientError, TimeoutError) as error:
        raise NotCounted(f"{metrics_url}: {str(error) or repr(error)}") from error


def total(page: str) -> float:
    """The sum over all controllers and results of a page in Prometheus' text format.

    Raises:
        NotCounted: the page is no such text, or has no such counter.
    """
    try:
        samples = [each for family in text_string_to_metric_families(page) for each in family.samples]
    except ValueError as error:
        raise NotCounted(f"what the metrics answer cannot be read: {error}") from error
    found = [each.value for each in samples if each.name == _COUNTER]
    if not found:
        raise NotCounted(f"the metrics have no {_COUNTER}")
    return sum(found)
