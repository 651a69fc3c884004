"""The arithmetic of the benchmark's table."""

import pytest
from hypothesis import given, strategies as st

from benchmarks.figures import Run, median, percentile, ratio


def run(operator: str, round_number: int, **figures: float | None) -> Run:
    return Run(operator=operator, round=round_number, figures=figures, requests={}, notes=[])


@given(st.lists(st.floats(allow_nan=False), min_size=1), st.floats(min_value=0.1, max_value=100))
def test_percentile_is_the_smallest_value_that_enough_values_do_not_exceed(values: list[float], percent: float) -> None:
    found = percentile(values, percent)
    needed = round(percent * len(values) / 100, 9)
    assert found in values
    assert sum(value <= found for value in values) >= needed
    assert sum(value < found for value in values) < needed


def test_median_is_over_the_rounds_of_one_operator() -> None:
    runs = [run("go", n, load_cpu_s=value) for n, value in enumerate((1.0, 9.0, 2.0), 1)]
    runs.append(run("ours", 1, load_cpu_s=100.0))
    assert median(runs, "go", "load_cpu_s") == 2.0


def test_a_round_that_lacks_the_figure_leaves_no_median() -> None:
    runs = [run("go", 1, load_cpu_s=1.0), run("go", 2)]
    assert median(runs, "go", "load_cpu_s") is None
    assert median(runs, "kopf", "load_cpu_s") is None


def test_ratio_pairs_the_runs_of_each_round() -> None:
    # The machine is ten times slower in the second round: a ratio of medians would say 6 / 11.
    runs = [run("go", 1, x=2.0), run("ours", 1, x=1.0), run("ours", 2, x=11.0), run("go", 2, x=20.0)]
    assert ratio(runs, "ours", "go", "x") == pytest.approx((0.5 + 0.55) / 2)


@pytest.mark.parametrize("baseline", [None, 0.0])
def test_there_is_no_ratio_to_a_baseline_that_is_missing_or_zero(baseline: float | None) -> None:
    assert ratio([run("go", 1, x=baseline), run("ours", 1, x=1.0)], "ours", "go", "x") is None
