"""What one run measures: the figures by name, and the arithmetic on them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the table.

    Attributes:
        key: its name in the JSON file, with the unit at its end.
        label: what people read.
        digits: decimal places worth showing.
    """

    key: str
    label: str
    digits: int


FIGURES = (
    Figure("deployments_made_s", "first create -> last Deployment made, s", 2),
    Figure("status_complete_s", "first create -> last status.nodes complete, s", 2),
    Figure("load_cpu_s", "CPU of the operator for the load, s", 2),
    Figure("load_cpu_per_memcached_ms", "CPU of the operator for the load, per Memcached, ms", 2),
    Figure("load_apiserver_cpu_s", "CPU of kube-apiserver for the load, s", 2),
    Figure("load_etcd_cpu_s", "CPU of etcd for the load, s", 2),
    Figure("load_servers_cpu_per_memcached_ms", "CPU of kube-apiserver and etcd, per Memcached, ms", 2),
    Figure("bystander_get_p50_ms", "another client during the load: GET, p50 ms", 1),
    Figure("bystander_get_p99_ms", "another client during the load: GET, p99 ms", 1),
    Figure("bystander_create_p50_ms", "another client during the load: create, p50 ms", 1),
    Figure("bystander_create_p99_ms", "another client during the load: create, p99 ms", 1),
    Figure("rss_idle_mib", "RSS idle, MiB", 1),
    Figure("rss_after_mib", "RSS after the load, MiB", 1),
    Figure("rss_peak_mib", "RSS at its highest, MiB", 1),
    Figure("rss_per_memcached_kib", "RSS after the load less RSS idle, per Memcached, KiB", 1),
    Figure("change_to_deployment_p50_ms", "size change -> Deployment changed, p50 ms", 1),
    Figure("change_to_deployment_p99_ms", "size change -> Deployment changed, p99 ms", 1),
    Figure("change_to_nodes_p50_ms", "size change -> status.nodes, p50 ms", 1),
    Figure("change_to_nodes_p99_ms", "size change -> status.nodes, p99 ms", 1),
    Figure("creates_per_memcached", "creates answered 201, per Memcached", 3),
    Figure("status_writes_per_memcached", "status writes, per Memcached", 3),
    Figure("reconciles_per_memcached", "reconciles, per Memcached", 2),
    Figure("restart_cpu_s", "restart, nothing to do: CPU, s", 2),
    Figure("restart_servers_cpu_s", "restart, nothing to do: CPU of kube-apiserver and etcd, s", 2),
    Figure("restart_settled_s", "restart, nothing to do: until it rests, s", 2),
    Figure("restart_rss_mib", "restart, nothing to do: RSS, MiB", 1),
    Figure("restart_rss_peak_mib", "restart, nothing to do: RSS at its highest, MiB", 1),
    Figure("restart_writes", "restart, nothing to do: writes", 0),
    Figure("restart_to_first_write_s", "restart, one change waiting: until it is made, s", 2),
)


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One operator on one fresh control plane.

    Attributes:
        operator: its name, as `--operator` takes it.
        round: which round of the benchmark, from 1.
        figures: value by `Figure.key`; None, or no entry, is a figure that could not be had in time.
        requests: number of API requests during the load, by "verb resource code".
        notes: what went wrong, in plain words.
    """

    operator: str
    round: int
    figures: dict[str, float | None]
    requests: dict[str, int]
    notes: list[str]


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` of all values do not exceed (the nearest-rank percentile).

    Raises:
        ValueError: there are no values, or `percent` is not in (0, 100].
    """
    if not values:
        raise ValueError("a percentile of no values")
    if not 0 < percent <= 100:
        raise ValueError(f"a percentile is above 0 and at most 100, not {percent}")
    # Rounding first keeps e.g. 0.07 * 100 = 7.000000000000001 from becoming rank 8.
    return sorted(values)[math.ceil(round(percent * len(values) / 100, 9)) - 1]


def median(runs: Sequence[Run], operator: str, key: str) -> float | None:
    """The median of one figure over an operator's runs; None if a run lacks it: a failure is not averaged away."""
    values = [run.figures.get(key) for run in runs if run.operator == operator]
    known = [value for value in values if value is not None]
    return statistics.median(known) if known and len(known) == len(values) else None


def ratio(runs: Sequence[Run], operator: str, baseline: str, key: str) -> float | None:
    """How many times the baseline's figure an operator's is: the median of the ratios inside each round.

    The two of one round ran within minutes on the same machine, so a machine that grows slower disturbs this less
    than a ratio of medians. None where a figure is missing or the baseline's is 0.
    """
    of_operator, of_baseline = _by_round(runs, operator, key), _by_round(runs, baseline, key)
    ratios: list[float] = []
    for round_number in of_operator.keys() & of_baseline.keys():
        numerator, denominator = of_operator[round_number], of_baseline[round_number]
        if numerator is None or not denominator:
            return None
        ratios.append(numerator / denominator)
    return statistics.median(ratios) if ratios else None


def _by_round(runs: Sequence[Run], operator: str, key: str) -> Mapping[int, float | None]:
    return {run.round: run.figures.get(key) for run in runs if run.operator == operator}
