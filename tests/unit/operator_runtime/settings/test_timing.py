import pytest

from operator_runtime.settings.timing import Timing


@pytest.mark.parametrize(
    ("timing", "named"),
    [
        (Timing(lease_s=11), ["lease-duration-s (11 s)", "renew-deadline-s (10 s)"]),
        (Timing(retry_s=5.1), ["renew-deadline-s (10 s)", "retry-period-s (5.1 s)"]),
    ],
)
def test_what_does_not_fit_is_named(timing: Timing, named: list[str]) -> None:
    (problem,) = timing.problems()
    assert all(each in problem for each in named)


def test_a_request_that_hangs_leaves_time_for_another() -> None:
    assert 2 * Timing().request_timeout_s <= Timing().renew_deadline_s
