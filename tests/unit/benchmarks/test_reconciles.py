"""How often an operator looked at its objects, by its own count."""

import pytest

from benchmarks.reconciles import NotCounted, total

PAGE = """\
# HELP controller_runtime_reconcile_total Reconciles.
# TYPE controller_runtime_reconcile_total counter
controller_runtime_reconcile_total{controller="memcached",result="success"} 1000.0
controller_runtime_reconcile_total{controller="memcached",result="error"} 2.0
controller_runtime_reconcile_total{controller="other",result="success"} 40.0
# HELP controller_runtime_reconcile_errors_total Errors.
# TYPE controller_runtime_reconcile_errors_total counter
controller_runtime_reconcile_errors_total{controller="memcached"} 2.0
"""


def test_all_results_of_all_controllers_count_and_no_other_counter() -> None:
    assert total(PAGE) == 1042


@pytest.mark.parametrize(
    ("page", "said"),
    [("", "have no controller_runtime_reconcile_total"), ("<html a=1>", "cannot be read"), ("up 1\n", "have no")],
)
def test_a_page_without_the_counter_gives_no_figure(page: str, said: str) -> None:
    with pytest.raises(NotCounted, match=said):
        total(page)
