"""Metrics as a test compares them."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Metric


def series(families: Iterable[Metric]) -> dict[str, dict[tuple[str, ...], float]]:
    """Every series by its name, counters with `_total`, and by the values of its labels."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in families:
        for sample in family.samples:
            labels = tuple(sample.labels.values())
            assert labels not in found.setdefault(sample.name, {}), f"{sample.name} has {labels} twice"
            found[sample.name][labels] = sample.value
    return found
